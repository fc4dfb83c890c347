#include "cli/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

namespace deltafin::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OutputFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "deltafin-cli-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }
  void put(const char* name, const std::string& text) const { std::ofstream(path(name)) << text; }
  std::string content(const char* name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t file_count() const {
    return size_t(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

TEST_F(OutputFile, GrowsBeforeTheEyesOfItsReaders) {
  Result<GrowingFile> file = GrowingFile::create(path("log"), Existing::Refuse);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->append("one\n"));
  EXPECT_EQ(content("log"), "one\n");
  ASSERT_TRUE(file->append("two\n"));
  EXPECT_EQ(content("log"), "one\ntwo\n");
}

TEST_F(OutputFile, IsNotWrittenOverAnExistingOne) {
  put("log", "precious");
  const Result<GrowingFile> file = GrowingFile::create(path("log"), Existing::Refuse);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::Usage);
  EXPECT_THAT(file.error().what,
              HasSubstr(path("log") + " exists already\n  give another name, or"));
  EXPECT_EQ(content("log"), "precious");
}

TEST_F(OutputFile, ReplacesWhenAskedTo) {
  put("log", "something long");
  Result<GrowingFile> file = GrowingFile::create(path("log"), Existing::Replace);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->append("new"));
  EXPECT_EQ(content("log"), "new");
}

TEST_F(OutputFile, MayBeADevice) {
  Result<GrowingFile> file = GrowingFile::create("/dev/null", Existing::Refuse);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->append("gone"));
}

TEST_F(OutputFile, MayBeAnOpenDescriptorWhichIsNeverTruncated) {
  put("log", "first ");
  const int descriptor = ::open(path("log").c_str(), O_WRONLY | O_APPEND);
  ASSERT_GE(descriptor, 0);
  const std::string name = "/dev/fd/" + std::to_string(descriptor);
  Result<GrowingFile> file = GrowingFile::create(name, Existing::Replace);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->append("second"));
  EXPECT_EQ(content("log"), "first second");
  ::close(descriptor);
  EXPECT_FALSE(GrowingFile::create("/dev/fd/999", Existing::Replace));
}

TEST_F(OutputFile, SaysWhenTheDiskIsFull) {
  Result<GrowingFile> file = GrowingFile::create("/dev/full", Existing::Refuse);
  ASSERT_TRUE(file);
  const Status status = file->append("too much");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::Io);
  EXPECT_THAT(status.error().what, HasSubstr("/dev/full: cannot write: No space left"));
}

TEST_F(OutputFile, SaysWhenTheFolderIsNotThere) {
  const Result<GrowingFile> file = GrowingFile::create(path("no/log"), Existing::Refuse);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::Io);
  EXPECT_THAT(file.error().what, HasSubstr("cannot create: No such file or directory"));
}

TEST_F(OutputFile, RefusesADanglingLink) {
  fs::create_symlink(path("nowhere"), path("link"));
  EXPECT_FALSE(GrowingFile::create(path("link"), Existing::Replace));
}

}  // namespace
}  // namespace deltafin::cli
