#include "state/sequence_state.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace deltafin::state {

namespace {

std::shared_ptr<RecurrentState> make_recurrent(const RecurrentLayout& layout) {
  std::shared_ptr<RecurrentState> state = std::make_shared<RecurrentState>();
  state->window.resize(size_t{layout.window_rows} * layout.window_width);
  state->matrix.resize(layout.matrix_size);
  return state;
}

uint64_t page_count(uint64_t positions) {
  return (positions + kPagePositions - 1) / kPagePositions;
}

}  // namespace

SequenceState::SequenceState(const Layout& layout)
    : layout_(&layout), layers_(layout.layers.size()) {
  for (size_t i = 0; i < layers_.size(); ++i)
    if (const RecurrentLayout* recurrent = std::get_if<RecurrentLayout>(&layout.layers[i]))
      layers_[i].recurrent = make_recurrent(*recurrent);
}

SequenceState SequenceState::fork() const {
  SequenceState copy(*layout_);
  copy.position_count_ = position_count_;
  for (size_t i = 0; i < layers_.size(); ++i) {
    copy.layers_[i].pages = layers_[i].pages;
    copy.layers_[i].pages.resize(
        std::min<size_t>(layers_[i].pages.size(), page_count(position_count_)));
    copy.layers_[i].recurrent = layers_[i].recurrent;
  }
  return copy;
}

std::span<const float> SequenceState::cache_rows(size_t layer, uint64_t page) const {
  const uint64_t first = page * kPagePositions;
  CHECK(first < position_count_);
  const uint64_t rows = std::min<uint64_t>(kPagePositions, position_count_ - first);
  const PagedLayout& paged = std::get<PagedLayout>(layout_->layers[layer]);
  return std::span(layers_[layer].pages[page]->rows).first(rows * paged.row_width);
}

void SequenceState::visit_buffers(const BufferVisitor& visit) const {
  const uint64_t pages = page_count(position_count_);
  for (const Layer& layer : layers_) {
    for (size_t i = 0; i < std::min<size_t>(layer.pages.size(), pages); ++i)
      visit(layer.pages[i].get(), layer.pages[i]->rows.size() * sizeof(float));
    if (layer.recurrent)
      visit(layer.recurrent.get(),
            (layer.recurrent->window.size() + layer.recurrent->matrix.size()) * sizeof(float));
  }
}

Transaction::Transaction(SequenceState& sequence, size_t row_count, ReplayInputs replay)
    : sequence_(&sequence),
      base_(sequence.position_count_),
      row_count_(row_count),
      replay_(replay),
      layers_(sequence.layers_.size()) {
  CHECK(!sequence.open_);
  CHECK(row_count > 0);
  sequence.open_ = true;
  for (size_t i = 0; i < layers_.size(); ++i) {
    SequenceState::Layer& layer = sequence.layers_[i];
    if (const PagedLayout* paged = std::get_if<PagedLayout>(&sequence.layout_->layers[i])) {
      const size_t page_floats = size_t{kPagePositions} * paged->row_width;
      // A fork may share the page that the next row goes into: each side then continues on its own
      // copy.
      const uint64_t first = base_ / kPagePositions;
      if (first < layer.pages.size() && layer.pages[first].use_count() > 1)
        layer.pages[first] = std::make_shared<Page>(*layer.pages[first]);
      while (layer.pages.size() < page_count(base_ + row_count)) {
        layer.pages.push_back(std::make_shared<Page>());
        layer.pages.back()->rows.resize(page_floats);
      }
    } else {
      layers_[i].after = std::move(layer.spare);
      if (!layers_[i].after)
        layers_[i].after = make_recurrent(std::get<RecurrentLayout>(sequence.layout_->layers[i]));
    }
  }
}

Transaction::Transaction(Transaction&& other) noexcept
    : sequence_(std::exchange(other.sequence_, nullptr)),
      base_(other.base_),
      row_count_(other.row_count_),
      replay_(other.replay_),
      layers_(std::move(other.layers_)) {}

Transaction::~Transaction() { close(); }

// Ends the transaction; what was not committed is given back or forgotten.
void Transaction::close() {
  if (sequence_ == nullptr) return;
  for (size_t i = 0; i < layers_.size(); ++i) {
    SequenceState::Layer& layer = sequence_->layers_[i];
    layer.pages.resize(
        std::min<size_t>(layer.pages.size(), page_count(sequence_->position_count_)));
    if (layers_[i].after) layer.spare = std::move(layers_[i].after);
  }
  sequence_->open_ = false;
  sequence_ = nullptr;
}

float* Transaction::cache_row(size_t layer, uint64_t position) {
  CHECK(sequence_ != nullptr);
  CHECK(position < base_ + row_count_);
  const PagedLayout& paged = std::get<PagedLayout>(sequence_->layout_->layers[layer]);
  Page& page = *sequence_->layers_[layer].pages[position / kPagePositions];
  return page.rows.data() + (position % kPagePositions) * paged.row_width;
}

const float* Transaction::cache_page(size_t layer, uint64_t page) const {
  CHECK(sequence_ != nullptr);
  return sequence_->layers_[layer].pages[page]->rows.data();
}

const RecurrentState& Transaction::before(size_t layer) const {
  CHECK(sequence_ != nullptr);
  return *sequence_->layers_[layer].recurrent;
}

RecurrentState& Transaction::after(size_t layer) {
  CHECK(layers_[layer].after != nullptr);
  return *layers_[layer].after;
}

std::span<float> Transaction::keep_inputs(size_t layer, size_t width) {
  CHECK(replay_ == ReplayInputs::Kept);
  layers_[layer].inputs.resize(row_count_ * width);
  return layers_[layer].inputs;
}

std::span<const float> Transaction::kept_inputs(size_t layer) const {
  CHECK(replay_ == ReplayInputs::Kept);
  return layers_[layer].inputs;
}

void Transaction::commit(size_t accepted) {
  CHECK(sequence_ != nullptr);
  CHECK(accepted <= row_count_);
  CHECK(accepted == row_count_ || accepted == 0 || replay_ == ReplayInputs::Kept);
  if (accepted > 0) {
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (!layers_[i].after) continue;
      SequenceState::Layer& layer = sequence_->layers_[i];
      const std::shared_ptr<const RecurrentState> old =
          std::exchange(layer.recurrent, std::move(layers_[i].after));
      // Nobody else (a fork, a snapshot) holds the old buffer: the next transaction writes into it.
      if (old.use_count() == 1) layer.spare = std::const_pointer_cast<RecurrentState>(old);
    }
    sequence_->position_count_ += accepted;
  }
  close();
}

}  // namespace deltafin::state
