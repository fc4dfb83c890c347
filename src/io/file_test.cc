#include "io/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace deltafin::io {
namespace {

using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

// A folder that lives as long as the test.
class PosixStorageTest : public testing::Test {
 protected:
  PosixStorageTest() {
    std::string pattern = (fs::temp_directory_path() / "deltafin-io-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~PosixStorageTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return join_path(folder_, name); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }

  std::string folder_;
  PosixStorage storage_;
};

std::string read_string(const File& file, uint64_t offset, size_t size) {
  std::string text(size, '?');
  const Result<size_t> got = file.read_at(offset, std::as_writable_bytes(std::span(text)));
  return got ? text.substr(0, *got) : got.error().what;
}

std::string error_of_open(const Storage& storage, const std::string& path) {
  const Result<std::unique_ptr<File>> file = storage.open(path);
  return file ? "opened" : file.error().what;
}

TEST_F(PosixStorageTest, ReadsAnyPieceOfAFile) {
  const std::unique_ptr<File> file = storage_.open(write("f", "0123456789")).value();
  EXPECT_EQ(file->path(), path("f"));
  EXPECT_EQ(file->size(), 10u);
  EXPECT_EQ(read_string(*file, 0, 10), "0123456789");
  EXPECT_EQ(read_string(*file, 3, 4), "3456");
}

TEST_F(PosixStorageTest, ReadsLessAtTheEndAndNothingBehindIt) {
  const std::unique_ptr<File> file = storage_.open(write("f", "0123456789")).value();
  EXPECT_EQ(read_string(*file, 8, 100), "89");
  EXPECT_EQ(read_string(*file, 10, 100), "");
  EXPECT_EQ(read_string(*file, 1ull << 62, 1), "");
  EXPECT_EQ(read_string(*file, UINT64_MAX, 1), "");  // beyond what off_t can say
}

TEST_F(PosixStorageTest, NamesTheFileThatIsMissing) {
  const Result<std::unique_ptr<File>> file = storage_.open(path("gone"));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::Io);
  EXPECT_THAT(file.error().what, AllOf(HasSubstr(path("gone")), HasSubstr("No such file")));
}

TEST_F(PosixStorageTest, SaysWhereADanglingLinkPoints) {
  fs::create_symlink("../blobs/abc", path("model.safetensors"));
  EXPECT_THAT(error_of_open(storage_, path("model.safetensors")),
              AllOf(HasSubstr(path("model.safetensors")), HasSubstr("../blobs/abc")));
}

TEST_F(PosixStorageTest, FollowsLinksToFiles) {
  write("blob", "bytes");
  fs::create_symlink("blob", path("link"));
  const std::unique_ptr<File> file = storage_.open(path("link")).value();
  EXPECT_EQ(read_string(*file, 0, 5), "bytes");
}

TEST_F(PosixStorageTest, RefusesWhatIsNotARegularFile) {
  EXPECT_THAT(error_of_open(storage_, folder_),
              AllOf(HasSubstr(folder_), HasSubstr("not a regular file but a directory")));
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_THAT(error_of_open(storage_, path("fifo")), HasSubstr("not a regular file but a FIFO"));
  EXPECT_THAT(error_of_open(storage_, "/dev/null"), HasSubstr("not a regular file but a device"));
}

TEST_F(PosixStorageTest, AnOpenFileIsNotInheritedByChildren) {
  const std::unique_ptr<File> file = storage_.open(write("f", "x")).value();
  bool found = false;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (fs::read_symlink(entry.path(), ignored) != path("f")) continue;
    found = true;
    EXPECT_NE(fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_TRUE(found);
}

TEST_F(PosixStorageTest, ListsAFolderSortedByName) {
  write("b", "");
  write("a", "");
  fs::create_directory(path("c"));
  fs::create_directory_symlink(path("c"), path("d"));
  fs::create_symlink("nowhere", path("e"));
  const std::vector<DirectoryEntry> entries = storage_.list(folder_).value();
  std::string text;
  for (const DirectoryEntry& entry : entries)
    text += entry.name + (entry.is_directory ? "/ " : " ");
  EXPECT_EQ(text, "a b c/ d/ e ");
}

TEST_F(PosixStorageTest, NamesTheFolderItCannotList) {
  const Result<std::vector<DirectoryEntry>> entries = storage_.list(path("gone"));
  ASSERT_FALSE(entries);
  EXPECT_EQ(entries.error().code, ErrorCode::Io);
  EXPECT_THAT(entries.error().what, AllOf(HasSubstr(path("gone")), HasSubstr("No such file")));
}

TEST_F(PosixStorageTest, TellsWhatExists) {
  write("f", "");
  fs::create_symlink("nowhere", path("dangling"));
  EXPECT_TRUE(storage_.exists(path("f")));
  EXPECT_FALSE(storage_.is_directory(path("f")));
  EXPECT_TRUE(storage_.exists(folder_));
  EXPECT_TRUE(storage_.is_directory(folder_));
  EXPECT_FALSE(storage_.exists(path("gone")));
  EXPECT_FALSE(storage_.exists(path("dangling")));
  EXPECT_FALSE(storage_.is_directory(path("gone")));
}

TEST_F(PosixStorageTest, AReadErrorNamesPathOffsetAndCause) {
  // The memory of this process, from its address 0: a file to open, but nothing is mapped there.
  const Result<std::unique_ptr<File>> file = storage_.open("/proc/self/mem");
  if (!file) GTEST_SKIP() << "no /proc/self/mem here: " << file.error().what;
  EXPECT_THAT(read_string(**file, 16, 8),
              AllOf(HasSubstr("/proc/self/mem"), HasSubstr("8 bytes at offset 16"),
                    HasSubstr("Input/output error")));
}

TEST_F(PosixStorageTest, ReadExactlySaysWhatAShortFileLacks) {
  const std::unique_ptr<File> file = storage_.open(write("f", "0123456789")).value();
  std::string text(8, '?');
  EXPECT_TRUE(read_exactly(*file, 2, std::as_writable_bytes(std::span(text))));
  EXPECT_EQ(text, "23456789");
  const Status status = read_exactly(*file, 5, std::as_writable_bytes(std::span(text)));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::Io);
  EXPECT_THAT(status.error().what,
              AllOf(HasSubstr(path("f")), HasSubstr("expected 8 bytes at offset 5, got 5"),
                    HasSubstr("has only 10 bytes")));
}

TEST_F(PosixStorageTest, ReadExactlyNoticesAFileCutShortSinceItWasOpened) {
  const std::unique_ptr<File> file = storage_.open(write("f", "0123456789")).value();
  fs::resize_file(path("f"), 4);
  std::string text(8, '?');
  const Status status = read_exactly(*file, 0, std::as_writable_bytes(std::span(text)));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what, AllOf(HasSubstr("expected 8 bytes at offset 0, got 4"),
                                         HasSubstr("had 10 bytes when it was opened")));
}

TEST_F(PosixStorageTest, ReadTextReturnsTheWholeFileUpToItsLimit) {
  write("f", "0123456789");
  EXPECT_EQ(read_text(storage_, path("f"), 10).value(), "0123456789");
  const Result<std::string> refused = read_text(storage_, path("f"), 9);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::BadModel);
  EXPECT_THAT(refused.error().what,
              AllOf(HasSubstr(path("f")), HasSubstr("10 bytes"), HasSubstr("more than the 9")));
  EXPECT_FALSE(read_text(storage_, path("gone"), 9));
}

TEST(JoinPath, PutsExactlyOneSeparatorBetween) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("a//", "/b"), "a/b");
  EXPECT_EQ(join_path("/", "b"), "/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(join_path("a", ""), "a/");
  EXPECT_EQ(join_path("a", "b/c"), "a/b/c");
}

}  // namespace
}  // namespace deltafin::io
