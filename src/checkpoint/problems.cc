#include "checkpoint/problems.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace deltafin::checkpoint {
namespace {

constexpr size_t kShownInError = 8;

bool is_error(const Problem& problem) { return problem.severity == Severity::Error; }

}  // namespace

const char* name_of(ProblemKind kind) {
  switch (kind) {
    case ProblemKind::NotACheckpoint:
      return "not-a-checkpoint";
    case ProblemKind::BadConfig:
      return "bad-config";
    case ProblemKind::BadIndex:
      return "bad-index";
    case ProblemKind::UnfinishedDownload:
      return "unfinished-download";
    case ProblemKind::MissingShard:
      return "missing-shard";
    case ProblemKind::PointerFile:
      return "pointer-file";
    case ProblemKind::UnreadableFile:
      return "unreadable-file";
    case ProblemKind::BadHeader:
      return "bad-header";
    case ProblemKind::CutFile:
      return "cut-file";
    case ProblemKind::IndexMismatch:
      return "index-mismatch";
    case ProblemKind::WrongTensor:
      return "wrong-tensor";
    case ProblemKind::UnexpectedTensor:
      return "unexpected-tensor";
    case ProblemKind::DuplicateTensor:
      return "duplicate-tensor";
    case ProblemKind::MissingTensor:
      return "missing-tensor";
    case ProblemKind::UnusedFile:
      return "unused-file";
    case ProblemKind::Count:
      break;
  }
  return "unknown";
}

std::string to_line(const Problem& problem) {
  std::string line;
  if (!problem.file.empty()) line += problem.file + ": ";
  if (!problem.tensor.empty()) line += "tensor " + problem.tensor + ": ";
  return line + problem.message;
}

ProblemKind kind_of_read_error(const io::Storage& storage, const std::string& directory,
                               const std::string& file, const Error& error) {
  if (!storage.exists(io::join_path(directory, file))) return ProblemKind::MissingShard;
  if (error.code == ErrorCode::Io) return ProblemKind::UnreadableFile;
  return file.ends_with(".index.json") ? ProblemKind::BadIndex : ProblemKind::BadConfig;
}

void ProblemList::add(Problem problem) {
  const bool keep = keeps_another(problem.kind);
  ++counts_[static_cast<size_t>(problem.kind)];
  if (is_error(problem)) ++error_count_;
  if (keep) kept_.push_back(std::move(problem));
}

Error ProblemList::to_error(const std::string& directory) const {
  CHECK(error_count_ > 0);
  std::string lines;
  std::vector<std::string> advice;
  size_t shown = 0;
  bool only_io = true;
  for (const Problem& problem : kept_) {
    if (!is_error(problem)) continue;
    only_io = only_io && problem.kind == ProblemKind::UnreadableFile;
    if (shown == kShownInError) continue;
    ++shown;
    lines += (error_count_ == 1 ? "" : "\n  ") + to_line(problem);
    const bool is_new = std::find(advice.begin(), advice.end(), problem.advice) == advice.end();
    if (!problem.advice.empty() && is_new) advice.push_back(problem.advice);
  }
  std::string what = directory + ": ";
  if (error_count_ > 1) {
    what += fmt::format("{} problems keep this checkpoint from opening", error_count_);
  }
  what += lines;
  if (error_count_ > shown) {
    what += fmt::format("\n  and {} more; `deltafin inspect` lists them", error_count_ - shown);
  }
  for (const std::string& line : advice) what += "\n  " + line;
  return {only_io ? ErrorCode::Io : ErrorCode::BadModel, std::move(what)};
}

}  // namespace deltafin::checkpoint
