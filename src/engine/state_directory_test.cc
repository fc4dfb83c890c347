#include "engine/state_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "state/test_snapshot.h"

namespace deltafin::engine {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class StateDirectoryTest : public testing::Test {
 protected:
  StateDirectoryTest() {
    path_ =
        fs::temp_directory_path() / ("deltafin_states_" + std::to_string(::getpid()) + "_" +
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(path_);
  }
  ~StateDirectoryTest() override { fs::remove_all(path_); }

  StateDirectory open(uint64_t budget_bytes = uint64_t{1} << 30) {
    Result<StateDirectory> directory =
        StateDirectory::open(storage_, path_, owner_, layout_,
                             {.budget_bytes = budget_bytes,
                              .tell = [&](const std::string& what) { told_.push_back(what); }});
    EXPECT_TRUE(directory) << directory.error().what;
    return std::move(*directory);
  }
  // The first `count` tokens of one text.
  KeptState state_of(size_t count, bool with_logits = true) {
    KeptState kept{.sequence = Sequence(state::test::some_tokens(count),
                                        state::test::filled_state(layout_, count)),
                   .next = {}};
    if (with_logits) {
      kept.next.logits = {1, 2, 3, 4, 5};
    } else {
      kept.next.waiting = {4};
    }
    return kept;
  }
  uint64_t loaded(StateDirectory& directory, size_t prompt, uint64_t longer_than = 0) {
    const std::optional<KeptState> kept =
        directory.load(state::test::some_tokens(prompt), longer_than);
    return kept ? kept->sequence.position_count() : 0;
  }
  std::vector<fs::path> files() {
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(path_))
      files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
  }
  fs::path file_of(size_t tokens) {
    for (const fs::path& file : files())
      if (file.filename().string().starts_with(std::to_string(tokens) + "-")) return file;
    return {};
  }
  void make_older(const fs::path& file, std::chrono::hours by) {
    fs::last_write_time(file, fs::file_time_type::clock::now() - by);
  }

