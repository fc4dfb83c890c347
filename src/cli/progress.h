// How far something long has come, on standard error: a bar that redraws itself on a terminal, now
// and then a line elsewhere, and nothing at all for what is soon done.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace deltafin::cli {

struct Progress {
  std::string_view what = {};  // "prefill"
  double fraction = 0;         // of the work, 0..1
  std::chrono::nanoseconds elapsed{0};
  std::string_view detail = {};  // "512 of 2,048 tokens"; may be empty
};

// The time left if the rest goes as fast; negative when nobody can tell yet, or nothing is left.
std::chrono::nanoseconds time_left(const Progress& progress);

// "prefill  [######--------------]  30 %  ETA 12 s  512 of 2,048 tokens", cut to `width` columns.
std::string render_bar(const Progress& progress, size_t width);
// "prefill: 30 %, 512 of 2,048 tokens, 12 s left"
std::string render_line(const Progress& progress);

enum class ProgressStyle : uint8_t { Bar, Lines };

class ProgressMeter {
 public:
  using Sink = std::function<void(std::string_view)>;

  // `what` names the work. `clock` must outlive the meter, whose time starts now.
  ProgressMeter(std::string what, ProgressStyle style, const Clock& clock, Sink sink);
  // Erases a bar.
  ~ProgressMeter() { finish(); }
  ProgressMeter(const ProgressMeter&) = delete;
  ProgressMeter& operator=(const ProgressMeter&) = delete;

  // May be called as often as one likes.
  void update(double fraction, std::string_view detail);
  // The work is over, well or not; erases a bar.
  void finish();

 private:
  std::string what_;
  ProgressStyle style_;
  const Clock& clock_;
  Sink sink_;
  std::chrono::nanoseconds start_, last_shown_;
  bool bar_shown_ = false;
};

// A meter on standard error in the style that fits it.
ProgressStyle style_of_standard_error();
void write_to_standard_error(std::string_view text);

}  // namespace deltafin::cli
