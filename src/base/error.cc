#include "base/error.h"

namespace deltafin {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::Usage:
      return 2;
    case ErrorCode::BadModel:
      return 3;
    case ErrorCode::OverBudget:
      return 4;
    case ErrorCode::Io:
      return 5;
    case ErrorCode::Mismatch:
      return 6;
    case ErrorCode::Cancelled:
      return 130;
  }
  return 2;
}

const char* describe(ErrorCode code) {
  switch (code) {
    case ErrorCode::Usage:
      return "usage error";
    case ErrorCode::BadModel:
      return "bad or incomplete model";
    case ErrorCode::OverBudget:
      return "over the memory budget";
    case ErrorCode::Io:
      return "input/output error";
    case ErrorCode::Mismatch:
      return "verification mismatch";
    case ErrorCode::Cancelled:
      return "interrupted";
  }
  return "error";
}

}  // namespace deltafin
