#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "cli/output_file.h"
#include "cli/units.h"

namespace deltafin::cli {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

// A bar that appears for a blink is a flicker; a line is worth its place only when one waits.
constexpr nanoseconds kBarAfter = milliseconds(300), kBarEvery = milliseconds(100);
constexpr nanoseconds kLineAfter = milliseconds(2000), kLineEvery = milliseconds(2000);

constexpr size_t kBarCells = 20;
constexpr const char* kEraseLine = "\r\x1b[K";

size_t terminal_width() {
  winsize size = {};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

nanoseconds time_left(const Progress& progress) {
  // The first moments say little about the rest.
  if (progress.fraction <= 0 || progress.fraction >= 1 || progress.elapsed < milliseconds(500))
    return nanoseconds(-1);
  const double ratio = (1 - progress.fraction) / progress.fraction;
  return nanoseconds(static_cast<int64_t>(static_cast<double>(progress.elapsed.count()) * ratio));
}

std::string render_bar(const Progress& progress, size_t width) {
  const double fraction = std::clamp(progress.fraction, 0.0, 1.0);
  const size_t full = static_cast<size_t>(fraction * kBarCells);
  std::string text = fmt::format("{}  [{}{}] {:3.0f} %", progress.what, std::string(full, '#'),
                                 std::string(kBarCells - full, '-'), fraction * 100);
  const nanoseconds left = time_left(progress);
  // In front of the detail, which a narrow terminal may cut.
  if (left >= nanoseconds(0)) text += fmt::format("  ETA {}", human_duration(left));
  if (!progress.detail.empty()) text += fmt::format("  {}", progress.detail);
  // The last column stays free: terminals differ in what happens behind it.
  return text.substr(0, std::max<size_t>(width, 2) - 1);
}

std::string render_line(const Progress& progress) {
  std::string text =
      fmt::format("{}: {:.0f} %", progress.what, std::clamp(progress.fraction, 0.0, 1.0) * 100);
  if (!progress.detail.empty()) text += fmt::format(", {}", progress.detail);
  const nanoseconds left = time_left(progress);
  if (left >= nanoseconds(0)) text += fmt::format(", {} left", human_duration(left));
  return text;
}

ProgressMeter::ProgressMeter(std::string what, ProgressStyle style, const Clock& clock, Sink sink)
    : what_(std::move(what)),
      style_(style),
      clock_(clock),
      sink_(std::move(sink)),
      start_(clock.now()),
      last_shown_(start_) {}

void ProgressMeter::update(double fraction, std::string_view detail) {
  const nanoseconds now = clock_.now();
  const bool bar = style_ == ProgressStyle::Bar;
  if (now - start_ < (bar ? kBarAfter : kLineAfter)) return;
  if (now - last_shown_ < (bar ? kBarEvery : kLineEvery)) return;
  last_shown_ = now;
  const Progress progress{
      .what = what_, .fraction = fraction, .elapsed = now - start_, .detail = detail};
  if (bar) {
    bar_shown_ = true;
    sink_(kEraseLine + render_bar(progress, terminal_width()));
  } else {
    sink_(render_line(progress) + "\n");
  }
}

void ProgressMeter::finish() {
  if (bar_shown_) sink_(kEraseLine);
  bar_shown_ = false;
}

ProgressStyle style_of_standard_error() {
  const char* terminal = std::getenv("TERM");
  const bool is_dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return ::isatty(STDERR_FILENO) && !is_dumb ? ProgressStyle::Bar : ProgressStyle::Lines;
}

void write_to_standard_error(std::string_view text) {
  // There is nobody left to tell when this fails.
  static_cast<void>(write_all(STDERR_FILENO, text));
}

}  // namespace deltafin::cli
