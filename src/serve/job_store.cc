#include "serve/job_store.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "base/sha256.h"
#include "io/file.h"
#include "io/published_file.h"

namespace deltafin::serve {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kSchema = "deltafin.answer.v1";
constexpr const char* kSuffix = ".answer.json";
constexpr uint64_t kFileBytes = 64ull << 20;

}  // namespace

JobStore::JobStore(JobStoreOptions options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {}

std::shared_ptr<Job> JobStore::create(const std::string& id, IdFrom id_from, AnswerForm form) {
  const bool on_disk = id_from == IdFrom::Client && read(id).has_value();
  const std::scoped_lock lock(mutex_);
  forget_old();
  if (on_disk || entries_.contains(id)) return nullptr;
  auto job = std::make_shared<Job>(id, form);
  entries_.emplace(id, Entry{.job = job, .id_from = id_from});
  return job;
}

void JobStore::forget(const std::string& id) {
  const std::scoped_lock lock(mutex_);
  entries_.erase(id);
}

std::shared_ptr<Job> JobStore::find(const std::string& id) {
  {
    const std::scoped_lock lock(mutex_);
    forget_old();
    if (const auto found = entries_.find(id); found != entries_.end()) return found->second.job;
  }
  std::optional<FinishedAnswer> answer = read(id);
  return answer ? std::make_shared<Job>(*std::move(answer)) : nullptr;
}

void JobStore::keep(const std::shared_ptr<Job>& job) {
  const FinishedAnswer answer = job->finished();
  std::unique_lock lock(mutex_);
  Entry& entry = entries_.at(answer.id);
  if (options_.directory && entry.id_from == IdFrom::Client) {
    lock.unlock();
    const Status written = write(answer);
    lock.lock();
    disk_problem_ = written ? "" : written.error().what;
  }
  // It is still there: what was not kept is not forgotten.
  entry.ended = clock_.now();
  entry.bytes = sizeof(Job) + sizeof(Entry) + answer.byte_count();
  entry.number = ++ends_;
  bytes_ += entry.bytes;
  forget_old();
}

size_t JobStore::open_count() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<size_t>(std::ranges::count_if(
      entries_, [](const auto& entry) { return !entry.second.job->ended(); }));
}

uint64_t JobStore::kept_bytes() const {
  const std::scoped_lock lock(mutex_);
  return bytes_;
}

std::string JobStore::disk_problem() const {
  const std::scoped_lock lock(mutex_);
  return disk_problem_;
}

void JobStore::forget_old() {
  const std::chrono::nanoseconds now = clock_.now();
  const auto forget = [&](auto entry) {
    bytes_ -= entry->second.bytes;
    return entries_.erase(entry);
  };
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const bool is_old = entry->second.number != 0 && now - entry->second.ended > options_.keep;
    entry = is_old ? forget(entry) : std::next(entry);
  }
  while (bytes_ > options_.memory_bytes) {
    auto oldest = entries_.end();
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (entry->second.number != 0 &&
          (oldest == entries_.end() || entry->second.number < oldest->second.number))
        oldest = entry;
    }
    if (oldest == entries_.end()) return;
    forget(oldest);
  }
}

// An id is whatever a client likes; the name of a file is not.
std::string JobStore::file_of(const std::string& id) const {
  Sha256 hash;
  hash.add(std::as_bytes(std::span(id)));
  return io::join_path(*options_.directory, to_hex(hash.digest()) + kSuffix);
}

Status JobStore::write(const FinishedAnswer& answer) const {
  make_room_on_disk();
  TRY(io::PublishedFile file, io::PublishedFile::create(file_of(answer.id), io::Existing::Replace));
  const json content = {{"schema", kSchema},
                        {"id", answer.id},
                        {"stream", answer.form == AnswerForm::Stream},
                        {"status", answer.status},
                        {"pieces", answer.pieces}};
  TRY_STATUS(file.append(content.dump(-1, ' ', false, json::error_handler_t::replace)));
  return file.publish();
}

std::optional<FinishedAnswer> JobStore::read(const std::string& id) const {
  if (!options_.directory) return std::nullopt;
  const io::PosixStorage storage;
  const std::string path = file_of(id);
  if (!storage.exists(path)) return std::nullopt;
  const Result<std::string> text = io::read_text(storage, path, kFileBytes);
  if (!text) return std::nullopt;
  // A file that somebody damaged is an answer that is not there.
  const json content = json::parse(*text, nullptr, false);
  try {
    if (content.at("schema") != kSchema || content.at("id") != id) return std::nullopt;
    FinishedAnswer answer{
        .id = id,
        .form = content.at("stream").get<bool>() ? AnswerForm::Stream : AnswerForm::Whole,
        .status = content.at("status").get<unsigned>(),
        .pieces = content.at("pieces").get<std::vector<std::string>>()};
    if (answer.form == AnswerForm::Whole && answer.pieces.size() != 1) return std::nullopt;
    return answer;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

void JobStore::make_room_on_disk() const {
  struct Old {
    fs::file_time_type time;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<Old> files;
  uint64_t total = 0;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(*options_.directory, ignored)) {
    if (!entry.path().string().ends_with(kSuffix)) continue;
    files.push_back({entry.last_write_time(ignored), entry.file_size(ignored), entry.path()});
    total += files.back().bytes;
  }
  std::ranges::sort(files, {}, &Old::time);
  for (const Old& file : files) {
    if (total <= options_.disk_bytes) return;
    fs::remove(file.path, ignored);
    total -= file.bytes;
  }
}

}  // namespace deltafin::serve
