// Real folders: the fixtures, and layouts that need symbolic links.
#include "checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <filesystem>

#include "checkpoint/survey.h"
#include "checkpoint/test_checkpoint.h"

namespace deltafin::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kFixtures[] = {
    "tests/golden/tiny-k3",          "tests/golden/wide-k3",
    "tests/golden/tiny-kimi-linear", "models/demo",
    "tests/golden/tiny-qwen3.5-moe", "tests/golden/tiny-qwen3-moe",
    "tests/golden/tiny-qwen3",       "tests/golden/tiny-qwen3-single"};

// A folder that is gone when the test is.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = fs::temp_directory_path() / "deltafin-checkpoint-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// A snapshot as huggingface_hub makes it: files are links into ../../blobs, named by digest.
std::string make_snapshot(const fs::path& hub, const std::string& source) {
  const fs::path snapshot = hub / "snapshots" / "0123abcd";
  fs::create_directories(snapshot);
  fs::create_directories(hub / "blobs");
  for (const fs::directory_entry& file : fs::directory_iterator(source)) {
    const std::string name = file.path().filename();
    fs::copy_file(file.path(), hub / "blobs" / ("digest-of-" + name));
    fs::create_symlink(fs::path("../../blobs") / ("digest-of-" + name), snapshot / name);
  }
  return snapshot;
}

TEST(Checkpoint, OpensEveryFixture) {
  const io::PosixStorage storage;
  for (const char* const name : kFixtures) {
    const Result<Checkpoint> opened = Checkpoint::open(storage, test::source_path(name));
    ASSERT_TRUE(opened.has_value()) << opened.error().what;
    const ModelContract& contract = opened->contract();
    EXPECT_EQ(opened->globals().size(), contract.globals.size()) << name;
    for (uint32_t layer = 0; layer < contract.layers.size(); ++layer) {
      EXPECT_EQ(opened->trunk(layer).size(), contract.layers[layer].trunk.size()) << name;
    }
    EXPECT_TRUE(contract.unknown_fields.empty()) << name;
  }
}

TEST(Checkpoint, KeepsOnlyFilesThatHoldSomethingNeeded) {
  const io::PosixStorage storage;
  const Result<Checkpoint> opened =
      Checkpoint::open(storage, test::source_path("tests/golden/tiny-k3"));
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->file_count(), 10u);  // of eleven shards the last is a vision tower
}

// The bytes at a location are the tensor's: dt_bias is F32 in the fixture, and A_log ends in zeros.
TEST(Checkpoint, PointsAtTheBytesOfATensor) {
  const io::PosixStorage storage;
  const Result<Checkpoint> opened =
      Checkpoint::open(storage, test::source_path("tests/golden/tiny-k3"));
  ASSERT_TRUE(opened.has_value());
  const std::vector<TensorSpec>& trunk = opened->contract().layers[0].trunk;
  for (size_t i = 0; i < trunk.size(); ++i) {
    if (trunk[i].role != TensorRole::ALog) continue;
    const TensorLocation& location = opened->trunk(0)[i];
    EXPECT_EQ(location.dtype, DType::F32);
    ASSERT_EQ(location.size, 32 * sizeof(float));
    float values[32] = {};
    ASSERT_TRUE(io::read_exactly(opened->file(location.file), location.offset,
                                 std::as_writable_bytes(std::span(values))));
    for (int head = 0; head < 3; ++head) EXPECT_NE(values[head], 0.0f);
    for (int padding = 3; padding < 32; ++padding) EXPECT_EQ(values[padding], 0.0f);
    return;
  }
  FAIL() << "no A_log";
}

TEST(Checkpoint, KnowsThatAnExpertsPartsAreAdjacentInTheFixture) {
  const io::PosixStorage storage;
  const Result<Checkpoint> opened =
      Checkpoint::open(storage, test::source_path("tests/golden/tiny-k3"));
  ASSERT_TRUE(opened.has_value());
  const ExpertLocation& expert = opened->expert(1, 5);
  uint64_t begin = UINT64_MAX, end = 0, bytes = 0;
  for (const TensorLocation& part : expert) {
    begin = std::min(begin, part.offset);
    end = std::max(end, part.offset + part.size);
    bytes += part.size;
    EXPECT_EQ(part.file, expert[0].file);
  }
  EXPECT_EQ(end - begin, bytes);
}

