// The config.json of Kimi K3 for soak tests.
#pragma once

#include <cstdint>
#include <string>

namespace deltafin::test {

std::string k3_config();

// The first so many layers of it (the first one is dense, every fourth one MLA), with fewer words
// and without its eyes; everything else in its real size.
std::string k3_config(uint32_t layer_count, uint32_t vocab_size);

}  // namespace deltafin::test
