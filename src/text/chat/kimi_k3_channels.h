// The output of Kimi K3: XTML elements (kimi_k3_template.h).
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "text/chat/channels.h"

namespace deltafin::text {

inline constexpr std::array<std::string_view, 4> kKimiK3Markers = {"<|open|>", "<|close|>",
                                                                   "<|sep|>", "<|end_of_msg|>"};

// Output begins within `think` or within `response`. Where only text may stand, a marker that makes
// no element that may follow there is text. Nothing is trimmed.
std::unique_ptr<ChannelGrammar> kimi_k3_grammar(ChannelStart start);

}  // namespace deltafin::text