TEST(Checkpoint, OpensASnapshotOfLinks) {
  const io::PosixStorage storage;
  const TemporaryFolder folder;
  const std::string snapshot =
      make_snapshot(folder.path() / "hub", test::source_path("tests/golden/tiny-k3"));
  const Result<Checkpoint> opened = Checkpoint::open(storage, snapshot);
  EXPECT_TRUE(opened.has_value()) << opened.error().what;
}

TEST(Checkpoint, SeesTheUnfinishedBlobBehindASnapshot) {
  const io::PosixStorage storage;
  const TemporaryFolder folder;
  const fs::path hub = folder.path() / "hub";
  const std::string snapshot = make_snapshot(hub, test::source_path("tests/golden/tiny-k3"));
  fs::rename(hub / "blobs/digest-of-model-00005-of-000011.safetensors",
             hub / "blobs/0123.incomplete");
  const Survey survey = Survey::of(storage, snapshot);
  EXPECT_EQ(survey.unfinished_files(), std::vector<std::string>{"../../blobs/0123.incomplete"});
  const Error error = survey.problems().to_error(snapshot);
  EXPECT_EQ(error.code, ErrorCode::BadModel);
  EXPECT_THAT(error.what,
              AllOf(HasSubstr("1 of 11 shards is a symbolic link to a file that does not exist: "
                              "model-00005-of-000011.safetensors"),
                    HasSubstr("looks like an interrupted download")));
}

TEST(Checkpoint, SaysWhereALinkToNowherePoints) {
  const io::PosixStorage storage;
  const TemporaryFolder folder;
  const std::string snapshot =
      make_snapshot(folder.path() / "hub", test::source_path("tests/golden/tiny-k3"));
  fs::remove(folder.path() / "hub/blobs/digest-of-config.json");
  const Result<Checkpoint> opened = Checkpoint::open(storage, snapshot);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, ErrorCode::BadModel);
  EXPECT_THAT(opened.error().what, HasSubstr("../../blobs/digest-of-config.json"));
}

TEST(Checkpoint, ASurveyOfAPartialDownloadSaysWhichLayersAreIncomplete) {
  const io::PosixStorage storage;
  for (const char* const name : {"tests/golden/tiny-k3", "models/demo"}) {
    const TemporaryFolder folder;
    const fs::path copy = folder.path() / "model";
    fs::copy(test::source_path(name), copy);
    for (const fs::directory_entry& file : fs::directory_iterator(copy)) {
      const std::string file_name = file.path().filename();
      if (file_name.starts_with("model-00005")) fs::remove(file.path());
    }
    const Survey survey = Survey::of(storage, copy);
    ASSERT_TRUE(survey.contract().has_value());
    EXPECT_EQ(survey.problems().error_count(), 1u);
    EXPECT_TRUE(survey.globals().is_complete());
    for (uint32_t layer = 0; layer < survey.layers().size(); ++layer) {
      EXPECT_EQ(survey.layers()[layer].is_complete(), layer != 4) << name << " layer " << layer;
    }
    EXPECT_EQ(survey.layers()[4].found, 0u);
  }
}

TEST(Checkpoint, OpensWithoutTheVisionShard) {
  const io::PosixStorage storage;
  const TemporaryFolder folder;
  const fs::path copy = folder.path() / "model";
  fs::copy(test::source_path("tests/golden/tiny-k3"), copy);
  fs::remove(copy / "model-00011-of-000011.safetensors");
  EXPECT_TRUE(Checkpoint::open(storage, copy).has_value());
}

// A storage whose shards are headers followed by bytes that nobody has.
class HeaderOnlyFile final : public io::File {
 public:
  HeaderOnlyFile(std::string path, const std::string& header, uint64_t size)
      : path_(std::move(path)), header_(header), size_(size) {}
  const std::string& path() const override { return path_; }
  uint64_t size() const override { return size_; }
  Result<size_t> read_at(uint64_t offset, std::span<std::byte> into) const override {
    if (offset >= header_.size()) return fail(ErrorCode::Io, path_ + ": weights were read");
    const size_t count = std::min<size_t>(into.size(), header_.size() - offset);
    std::memcpy(into.data(), header_.data() + offset, count);
    return count;
  }

