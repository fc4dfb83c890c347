// The floating-point control register. Canonical arithmetic needs round-to-nearest-even and
// subnormals kept; a library built with fast-math can flip this when it is loaded.
#pragma once

namespace deltafin {

// Sets round-to-nearest-even, subnormals kept, for the calling thread.
void set_canonical_float_control();

// Whether the calling thread has exactly that.
bool float_control_is_canonical();

}  // namespace deltafin
