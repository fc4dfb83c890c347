#include "checkpoint/survey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/philox.h"
#include "checkpoint/test_checkpoint.h"

namespace deltafin::checkpoint {
namespace {

using test::MiniCheckpoint;
using test::MiniTensor;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kRouter = "language_model.model.layers.1.block_sparse_moe.gate.weight";
constexpr const char* kExpertPart =
    "language_model.model.layers.1.block_sparse_moe.experts.2.w3.weight_scale";
constexpr const char* kQueryNorm = "language_model.model.layers.1.self_attn.q_norm.weight";
constexpr const char* kPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 123\n";

std::vector<std::string> lines_of(const Survey& survey) {
  std::vector<std::string> lines;
  for (const Problem& problem : survey.problems().kept()) {
    lines.push_back(to_line(problem) + " / " + problem.advice);
  }
  return lines;
}

TEST(Survey, FindsNothingWrongWithAWholeCheckpoint) {
  const Survey survey = survey_of(MiniCheckpoint());
  EXPECT_THAT(lines_of(survey), IsEmpty());
  EXPECT_TRUE(survey.is_usable());
  EXPECT_TRUE(survey.globals().is_complete());
  ASSERT_EQ(survey.layers().size(), 2u);
  EXPECT_EQ(survey.layers()[0].expected, 23u);
  EXPECT_EQ(survey.layers()[1].expected, 22u + 4 * 6);
  EXPECT_TRUE(survey.layers()[1].is_complete());
  EXPECT_EQ(survey.shards().size(), 4u);
  EXPECT_EQ(survey.shards()[3].tensor_count, 2u);
}

TEST(Survey, CountsIgnoredTensorsByTheirFirstName) {
  const Survey survey = survey_of(MiniCheckpoint());
  ASSERT_EQ(survey.ignored().size(), 2u);
  EXPECT_EQ(survey.ignored()[0].pattern, "mm_projector.*");
  EXPECT_EQ(survey.ignored()[1].pattern, "vision_tower.*");
  EXPECT_EQ(survey.ignored()[1].count, 1u);
  EXPECT_EQ(survey.ignored()[1].bytes, 32u);
}

// Every way a checkpoint can be wrong, and what must be said about it: file, tensor, found,
// expected, and what to do.
struct Damage {
  const char* name;
  std::function<void(MiniCheckpoint&)> inflict;
  ProblemKind kind;
  std::vector<std::string> said;
};

void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

class Damages : public testing::TestWithParam<Damage> {};

TEST_P(Damages, AreErrorsThatSayWhatToDo) {
  const Damage& damage = GetParam();
  MiniCheckpoint checkpoint;
  damage.inflict(checkpoint);
  io::SimulatedStorage storage;
  checkpoint.write(storage);

  const Survey survey = Survey::of(storage, MiniCheckpoint::kFolder);
  EXPECT_FALSE(survey.is_usable());
  EXPECT_GE(survey.problems().count_of(damage.kind), 1u);
  std::string all;
  for (const std::string& line : lines_of(survey)) all += line + "\n";
  for (const std::string& text : damage.said) EXPECT_THAT(all, HasSubstr(text));

  const Result<Checkpoint> opened = Checkpoint::open(storage, MiniCheckpoint::kFolder);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, ErrorCode::BadModel);
  for (const std::string& text : damage.said) EXPECT_THAT(opened.error().what, HasSubstr(text));
}

using C = MiniCheckpoint;

const Damage kDamages[] = {
    // --- Files ---
    {"MissingConfig",
     [](C& c) { c.config = nullptr; },
     ProblemKind::NotACheckpoint,
     {"has no config.json", "expected a folder with config.json and *.safetensors files"}},
    {"MissingShard",
     [](C& c) { c.shards.erase(C::kLayer0); },
     ProblemKind::MissingShard,
     {"1 of 4 shards is missing: model-00001-of-000004.safetensors", "copy the missing files"}},
    {"MissingTail",
     [](C& c) {
       c.shards.erase(C::kRest);
       c.shards.erase(C::kVision);
       c.index["weight_map"]["language_model.lm_head.weight"] = C::kVision;
     },
     ProblemKind::MissingShard,
     {"2 of 4 shards are missing: model-00003-of-000004.safetensors, "
      "model-00004-of-000004.safetensors",
      "looks like an interrupted download", "resume the download"}},
    {"MissingTailOfWhichTheLastIsNotUsed",
     [](C& c) {
       c.shards.erase(C::kRest);
       c.shards.erase(C::kVision);
     },
     ProblemKind::MissingShard,
     {"1 of 4 shards is missing: model-00003-of-000004.safetensors; looks like an interrupted "
      "download"}},
    {"MissingShardBesideAnUnfinishedFile",
     [](C& c) {
       c.shards.erase(C::kLayer0);
       c.files["model-00001-of-000004.safetensors.part"] = "x";
     },
     ProblemKind::MissingShard,
     {"is missing: model-00001", "looks like an interrupted download"}},
    {"MissingShardWithoutIndex",
     [](C& c) {
       c.index = nullptr;
       c.shards.erase(C::kLayer1);
     },
     ProblemKind::MissingShard,
     {"1 of 4 shards is missing: model-00002-of-000004.safetensors"}},
    {"NoWeights",
     [](C& c) {
       c.shards.clear();
       c.index = nullptr;
     },
     ProblemKind::NotACheckpoint,
     {"no *.safetensors file is there"}},
    {"CutShard",
     [](C& c) { c.shards[C::kLayer1].extra_bytes = -100; },
     ProblemKind::CutFile,
     {"model-00002-of-000004.safetensors: the file is 100 bytes shorter than its header says: "
      "looks like an interrupted download",
      "download model-00002-of-000004.safetensors again"}},
    {"ShardCutInItsHeader",
     [](C& c) { c.files[C::kLayer1] = c.shards[C::kLayer1].bytes().substr(0, 1000); },
     ProblemKind::BadHeader,
     {"model-00002-of-000004.safetensors: the header claims to be", "only 992 bytes follow"}},
    {"EmptyShard",
     [](C& c) { c.files[C::kLayer1] = ""; },
     ProblemKind::BadHeader,
     {"model-00002-of-000004.safetensors: the file has 0 bytes, expected at least 8"}},
    {"TrailingBytes",
     [](C& c) { c.shards[C::kLayer0].extra_bytes = 3; },
     ProblemKind::BadHeader,
     {"model-00001-of-000004.safetensors: the file goes on for 3 bytes after its last tensor"}},
    {"HeaderIsNoJson",
     [](C& c) { c.files[C::kLayer0] = test::safetensors_bytes("{\"a\":", 0); },
     ProblemKind::BadHeader,
     {"model-00001-of-000004.safetensors: the header is not valid JSON"}},
    {"PointerShard",
     [](C& c) { c.files[C::kLayer0] = kPointer; },
     ProblemKind::PointerFile,
     {"model-00001-of-000004.safetensors: is a Git-LFS pointer", "git lfs pull"}},
    {"PointerConfig",
     [](C& c) { c.files["config.json"] = kPointer; },
     ProblemKind::PointerFile,
     {"config.json: is a Git-LFS pointer", "git lfs pull"}},
    // --- Config ---
    {"BadConfig",
     [](C& c) { c.files["config.json"] = "{"; },
     ProblemKind::BadConfig,
     {"config.json: not valid JSON"}},
    {"UnsupportedConfig",
     [](C& c) { c.config["architectures"] = {"LlamaForCausalLM"}; },
     ProblemKind::BadConfig,
     {"config.json: architectures: found [\"LlamaForCausalLM\"], expected one of the supported"}},
    {"HugeConfig",
     [](C& c) { c.files["config.json"] = std::string(2 << 20, ' '); },
     ProblemKind::BadConfig,
     {"/models/mini/config.json", "2097152"}},
    {"ConfigContradictsShapes",
     [](C& c) { c.config["text_config"]["kv_lora_rank"] = 32; },
     ProblemKind::WrongTensor,
     {"tensor language_model.model.layers.1.self_attn.kv_a_layernorm.weight: shape is [64], "
      "expected [32] by config.json",
      "config.json and the shards must come from the same model"}},
    {"ConfigWantsMoreLayers",
     [](C& c) {
       c.config["text_config"]["num_hidden_layers"] = 3;
       c.config["text_config"]["linear_attn_config"]["kda_layers"] = {1, 3};
     },
     ProblemKind::MissingTensor,
     {"layer 2 lacks 52 tensors, which no shard holds: language_model.model.layers.2."}},
    {"ConfigWantsPlainExperts",
     [](C& c) { c.config["text_config"].erase("quantization_config"); },
     ProblemKind::UnexpectedTensor,
     {"experts.3.w1.weight_packed: config.json describes a model without this tensor"}},
    // --- Index ---
    {"BadIndex",
     [](C& c) { c.files["model.safetensors.index.json"] = "{\"weight_map\": 1}"; },
     ProblemKind::BadIndex,
     {"model.safetensors.index.json: weight_map is not an object",
      "download model.safetensors.index.json again"}},
    {"IndexLeavesTheFolder",
     [](C& c) { c.index["weight_map"][kRouter] = "../../model-00002-of-000004.safetensors"; },
     ProblemKind::BadIndex,
     {"weight_map names the shard \"../../model-00002"}},
    {"IndexNamesATensorTheShardLacks",
     [](C& c) { c.shards[C::kLayer1].drop(kRouter); },
     ProblemKind::IndexMismatch,
     {std::string("model-00002-of-000004.safetensors: tensor ") + kRouter +
          ": the index puts it into this shard, but the shard does not hold it",
      "from one revision"}},
    {"IndexDoesNotListATensor",
     [](C& c) { c.index["weight_map"].erase(kRouter); },
     ProblemKind::IndexMismatch,
     {std::string(kRouter) + ": the shard holds it, but the index does not list it"}},
    {"IndexPutsATensorElsewhere",
     [](C& c) { c.index["weight_map"][kRouter] = C::kLayer0; },
     ProblemKind::IndexMismatch,
     {std::string("model-00002-of-000004.safetensors: tensor ") + kRouter +
          ": the shard holds it, but the index puts it into model-00001-of-000004.safetensors",
      std::string("model-00001-of-000004.safetensors: tensor ") + kRouter}},
    // --- Tensors ---
    {"TensorInNoShard",
     [](C& c) {
       c.shards[C::kLayer1].drop(kRouter);
       c.index["weight_map"].erase(kRouter);
     },
     ProblemKind::MissingTensor,
     {std::string("tensor ") + kRouter + ": no shard holds it, but layer 1 needs it"}},
    {"GlobalInNoShard",
     [](C& c) {
       c.shards[C::kRest].drop("language_model.lm_head.weight");
       c.index = nullptr;
     },
     ProblemKind::MissingTensor,
     {"tensor language_model.lm_head.weight: no shard holds it, but the model needs it"}},
    {"ExpertPartInNoShard",
     [](C& c) {
       c.shards[C::kLayer1].drop(kExpertPart);
       c.index = nullptr;
     },
     ProblemKind::MissingTensor,
     {std::string("tensor ") + kExpertPart + ": no shard holds it"}},
    {"TensorInTwoShards",
     [](C& c) {
       c.index = nullptr;
       c.shards[C::kRest].tensors.push_back({kRouter, "BF16", {4, 128}});
     },
     ProblemKind::DuplicateTensor,
     {std::string("model-00003-of-000004.safetensors: tensor ") + kRouter +
          ": is in model-00002-of-000004.safetensors too",
      "add its model.safetensors.index.json"}},
    {"UnexpectedTensor",
     [](C& c) {
       c.shards[C::kLayer1].tensors.push_back({kQueryNorm, "BF16", {32}});
       c.index["weight_map"][kQueryNorm] = C::kLayer1;
     },
     ProblemKind::UnexpectedTensor,
     {std::string("model-00002-of-000004.safetensors: tensor ") + kQueryNorm +
      ": config.json describes a model without this tensor"}},
    {"WrongDtype",
     [](C& c) { c.shards[C::kLayer1].find(kRouter).dtype = "F16"; },
     ProblemKind::WrongTensor,
     {std::string("model-00002-of-000004.safetensors: tensor ") + kRouter +
      ": dtype is F16, expected BF16 or F32"}},
    {"PackedAsSignedBytes",
     [](C& c) { c.shards[C::kLayer1].find(kExpertPart).dtype = "I8"; },
     ProblemKind::WrongTensor,
     {std::string(kExpertPart) + ": dtype is I8, expected U8"}},
    {"WrongShape",
     [](C& c) { c.shards[C::kLayer1].find(kExpertPart).shape = {2, 32}; },
     ProblemKind::WrongTensor,
     {std::string(kExpertPart) + ": shape is [2, 32], expected [32, 2] by config.json"}},
    {"WrongDecayShape",
     [](C& c) {
       c.shards[C::kLayer0].find("language_model.model.layers.0.self_attn.A_log").shape = {4};
     },
     ProblemKind::WrongTensor,
     {"shape is [4], expected [32] or [3] or [1, 1, 3, 1] by config.json"}},
};

INSTANTIATE_TEST_SUITE_P(Survey, Damages, testing::ValuesIn(kDamages),
                         [](const auto& test) { return std::string(test.param.name); });

// What is unusual but right.
struct Variant {
  const char* name;
  std::function<void(MiniCheckpoint&)> apply;
};

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

class Variants : public testing::TestWithParam<Variant> {};

TEST_P(Variants, Open) {
  MiniCheckpoint checkpoint;
  GetParam().apply(checkpoint);
  io::SimulatedStorage storage;
  checkpoint.write(storage);
  const Result<Checkpoint> opened = Checkpoint::open(storage, MiniCheckpoint::kFolder);
  EXPECT_TRUE(opened.has_value()) << opened.error().what;
}

const Variant kVariants[] = {
    {"OneFile", [](C& c) { c.merge_into("model.safetensors"); }},
    {"OneFileOfAnotherName", [](C& c) { c.merge_into("weights.safetensors"); }},
    {"ShardsWithoutIndex", [](C& c) { c.index = nullptr; }},
    {"FloatTotalSize", [](C& c) { c.index["metadata"]["total_size"] = 3.2e6; }},
    {"NoTotalSize", [](C& c) { c.index.erase("metadata"); }},
    {"MissingVisionShard", [](C& c) { c.shards.erase(C::kVision); }},
    {"DamagedVisionShard", [](C& c) { c.files[C::kVision] = "x"; }},
    {"VisionTensorsThatTheIndexDoesNotKnow",
     [](C& c) { c.shards[C::kVision].tensors.push_back({"vision_tower.new", "F16", {3}}); }},
    {"UnfinishedFileOfSomethingElse", [](C& c) { c.files["tokenizer.json.part"] = "x"; }},
    {"ForeignSafetensorsFile", [](C& c) { c.files["adapter.safetensors"] = "x"; }},
    {"F32InPlaceOfBf16",
     [](C& c) {
       for (auto& [name, shard] : c.shards) {
         for (MiniTensor& tensor : shard.tensors) {
           if (tensor.dtype == "BF16") tensor.dtype = "F32";
         }
       }
     }},
    {"ExpertsInAnyOrder",
     [](C& c) {
       std::vector<MiniTensor>& tensors = c.shards[C::kLayer1].tensors;
       std::reverse(tensors.begin(), tensors.end());
     }},
    {"MisalignedTensors",
     [](C& c) {
       // One odd byte in front shifts everything that follows.
       std::vector<MiniTensor>& tensors = c.shards[C::kLayer1].tensors;
       tensors.insert(tensors.begin(), {"vision_tower.odd", "U8", {1}});
       c.index = test::MiniCheckpoint::index_of(c.shards);
     }},
    {"OneDecayPerHead",
     [](C& c) {
       c.shards[C::kLayer0].find("language_model.model.layers.0.self_attn.A_log").shape = {3};
     }},
    {"OneDecayPerHeadInFourAxes",
     [](C& c) {
       c.shards[C::kLayer0].find("language_model.model.layers.0.self_attn.A_log").shape = {1, 1, 3,
                                                                                           1};
     }},
};

INSTANTIATE_TEST_SUITE_P(Survey, Variants, testing::ValuesIn(kVariants),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Survey, SuspectsAnInterruptedDownloadOnlyForAReason) {
  MiniCheckpoint checkpoint;
  checkpoint.shards.erase(MiniCheckpoint::kLayer0);
  EXPECT_THAT(lines_of(survey_of(checkpoint)), testing::Each(Not(HasSubstr("interrupted"))));
}

TEST(Survey, NamesEveryMissingShard) {
  MiniCheckpoint checkpoint;
  checkpoint.index["weight_map"] = test::json::object();
  for (int i = 1; i <= 96; ++i) {
    const std::string number = std::to_string(100 + i).substr(1);
    checkpoint.index["weight_map"]["language_model.t" + number] = "m-" + number + ".safetensors";
  }
  const std::vector<std::string> lines = lines_of(survey_of(checkpoint));
  EXPECT_THAT(
      lines, Contains(AllOf(HasSubstr("96 of 96 shards are missing"), HasSubstr("m-01.safetensors"),
                            HasSubstr("m-50.safetensors"), HasSubstr("m-96.safetensors"))));
}

TEST(Survey, DoesNotReportTheTensorsOfAMissingShardOneByOne) {
  MiniCheckpoint checkpoint;
  checkpoint.shards.erase(MiniCheckpoint::kLayer1);
  const Survey survey = survey_of(checkpoint);
  EXPECT_EQ(survey.problems().error_count(), 1u);
  EXPECT_TRUE(survey.globals().is_complete());
  EXPECT_TRUE(survey.layers()[0].is_complete());
  EXPECT_EQ(survey.layers()[1].found, 0u);
  EXPECT_FALSE(survey.layers()[1].is_complete());
}

TEST(Survey, DoesNotGuessWhatWasInAMissingShardWithoutAnIndex) {
  MiniCheckpoint checkpoint;
  checkpoint.index = nullptr;
  checkpoint.shards.erase(MiniCheckpoint::kLayer1);
  const Survey survey = survey_of(checkpoint);
  EXPECT_EQ(survey.problems().error_count(), 1u);
  EXPECT_EQ(survey.problems().count_of(ProblemKind::MissingTensor), 0u);
  EXPECT_EQ(survey.layers()[1].found, 0u);
}

TEST(Survey, NotesAMissingShardOfWhichNothingIsUsed) {
  MiniCheckpoint checkpoint;
  checkpoint.shards.erase(MiniCheckpoint::kVision);
  const Survey survey = survey_of(checkpoint);
  ASSERT_EQ(survey.problems().kept().size(), 1u);
  EXPECT_EQ(survey.problems().kept()[0].severity, Severity::Note);
  EXPECT_THAT(survey.problems().kept()[0].message,
              HasSubstr("1 of 4 shards is missing: model-00004-of-000004.safetensors (nothing that "
                        "is used)"));
}

TEST(Survey, CountsTheWholeTensorsOfACutShard) {
  MiniCheckpoint checkpoint;
  checkpoint.shards[MiniCheckpoint::kLayer1].extra_bytes = -1;
  const Survey survey = survey_of(checkpoint);
  EXPECT_EQ(survey.layers()[1].found, survey.layers()[1].expected - 1);
  EXPECT_EQ(survey.problems().error_count(), 1u);
}

TEST(Survey, SaysWhatTheShardsHoldEvenWithoutAConfig) {
  MiniCheckpoint checkpoint;
  checkpoint.config["architectures"] = {"Novel"};
  const Survey survey = survey_of(checkpoint);
  EXPECT_EQ(survey.problems().error_count(), 1u);
  EXPECT_FALSE(survey.contract().has_value());
  ASSERT_EQ(survey.shards().size(), 4u);
  EXPECT_EQ(survey.shards()[0].tensor_count, 23u);
}

TEST(Survey, SurvivesAFloodOfProblems) {
  MiniCheckpoint checkpoint;
  test::MiniShard& shard = checkpoint.shards[MiniCheckpoint::kLayer1];
  for (int i = 0; i < 5000; ++i) {
    shard.tensors.push_back({"language_model.novel." + std::to_string(i), "U8", {1}});
  }
  const Survey survey = survey_of(checkpoint);
  EXPECT_EQ(survey.problems().count_of(ProblemKind::UnexpectedTensor), 5000u);
  EXPECT_EQ(survey.problems().count_of(ProblemKind::IndexMismatch), 5000u);
  EXPECT_LE(survey.problems().kept().size(), 2 * ProblemList::kKeptOfEachKind);
}

TEST(Survey, BlamesTheDiskForReadErrors) {
  MiniCheckpoint checkpoint;
  io::SimulatedStorage storage;
  checkpoint.write(storage);
  storage.set_faults({.ranges = {{.file = MiniCheckpoint::kLayer1, .offset = 0, .size = 100}}});
  const Result<Checkpoint> opened = Checkpoint::open(storage, MiniCheckpoint::kFolder);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, ErrorCode::Io);
  EXPECT_THAT(opened.error().what, HasSubstr(MiniCheckpoint::kLayer1));
}

