#include "io/published_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace deltafin::io {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Published : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "deltafin-io-XXXXXX").string();
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

TEST_F(Published, AppearsOnlyWhenPublished) {
  Result<PublishedFile> file = PublishedFile::create(path("data"), Existing::Refuse);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->append("all of it"));
  EXPECT_FALSE(fs::exists(path("data")));
  ASSERT_TRUE(file->publish());
  EXPECT_EQ(content("data"), "all of it");
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(Published, LeavesNothingBehindWhenGivenUp) {
  {
    Result<PublishedFile> file = PublishedFile::create(path("data"), Existing::Refuse);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->append("half"));
    EXPECT_EQ(file_count(), 1u);
  }
  EXPECT_EQ(file_count(), 0u);
}

TEST_F(Published, DoesNotReplaceAFileThatAppearedMeanwhile) {
  {
    Result<PublishedFile> file = PublishedFile::create(path("data"), Existing::Refuse);
    ASSERT_TRUE(file);
    put("data", "precious");
    const Status status = file->publish();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::Usage);
  }
  EXPECT_EQ(content("data"), "precious");
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(Published, KeepsTheOldOneUntilTheNewOneIsComplete) {
  put("data", "old");
  Result<PublishedFile> file = PublishedFile::create(path("data"), Existing::Replace);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->append("new"));
  EXPECT_EQ(content("data"), "old");
  ASSERT_TRUE(file->publish());
  EXPECT_EQ(content("data"), "new");
}

TEST_F(Published, IsPublishedOnlyAsARegularFile) {
  EXPECT_FALSE(PublishedFile::create("/dev/null", Existing::Replace));
  EXPECT_FALSE(PublishedFile::create(folder_.string(), Existing::Replace));
  EXPECT_FALSE(PublishedFile::create(path(""), Existing::Replace));
}

TEST_F(Published, IsNotWrittenOverAnExistingOne) {
  put("data", "precious");
  const Result<PublishedFile> file = PublishedFile::create(path("data"), Existing::Refuse);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::Usage);
  EXPECT_THAT(file.error().what,
              HasSubstr(path("data") + " exists already\n  give another name, or"));
  EXPECT_EQ(content("data"), "precious");
}

TEST_F(Published, SaysWhenTheFolderIsNotThere) {
  const Result<PublishedFile> file = PublishedFile::create(path("no/data"), Existing::Refuse);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::Io);
}

}  // namespace
}  // namespace deltafin::io
