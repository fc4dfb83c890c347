// deltafin logits: the file is what it says, complete or not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>

#include "audit/digest.h"
#include "cli/process.h"

namespace deltafin::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr size_t kVocabulary = 2560;

std::vector<float> floats_in(const std::string& path) {
  const std::string bytes = read_file(path);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

std::string digest_of(std::span<const float> values) {
  audit::LogitsDigest digest;
  digest.add(values);
  return digest.hex();
}

TEST(Logits, AreAFileOfFloatsAndADescriptionBesideIt) {
  const ScratchFolder folder;
  const std::string path = folder / "out.f32";
  const Outcome outcome = run_program({"logits", "demo", "--ids", "1,2,3", "--out", path});
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
  const std::vector<float> logits = floats_in(path);
  EXPECT_EQ(fs::file_size(path), 3 * kVocabulary * 4);
  const json description = json::parse(read_file(path + ".json"));
  EXPECT_EQ(description.at("shape"), json::parse("[3, 2560]"));
  EXPECT_EQ(description.at("dtype"), "float32");
  EXPECT_EQ(description.at("byte_order"), "little");
  EXPECT_EQ(description.at("file"), "out.f32");
  EXPECT_EQ(description.at("ids"), json::parse("[1, 2, 3]"));
  EXPECT_EQ(description.at("sha256"), digest_of(logits));
  EXPECT_EQ(folder.file_count(), 2u);
}

TEST(Logits, OfTheLastPositionAreThoseThatChoseTheNextToken) {
  const ScratchFolder folder;
  const std::string path = folder / "out.f32";
  ASSERT_EQ(run_program({"logits", "demo", "--ids", "7,8,9", "--out", path}).exit_status, 0);
  const std::vector<float> logits = floats_in(path);
  const json run = json::parse(run_program({"run", "demo", "--ids", "7,8,9", "--max-tokens", "1",
                                            "--ignore-eos", "--json", "--logits-digest"})
                                   .out);
  EXPECT_EQ(run.at("logits_digest").at("sha256"), digest_of(std::span(logits).last(kVocabulary)));
}

TEST(Logits, HaveTheSameBitsInAnyChunks) {
  const ScratchFolder folder;
  const auto logits = [&](const char* rows) {
    const std::string path = folder / (std::string("rows-") + rows);
    EXPECT_EQ(run_program({"logits", "demo", "--ids", "5,4,3,2,1,6,7", "--out", path,
                           "--prefill-rows", rows})
                  .exit_status,
              0);
    return read_file(path);
  };
  const std::string expected = logits("7");
  EXPECT_EQ(expected.size(), 7 * kVocabulary * 4);
  EXPECT_TRUE(logits("1") == expected);
  EXPECT_TRUE(logits("3") == expected);
}

TEST(Logits, TakeText) {
  const ScratchFolder folder;
  EXPECT_EQ(run_program(
                {"logits", "demo", "--prompt", "The capital of France is", "--out", folder / "out"})
                .exit_status,
            0);
  EXPECT_EQ(json::parse(read_file(folder / "out.json")).at("ids").size(), 5u);
}

TEST(Logits, DoNotReplaceAFileUnlessForced) {
  const ScratchFolder folder;
  const std::string path = folder / "out.f32";
  for (const std::string& existing : {path, path + ".json"}) {
    write_file(existing, "precious");
    const Outcome outcome = run_program({"logits", "demo", "--ids", "1", "--out", path});
    EXPECT_EQ(outcome.exit_status, 2);
    EXPECT_THAT(outcome.err, HasSubstr("--out: " + existing + " exists already"));
    EXPECT_EQ(read_file(existing), "precious");
    EXPECT_EQ(folder.file_count(), 1u);
    fs::remove(existing);
  }
  write_file(path, "old");
  EXPECT_EQ(run_program({"logits", "demo", "--ids", "1", "--out", path, "--force"}).exit_status, 0);
  EXPECT_EQ(fs::file_size(path), kVocabulary * 4);
}

TEST(Logits, LeaveNoFileWhenTheDiskIsFull) {
  const ScratchFolder folder;
  const Outcome outcome =
      run_with({.arguments = {"logits", "demo", "--ids", "1,2,3", "--out", folder / "out.f32"},
                .file_bytes_limit = 2 * kVocabulary * 4});
  EXPECT_EQ(outcome.exit_status, 5);
  EXPECT_THAT(outcome.err, HasSubstr("out.f32: cannot write: File too large"));
  EXPECT_EQ(folder.file_count(), 0u);
}

TEST(Logits, LeaveNoFileAfterCtrlC) {
  const ScratchFolder folder, input;
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "said unto him ";
  write_file(input / "prompt.txt", text);
  Process process({.arguments = {"logits", "demo", "--prompt-file", input / "prompt.txt",
                                 "--prefill-rows", "16", "--out", folder / "out.f32"}});
  // The first rows have been written.
  const auto first_rows = [&] {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder.path()))
      if (entry.path().extension() == ".partial" && entry.file_size() > 0) return true;
    return false;
  };
  for (int i = 0; i < 6000 && !first_rows(); ++i) ::usleep(10'000);
  EXPECT_FALSE(fs::exists(folder / "out.f32"));
  process.signal(SIGINT);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_status, 130);
  EXPECT_THAT(outcome.err, HasSubstr("stopped by Ctrl-C"));
  EXPECT_EQ(folder.file_count(), 0u);
}

}  // namespace
}  // namespace deltafin::test