TEST(Survey, SaysWhatWasExpectedInPlaceOfAFile) {
  io::SimulatedStorage storage;
  storage.add_file("/m/model.gguf", "GGUF\x03");
  storage.add_file("/m/notes.txt", "hi");
  const auto error = [&](const std::string& path) {
    const Result<Checkpoint> opened = Checkpoint::open(storage, path);
    EXPECT_FALSE(opened.has_value());
    return opened.error().what;
  };
  EXPECT_THAT(error("/m/model.gguf"),
              AllOf(HasSubstr("is a GGUF file"), HasSubstr("expected a folder")));
  EXPECT_THAT(error("/m/notes.txt"), HasSubstr("/m/notes.txt: is a file"));
  EXPECT_THAT(error("/m"), Not(HasSubstr("problems")));
  EXPECT_THAT(error("/none"), HasSubstr("/none: no such folder"));
  EXPECT_THAT(error("/m"), HasSubstr("has no config.json (model.gguf is another format)"));
}

TEST(Survey, PointsIntoACacheFolder) {
  io::SimulatedStorage storage;
  storage.add_file("/models--a--b/snapshots/0123/config.json", "{}");
  storage.add_file("/models--a--b/refs/main", "0123");
  const Result<Checkpoint> opened = Checkpoint::open(storage, "/models--a--b");
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().what, HasSubstr("one revision below snapshots/"));
}

