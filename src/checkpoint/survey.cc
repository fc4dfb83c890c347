#include "checkpoint/survey.h"

#include <algorithm>

#include "base/check.h"
#include "checkpoint/surveyor.h"

namespace deltafin::checkpoint {

Survey Survey::of(const io::Storage& storage, const std::string& directory) {
  Survey survey;
  survey.directory_ = directory;
  // The surveyor keeps references into the survey, so it must be gone before the survey moves.
  Surveyor(storage, survey).run();
  return survey;
}

Result<Checkpoint> Survey::into_checkpoint() && {
  if (!is_usable()) return std::unexpected(problems_.to_error(directory_));
  // Nothing may be missing without a problem that says so.
  CHECK(contract_ && globals_.is_complete());
  CHECK(std::ranges::all_of(layers_, &Completeness::is_complete));
  return Checkpoint(std::move(directory_), std::move(*contract_), std::move(tables_));
}

Result<Checkpoint> Checkpoint::open(const io::Storage& storage, const std::string& directory) {
  return Survey::of(storage, directory).into_checkpoint();
}

}  // namespace deltafin::checkpoint
