#include "engine/state_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>

#include "base/sha256.h"
#include "io/published_file.h"

namespace deltafin::engine {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSuffix = ".state";
constexpr size_t kHashBytes = 16;

std::string name_of(uint64_t tokens, const Sha256& sha) {
  const Sha256Digest digest = sha.digest();
  return fmt::format("{}-{}{}", tokens, to_hex(std::span(digest).first(kHashBytes)), kSuffix);
}

std::string name_of(std::span<const TokenId> tokens) {
  Sha256 sha;
  sha.add(std::as_bytes(tokens));
  return name_of(tokens.size(), sha);
}

// A file that io::PublishedFile was writing when its process ended. Nobody writes for an hour.
bool is_left_behind(const std::string& name, fs::file_time_type written) {
  return name.starts_with('.') && name.find(kSuffix) != std::string::npos &&
         name.ends_with(".partial") &&
         written < fs::file_time_type::clock::now() - std::chrono::hours(1);
}

}  // namespace

// --------------------------------------------------------------------------------- the folder ---

Result<StateDirectory> StateDirectory::open(const io::Storage& storage, const std::string& path,
                                            const state::SnapshotOwner& owner,
                                            const state::Layout& layout,
                                            StateDirectoryOptions options) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (!fs::is_directory(path))
    return fail(ErrorCode::Usage,
                fmt::format("{} is no folder and cannot become one: {}", path, failed.message()));
  StateDirectory directory(storage, path, owner, layout, std::move(options));
  TRY_STATUS(directory.look());
  return directory;
}

Status StateDirectory::look() {
  TRY(const std::vector<io::DirectoryEntry> entries, storage_->list(path_));
  std::vector<std::pair<fs::file_time_type, File>> found;
  for (const io::DirectoryEntry& entry : entries) {
    std::error_code gone;
    fs::file_time_type written = fs::last_write_time(path_of(entry.name), gone);
    if (gone) continue;
    if (is_left_behind(entry.name, written)) fs::remove(path_of(entry.name), gone);
    if (entry.is_directory || entry.name.starts_with('.') || !entry.name.ends_with(kSuffix))
      continue;
    if (const std::optional<File> file = recognise(entry.name)) found.push_back({written, *file});
  }
  std::ranges::sort(found, {}, [](const auto& file) { return file.first; });
  for (auto& [written, file] : found) {
    bytes_ += file.bytes;
    files_.push_back(std::move(file));
  }
  make_room(0);
  return {};
}

std::optional<StateDirectory::File> StateDirectory::recognise(const std::string& name) {
  const auto stranger = [&](const std::string& what) {
    tell(what);
    return std::nullopt;
  };
  const Result<std::unique_ptr<io::File>> file = storage_->open(path_of(name));
  if (!file) return stranger(file.error().what);
  const Result<state::SnapshotCounts> counts = state::check_snapshot(**file, owner_);
  if (!counts) return stranger(counts.error().what);
  const std::string beginning = fmt::format("{}-", counts->tokens);
  if (!name.starts_with(beginning) ||
      name.size() != beginning.size() + 2 * kHashBytes + kSuffix.size())
    return stranger(path_of(name) + ": the name is not that of a kept state");
  return File{.name = name,
              .tokens = counts->tokens,
              .bytes = (*file)->size(),
              .has_logits = counts->logits > 0};
}

// ------------------------------------------------------------------------------------ reading ---

std::optional<KeptState> StateDirectory::load(std::span<const TokenId> prompt,
                                              uint64_t longer_than) {
  while (true) {
    const Iterator file = find(prompt, longer_than);
    if (file == files_.end()) return std::nullopt;
    Result<KeptState> kept = read(*file, prompt);
    if (kept) {
      mark_used(file);
      return std::move(*kept);
    }
    // It may still be there for who wants to look at it, but we ask no more.
    tell(kept.error().what);
    forget(file);
  }
}