  fs::path path_;
  io::PosixStorage storage_;
  state::Layout layout_ = state::test::mixed_layout();
  state::SnapshotOwner owner_ = state::test::owner();
  std::vector<std::string> told_;
};

TEST_F(StateDirectoryTest, WhatWasSavedIsFoundAfterARestart) {
  {
    StateDirectory directory = open();
    EXPECT_EQ(loaded(directory, 100), 0u);
    for (const size_t count : {3u, 40u, 20u}) directory.save(state_of(count));
    EXPECT_EQ(directory.count(), 3u);
  }
  StateDirectory directory = open();
  EXPECT_EQ(directory.count(), 3u);
  EXPECT_EQ(loaded(directory, 100), 40u);
  EXPECT_EQ(loaded(directory, 30), 20u);
  EXPECT_EQ(loaded(directory, 30, 19), 20u);
  EXPECT_EQ(loaded(directory, 30, 20), 0u);
  EXPECT_EQ(loaded(directory, 2), 0u);
  const std::optional<KeptState> kept = directory.load(state::test::some_tokens(21), 0);
  ASSERT_TRUE(kept);
  const KeptState saved = state_of(20);
  EXPECT_EQ(kept->sequence.tokens(), saved.sequence.tokens());
  EXPECT_EQ(kept->next.logits, saved.next.logits);
  EXPECT_EQ(kept->sequence.state().recurrent(1).matrix, saved.sequence.state().recurrent(1).matrix);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(StateDirectoryTest, AnotherTextIsNotFound) {
  StateDirectory directory = open();
  directory.save(state_of(20));
  std::vector<TokenId> other = state::test::some_tokens(30);
  other[7] = 0;
  EXPECT_FALSE(directory.load(other, 0));
}

TEST_F(StateDirectoryTest, AWholePromptIsFoundOnlyWithLogits) {
  StateDirectory directory = open();
  directory.save(state_of(20, /*with_logits=*/false));
  EXPECT_EQ(loaded(directory, 20), 0u);
  EXPECT_EQ(loaded(directory, 21), 20u);
  directory.save(state_of(20));  // replaces it
  EXPECT_EQ(loaded(directory, 20), 20u);
  directory.save(state_of(20, /*with_logits=*/false));  // does not
  EXPECT_EQ(loaded(directory, 20), 20u);
  EXPECT_EQ(directory.count(), 1u);
  EXPECT_EQ(directory.bytes(), fs::file_size(file_of(20)));
}

TEST_F(StateDirectoryTest, WhoWasUsedLongestAgoIsRemovedForANewOne) {
  uint64_t one = 0;
  {
    StateDirectory directory = open();
    for (const size_t count : {10u, 11u, 12u}) directory.save(state_of(count));
    one = directory.bytes() / 3;
  }
  make_older(file_of(11), std::chrono::hours(3));
  make_older(file_of(10), std::chrono::hours(2));
  make_older(file_of(12), std::chrono::hours(1));
  StateDirectory directory = open(4 * one + one / 2);
  EXPECT_EQ(loaded(directory, 11), 11u);  // is the newest now
  directory.save(state_of(13));
  directory.save(state_of(14));
  EXPECT_TRUE(file_of(10).empty());
  EXPECT_FALSE(file_of(11).empty());
  EXPECT_FALSE(file_of(12).empty());
  EXPECT_LE(directory.bytes(), 4 * one + one / 2);

  const StateDirectory smaller = open(2 * one + one / 2);
  EXPECT_EQ(smaller.count(), 2u);
  EXPECT_EQ(files().size(), 2u);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(StateDirectoryTest, WhatIsLargerThanTheBudgetRemovesNothing) {
  StateDirectory directory = open(4'000);
  directory.save(state_of(10));
  directory.save(state_of(1'000));
  EXPECT_EQ(directory.count(), 1u);
  EXPECT_EQ(loaded(directory, 1'001), 10u);
}

TEST_F(StateDirectoryTest, DamagedAndForeignFilesAreLeftAloneAndToldOfOnce) {
  {
    StateDirectory directory = open();
    for (const size_t count : {10u, 20u, 30u}) directory.save(state_of(count));
  }
  // One is damaged behind its header, which is seen when it is read.
  {
    std::fstream file(file_of(30), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-40, std::ios::end);
    file.put('!');
  }
  fs::rename(file_of(20), path_ / ("20-" + std::string(32, '0') + ".state"));
  std::ofstream(path_ / "5-00.state") << "no snapshot";
  std::ofstream(path_ / "notes.txt") << "not ours";
  fs::create_directory(path_ / "answers");
  {
    StateDirectory directory = open();
    ASSERT_THAT(told_, ElementsAre(HasSubstr("5-00.state")));
    EXPECT_EQ(loaded(directory, 40), 10u);
    EXPECT_EQ(loaded(directory, 40), 10u);
    EXPECT_THAT(told_, ElementsAre(HasSubstr("5-00.state"), HasSubstr("/30-")));
  }
  owner_.identity.sha256.fill(std::byte{1});
  told_.clear();
  EXPECT_EQ(open().count(), 0u);
  EXPECT_EQ(told_.size(), 4u);
  EXPECT_EQ(files().size(), 6u);
}

// The name says which tokens a file has; one that lies there under another name is not believed.
TEST_F(StateDirectoryTest, AFileWithOtherTokensThanItsNameSaysIsNotUsed) {
  std::string name;
  {
    StateDirectory directory = open();
    directory.save(state_of(20));
    name = file_of(20).filename();
    KeptState other = state_of(20);
    std::vector<TokenId> tokens = other.sequence.tokens();
    tokens[3] = 0;
    directory.save(
        {.sequence = Sequence(tokens, other.sequence.state().fork()), .next = other.next});
  }
  const std::vector<fs::path> both = files();
  ASSERT_EQ(both.size(), 2u);
  const fs::path foreign = both[both[0].filename() == name ? 1 : 0];
  fs::rename(foreign, path_ / name);
  StateDirectory directory = open();
  EXPECT_EQ(loaded(directory, 30), 0u);
  EXPECT_THAT(told_, ElementsAre(HasSubstr("other tokens than its name says")));
}

TEST_F(StateDirectoryTest, WhatCannotBeWrittenIsToldOfOnceAndFailsNothing) {
  StateDirectory directory = open();
  directory.save(state_of(10));
  fs::remove_all(path_);
  directory.save(state_of(20));
  directory.save(state_of(20));
  EXPECT_EQ(told_.size(), 1u);
  EXPECT_EQ(loaded(directory, 30), 0u);  // the file has gone
  EXPECT_EQ(directory.count(), 0u);
  fs::create_directories(path_);
  directory.save(state_of(20));
  EXPECT_EQ(loaded(directory, 30), 20u);
}

TEST_F(StateDirectoryTest, HalfAFileOfADeadProcessIsRemoved) {
  open();
  const fs::path old = path_ / ".9-00.state.77.partial", young = path_ / ".8-00.state.78.partial";
  for (const fs::path& path : {old, young}) std::ofstream(path) << "half";
  make_older(old, std::chrono::hours(2));
  open();
  EXPECT_THAT(files(), ElementsAre(young));
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(StateDirectoryTest, AFileIsNoFolder) {
  fs::create_directories(path_);
  std::ofstream(path_ / "file") << "x";
  const Result<StateDirectory> directory =
      StateDirectory::open(storage_, path_ / "file", owner_, layout_, {});
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().code, ErrorCode::Usage);
  EXPECT_THAT(directory.error().what, HasSubstr("is no folder"));
}

}  // namespace
}  // namespace deltafin::engine