 private:
  std::string path_;
  const std::string& header_;
  uint64_t size_;
};

class HeaderOnlyStorage final : public io::Storage {
 public:
  struct Content {
    std::string header;
    uint64_t size = 0;
  };
  std::map<std::string, Content> files;  // by name in the one folder "/k3"

  Result<std::unique_ptr<io::File>> open(const std::string& path) const override {
    const Content& content = files.at(path.substr(4));
    return std::make_unique<HeaderOnlyFile>(path, content.header, content.size);
  }
  Result<std::vector<io::DirectoryEntry>> list(const std::string&) const override {
    std::vector<io::DirectoryEntry> entries;
    for (const auto& [name, content] : files) entries.push_back({name, false});
    return entries;
  }
  bool exists(const std::string& path) const override {
    return path == "/k3" || (path.starts_with("/k3/") && files.contains(path.substr(4)));
  }
  bool is_directory(const std::string& path) const override { return path == "/k3"; }
};

void add_k3_shards(const ModelContract& k3, HeaderOnlyStorage& storage) {
  std::string index = R"({"metadata":{"total_size":1},"weight_map":{)";
  const auto add = [&](const std::string& file, const std::vector<test::MiniTensor>& tensors) {
    std::string header = "{";
    uint64_t at = 0;
    for (const test::MiniTensor& tensor : tensors) {
      const uint64_t size =
          checked_product(tensor.shape).value() * bytes_of(parse_dtype(tensor.dtype).value());
      header += (header.size() > 1 ? ",\"" : "\"") + tensor.name + R"(":{"dtype":")" +
                tensor.dtype + R"(","shape":)" + test::json(tensor.shape).dump() +
                R"(,"data_offsets":[)" + std::to_string(at) + "," + std::to_string(at + size) +
                "]}";
      at += size;
      index += (index.back() == '{' ? "\"" : ",\"") + tensor.name + "\":\"" + file + "\"";
    }
    header = test::safetensors_bytes(header + "}", 0);
    const uint64_t size = header.size() + at;
    storage.files[file] = {std::move(header), size};
  };
  for (uint32_t layer = 0; layer <= k3.layers.size(); ++layer) {
    std::vector<test::MiniTensor> tensors;
    const bool is_last = layer == k3.layers.size();
    for (const TensorSpec& spec : is_last ? k3.globals : k3.layers[layer].trunk) {
      tensors.push_back({spec.name, "BF16", spec.shapes.front()});
    }
    const bool has_experts = !is_last && k3.layers[layer].experts;
    for (uint32_t set = 0; has_experts && set < expert_set_count(*k3.layers[layer].experts); ++set)
      for (const ExpertTensorSpec& tensor : expert_tensors(k3, layer, set))
        tensors.push_back({tensor.name, "U8", tensor.shape});
    const std::string number = std::to_string(100'001 + layer).substr(1);
    add("model-" + number + "-of-000094.safetensors", tensors);
  }
  index += "}}";
  const uint64_t size = index.size();
  storage.files["model.safetensors.index.json"] = {std::move(index), size};
}

TEST(CheckpointFull, OpensHalfAMillionTensorsInSeconds) {
  HeaderOnlyStorage storage;
  const std::string config =
      test::read_file(test::source_path("tests/golden/configs/kimi-k3.json"));
  storage.files["config.json"] = {config, config.size()};
  add_k3_shards(test::golden_contract("kimi-k3.json"), storage);

  // Processor time: other work on the machine must not fail the test.
  const std::clock_t start = std::clock();
  const Result<Checkpoint> opened = Checkpoint::open(storage, "/k3");
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  ASSERT_TRUE(opened.has_value()) << opened.error().what;
  EXPECT_EQ(opened->expert(92, 895)[0].size, 5'505'024u);
  EXPECT_EQ(opened->file_count(), 94u);
  // About one second on one core in a release build; sanitizers take ten times that.
  EXPECT_LT(seconds, 30.0);
  std::printf("opened 497,052 tensors in %.2f s of processor time\n", seconds);
}

}  // namespace
}  // namespace deltafin::checkpoint
