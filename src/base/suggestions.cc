#include "base/suggestions.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace deltafin {

namespace {

// What a word is compared as.
std::string bare(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  std::string result;
  for (const char c : word) {
    const bool upper = c >= 'A' && c <= 'Z';
    result += c == '_' ? '-' : upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

// One typo in a short word, two in an ordinary one, three in a long one.
size_t tolerance(size_t size) { return size <= 3 ? 1 : size <= 8 ? 2 : 3; }

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  // Rows of the usual table: two before, before, and this one.
  std::vector<size_t> earlier(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  std::iota(previous.begin(), previous.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({replaced, previous[j] + 1, current[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], earlier[j - 2] + 1);
    }
    std::swap(earlier, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates) {
  const std::string wanted = bare(word);
  if (wanted.empty()) return std::nullopt;
  std::optional<std::string> best, completed;
  size_t best_distance = tolerance(wanted.size()) + 1;
  size_t completed_count = 0;
  for (const std::string& candidate : candidates) {
    const std::string name = bare(candidate);
    const size_t distance = edit_distance(wanted, name);
    // A word of which nothing is left is no typo.
    if (distance < best_distance && distance < name.size()) {
      best_distance = distance;
      best = candidate;
    }
    // One letter may begin anything.
    if (wanted.size() > 1 && name.starts_with(wanted)) {
      completed = candidate;
      ++completed_count;
    }
  }
  if (best) return best;
  return completed_count == 1 ? completed : std::nullopt;
}

}  // namespace deltafin
