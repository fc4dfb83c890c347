// The engine speaks only in these; text is the business of text/.
#pragma once

#include <cstdint>

namespace deltafin {

using TokenId = int32_t;

}  // namespace deltafin
