// "Did you mean ...?"
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace deltafin {

// How many single edits lead from one word to the other: a character inserted, dropped or replaced,
// or two neighbours swapped.
size_t edit_distance(std::string_view a, std::string_view b);

// The candidate that somebody who typed `word` most likely meant: the one that differs least, if it
// differs by little for its length, or else the only one that `word` is the beginning of. Dashes in
// front do not count, underscores are dashes, and case does not matter.
std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates);

}  // namespace deltafin