StateDirectory::Iterator StateDirectory::find(std::span<const TokenId> prompt,
                                              uint64_t longer_than) {
  std::map<uint64_t, std::string> names;  // of the beginnings that have a file's length
  for (const File& file : files_)
    if (file.tokens > longer_than && file.tokens <= prompt.size()) names[file.tokens];
  Sha256 sha;
  size_t hashed = 0;
  for (auto& [tokens, name] : names) {
    sha.add(std::as_bytes(prompt.subspan(hashed, tokens - hashed)));
    hashed = tokens;
    name = name_of(tokens, sha);
  }
  Iterator longest = files_.end();
  for (Iterator file = files_.begin(); file != files_.end(); ++file) {
    const auto name = names.find(file->tokens);
    if (name == names.end() || name->second != file->name) continue;
    if (file->tokens == prompt.size() && !file->has_logits) continue;
    if (longest == files_.end() || file->tokens > longest->tokens) longest = file;
  }
  return longest;
}

Result<KeptState> StateDirectory::read(const File& file, std::span<const TokenId> prompt) const {
  const CancelToken never;
  TRY(const std::unique_ptr<io::File> open, storage_->open(path_of(file.name)));
  TRY(state::Snapshot snapshot, state::read_snapshot(*open, owner_, *layout_, never));
  // By checksums it is what somebody wrote; by its name it would be something else.
  const bool is_as_found = snapshot.tokens.size() == file.tokens &&
                           snapshot.logits.empty() != file.has_logits &&
                           std::ranges::equal(snapshot.tokens, prompt.first(file.tokens));
  if (!is_as_found)
    return fail(ErrorCode::Io, path_of(file.name) + ": holds other tokens than its name says");
  return KeptState{
      .sequence = Sequence(std::move(snapshot.tokens), std::move(snapshot.state)),
      .next = {.waiting = std::move(snapshot.waiting), .logits = std::move(snapshot.logits)}};
}

// ------------------------------------------------------------------------------------ writing ---

void StateDirectory::save(const KeptState& kept) {
  const std::vector<TokenId>& tokens = kept.sequence.tokens();
  const std::string name = name_of(tokens);
  const Iterator same = std::ranges::find(files_, name, &File::name);
  if (same != files_.end() && (same->has_logits || kept.next.logits.empty()))
    return mark_used(same);
  const uint64_t bytes = state::snapshot_bytes(*layout_, {.tokens = tokens.size(),
                                                          .waiting = kept.next.waiting.size(),
                                                          .logits = kept.next.logits.size()});
  if (bytes > options_.budget_bytes) return;
  if (same != files_.end()) forget(same);  // it is replaced
  make_room(bytes);
  if (const Status status = write(name, kept); !status) return tell(status.error().what);
  files_.push_back({.name = name,
                    .tokens = tokens.size(),
                    .bytes = bytes,
                    .has_logits = !kept.next.logits.empty()});
  bytes_ += bytes;
}

Status StateDirectory::write(const std::string& name, const KeptState& kept) const {
  TRY(io::PublishedFile file, io::PublishedFile::create(path_of(name), io::Existing::Replace));
  TRY_STATUS(
      state::write_snapshot(owner_,
                            {.state = kept.sequence.state(),
                             .tokens = kept.sequence.tokens(),
                             .waiting = kept.next.waiting,
                             .logits = kept.next.logits},
                            [&](std::span<const std::byte> bytes) { return file.append(bytes); }));
  return file.publish();
}

void StateDirectory::make_room(uint64_t bytes) {
  while (!files_.empty() && bytes_ + bytes > options_.budget_bytes) {
    std::error_code failed;
    const std::string path = path_of(files_.front().name);
    fs::remove(path, failed);
    if (failed) tell(fmt::format("{}: cannot remove: {}", path, failed.message()));
    forget(files_.begin());
  }
}

void StateDirectory::mark_used(Iterator file) {
  std::error_code gone;
  fs::last_write_time(path_of(file->name), fs::file_time_type::clock::now(), gone);
  std::rotate(file, file + 1, files_.end());
}

void StateDirectory::forget(Iterator file) {
  bytes_ -= file->bytes;
  files_.erase(file);
}

void StateDirectory::tell(const std::string& what) {
  if (told_.insert(what).second && options_.tell) options_.tell(what);
}

}  // namespace deltafin::engine