TEST(Survey, SeesUnfinishedFilesWhereDownloadersLeaveThem) {
  // ../../blobs needs a storage that resolves "..": checkpoint_test.cc.
  for (const char* const name :
       {"model.safetensors.part", ".cache/huggingface/download/model.safetensors.01.incomplete"}) {
    io::SimulatedStorage storage;
    MiniCheckpoint().write(storage);
    storage.add_file(std::string(MiniCheckpoint::kFolder) + "/" + name, "x");
    const Survey survey = Survey::of(storage, MiniCheckpoint::kFolder);
    EXPECT_EQ(survey.unfinished_files(), std::vector<std::string>{name});
    EXPECT_EQ(survey.problems().count_of(ProblemKind::UnfinishedDownload), 1u);
    EXPECT_TRUE(survey.is_usable());
  }
}

// One random act of damage (or of harmless change) to a checkpoint.
void change_something(Random& random, MiniCheckpoint& checkpoint) {
  auto chosen = checkpoint.shards.begin();
  std::advance(chosen, static_cast<long>(random.below(checkpoint.shards.size())));
  auto& [file, shard] = *chosen;
  if (shard.tensors.empty()) return;
  const size_t at = random.below(shard.tensors.size());
  MiniTensor& tensor = shard.tensors[at];
  switch (random.below(9)) {
    case 0:
      shard.tensors.erase(shard.tensors.begin() + static_cast<long>(at));
      break;
    case 1:
      checkpoint.shards[MiniCheckpoint::kRest].tensors.push_back(tensor);
      break;
    case 2:
      tensor.name += "x";
      break;
    case 3:
      tensor.dtype = tensor.dtype == "U8" ? "I8" : "F32";
      break;
    case 4:
      tensor.shape.push_back(1);
      break;
    case 5:
      shard.extra_bytes = -static_cast<int64_t>(random.below(50));
      break;
    case 6:
      checkpoint.index["weight_map"].erase(tensor.name);
      break;
    case 7:
      checkpoint.index["weight_map"][tensor.name] = MiniCheckpoint::kLayer0;
      break;
    case 8:
      checkpoint.files[file] = kPointer;
      break;
  }
}

TEST(Survey, IsNeverUsableWhenSomethingIsMissing) {
  int usable_count = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    MiniCheckpoint checkpoint;
    for (uint64_t n = random.below(3); n-- > 0;) change_something(random, checkpoint);
    if (random.below(4) == 0) checkpoint.index = nullptr;
    const Survey survey = survey_of(checkpoint);
    bool is_whole = survey.globals().is_complete();
    for (const Completeness& layer : survey.layers()) is_whole = is_whole && layer.is_complete();
    // Complete yet unusable happens (a tensor too many); usable yet incomplete never.
    if (survey.is_usable()) {
      ++usable_count;
      EXPECT_TRUE(is_whole) << "seed " << seed;
    }
  }
  EXPECT_GT(usable_count, 50);
  EXPECT_LT(usable_count, 250);
}

}  // namespace
}  // namespace deltafin::checkpoint
