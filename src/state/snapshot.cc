#include "state/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "base/limits.h"
#include "base/sha256.h"

namespace deltafin::state {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::string_view kMagic = "DLTFSNAP";
constexpr uint32_t kVersion = 1;
constexpr size_t kArithmeticBytes = 16;

// The first bytes of a file, as they lie there.
struct FixedHeader {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t layer_count;
  std::array<char, kArithmeticBytes> arithmetic;  // padded with zeros
  Sha256Digest identity;
  uint64_t token_count;
  uint64_t waiting_count;
  uint64_t logits_count;
  uint64_t file_bytes;
};
static_assert(sizeof(FixedHeader) == 96 && std::has_unique_object_representations_v<FixedHeader>);

enum class LayerKind : uint32_t { Paged = 1, Recurrent = 2 };

// One a layer, behind the fixed header.
struct LayerEntry {
  uint32_t kind;
  uint32_t width;        // of a cache row, or of the window
  uint32_t window_rows;  // 0 for paged layers
  uint32_t zero;
  uint64_t matrix_size;  // 0 for paged layers
  uint64_t bytes;        // of the layer's section
  bool operator==(const LayerEntry&) const = default;
};
static_assert(sizeof(LayerEntry) == 32 && std::has_unique_object_representations_v<LayerEntry>);

struct Header {
  FixedHeader fixed;
  std::vector<LayerEntry> layers;
};

LayerEntry entry_of(const LayerLayout& layout, uint64_t token_count) {
  if (const PagedLayout* paged = std::get_if<PagedLayout>(&layout))
    return {.kind = uint32_t(LayerKind::Paged),
            .width = paged->row_width,
            .window_rows = 0,
            .zero = 0,
            .matrix_size = 0,
            .bytes = token_count * paged->row_width * sizeof(float)};
  const RecurrentLayout& recurrent = std::get<RecurrentLayout>(layout);
  const uint64_t window = uint64_t{recurrent.window_rows} * recurrent.window_width;
  return {.kind = uint32_t(LayerKind::Recurrent),
          .width = recurrent.window_width,
          .window_rows = recurrent.window_rows,
          .zero = 0,
          .matrix_size = recurrent.matrix_size,
          .bytes = (window + recurrent.matrix_size) * sizeof(float)};
}

std::array<char, kArithmeticBytes> padded(std::string_view arithmetic) {
  std::array<char, kArithmeticBytes> bytes{};
  std::ranges::copy(arithmetic, bytes.begin());
  return bytes;
}

std::string_view text_of(const std::array<char, kArithmeticBytes>& bytes) {
  return {bytes.data(), strnlen(bytes.data(), bytes.size())};
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// ------------------------------------------------------------------------------------ writing ---

class Writer {
 public:
  explicit Writer(const SnapshotSink& sink) : sink_(sink) {}

  Status add(std::span<const std::byte> bytes) {
    sha_.add(bytes);
    return sink_(bytes);
  }
  // Of everything before it.
  Status add_checksum() { return add(sha_.digest()); }

 private:
  const SnapshotSink& sink_;
  Sha256 sha_;
};

Status write_header(Writer& writer, const SnapshotOwner& owner, const SnapshotView& view) {
  const Layout& layout = view.state.layout();
  FixedHeader fixed{.magic = {},
                    .version = kVersion,
                    .layer_count = uint32_t(layout.layers.size()),
                    .arithmetic = padded(owner.arithmetic),
                    .identity = owner.identity.sha256,
                    .token_count = view.tokens.size(),
                    .waiting_count = view.waiting.size(),
                    .logits_count = view.logits.size(),
                    .file_bytes = snapshot_bytes(layout, {.tokens = view.tokens.size(),
                                                          .waiting = view.waiting.size(),
                                                          .logits = view.logits.size()})};
  std::ranges::copy(kMagic, fixed.magic.begin());
  TRY_STATUS(writer.add(bytes_of(fixed)));
  for (const LayerLayout& layer : layout.layers)
    TRY_STATUS(writer.add(bytes_of(entry_of(layer, view.tokens.size()))));
  return writer.add_checksum();
}

Status write_layer(Writer& writer, const SequenceState& state, size_t layer) {
  if (std::holds_alternative<PagedLayout>(state.layout().layers[layer])) {
    for (uint64_t page = 0; page * kPagePositions < state.position_count(); ++page)
      TRY_STATUS(writer.add(std::as_bytes(state.cache_rows(layer, page))));
    return {};
  }
  const RecurrentState& recurrent = state.recurrent(layer);
  TRY_STATUS(writer.add(std::as_bytes(std::span(recurrent.window))));
  return writer.add(std::as_bytes(std::span(recurrent.matrix)));
}

// ------------------------------------------------------------------------------------ reading ---

constexpr const char* kAgain = "read the prompt again without --load-state, and save a new state";

class Reader {
 public:
  Reader(const io::File& file, const SnapshotOwner& owner, const CancelToken& cancel)
      : file_(file), owner_(owner), cancel_(cancel) {}

  Result<Header> read_header() {
    Header header{};
    if (file_.size() < sizeof(FixedHeader)) return not_a_snapshot();
    TRY_STATUS(read(std::as_writable_bytes(std::span(&header.fixed, 1))));
    const FixedHeader& fixed = header.fixed;
    if (!std::ranges::equal(fixed.magic, kMagic)) return not_a_snapshot();
    if (fixed.version != kVersion)
      return refuse(fmt::format("is a saved state of format version {}, expected {}", fixed.version,
                                kVersion));
    const uint64_t table_bytes = uint64_t{fixed.layer_count} * sizeof(LayerEntry);
    if (fixed.layer_count > limits::kLayers)
      return damaged(
          fmt::format("{} layers, expected at most {}", fixed.layer_count, limits::kLayers));
    if (file_.size() < sizeof(FixedHeader) + table_bytes + sizeof(Sha256Digest))
      return damaged(fmt::format("{} bytes, too few for its header", file_.size()));
    header.layers.resize(fixed.layer_count);
    TRY_STATUS(read(std::as_writable_bytes(std::span(header.layers))));
    TRY_STATUS(check_checksum("header"));
    TRY_STATUS(check_owner(fixed));
    TRY_STATUS(check_counts(fixed));
    return header;
  }

  Status check_layout(const Header& header, const Layout& layout) const {
    if (header.layers.size() != layout.layers.size())
      return refuse(fmt::format("has the state of {} layers, expected {}", header.layers.size(),
                                layout.layers.size()));
    for (size_t i = 0; i < header.layers.size(); ++i)
      if (header.layers[i] != entry_of(layout.layers[i], header.fixed.token_count))
        return refuse(fmt::format("has a layer {} of another shape than this model's", i));
    const uint64_t expected = snapshot_bytes(layout, counts_of(header.fixed));
    if (header.fixed.file_bytes != expected)
      return damaged(fmt::format("a header that promises {} bytes, expected {}",
                                 header.fixed.file_bytes, expected));
    return {};
  }

  Result<std::vector<TokenId>> read_tokens(uint64_t count) {
    std::vector<TokenId> tokens(count);
    TRY_STATUS(read(std::as_writable_bytes(std::span(tokens))));
    const auto outside = std::ranges::find_if(
        tokens, [&](TokenId id) { return id < 0 || uint64_t(id) >= owner_.vocab_size; });
    if (outside != tokens.end())
      return damaged(fmt::format("token id {} in place {}, expected 0 to {}", *outside,
                                 outside - tokens.begin() + 1, owner_.vocab_size - 1));
    return tokens;
  }

  Result<std::vector<float>> read_logits(uint64_t count) {
    std::vector<float> logits(count);
    TRY_STATUS(read(std::as_writable_bytes(std::span(logits))));
    if (!std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); }))
      return damaged("logits that are not finite");
    return logits;
  }

  Status read_layer(Transaction& transaction, size_t layer, const LayerEntry& entry) {
    if (entry.kind == uint32_t(LayerKind::Paged)) {
      // The rows of a page lie side by side.
      for (uint64_t row = 0; row < transaction.row_count(); row += kPagePositions) {
        const uint64_t rows = std::min<uint64_t>(kPagePositions, transaction.row_count() - row);
        const std::span<float> values(transaction.cache_row(layer, row), rows * entry.width);
        TRY_STATUS(read(std::as_writable_bytes(values)));
      }
      return {};
    }
    RecurrentState& after = transaction.after(layer);
    TRY_STATUS(read(std::as_writable_bytes(std::span(after.window))));
    return read(std::as_writable_bytes(std::span(after.matrix)));
  }

  // The next bytes must be the checksum of all before them.
  Status check_checksum(const char* what) {
    const Sha256Digest expected = sha_.digest();
    Sha256Digest found{};
    TRY_STATUS(read(found));
    if (found != expected)
      return damaged(fmt::format("a {} with the checksum {}.., expected {}..", what,
                                 to_hex(std::span(found).first(4)),
                                 to_hex(std::span(expected).first(4))));
    return {};
  }

  static SnapshotCounts counts_of(const FixedHeader& fixed) {
    return {
        .tokens = fixed.token_count, .waiting = fixed.waiting_count, .logits = fixed.logits_count};
  }

 private:
  Status read(std::span<std::byte> into) {
    TRY_STATUS(cancel_.check());
    TRY_STATUS(io::read_exactly(file_, at_, into));
    at_ += into.size();
    sha_.add(into);
    return {};
  }

  Status check_owner(const FixedHeader& fixed) const {
    if (fixed.arithmetic != padded(owner_.arithmetic))
      return refuse(fmt::format("was computed with the arithmetic \"{}\", expected \"{}\"",
                                text_of(fixed.arithmetic), owner_.arithmetic));
    if (fixed.identity != owner_.identity.sha256)
      return refuse(fmt::format("was saved from another model: identity {}.., expected {}..",
                                to_hex(std::span(fixed.identity).first(4)),
                                to_hex(std::span(owner_.identity.sha256).first(4))));
    return {};
  }

  Status check_counts(const FixedHeader& fixed) const {
    const uint64_t limit = std::min(owner_.max_positions, limits::kPositions);
    if (fixed.token_count < 1 || fixed.token_count > limit)
      return damaged(fmt::format("{} tokens, expected 1 to {}", fixed.token_count, limit));
    if (fixed.waiting_count > limit)
      return damaged(
          fmt::format("{} tokens that wait, expected at most {}", fixed.waiting_count, limit));
    const uint64_t logits = fixed.waiting_count == 0 ? owner_.vocab_size : 0;
    if (fixed.logits_count != logits)
      return damaged(fmt::format("{} logits, expected {}", fixed.logits_count, logits));
    if (fixed.file_bytes != file_.size())
      return damaged(fmt::format("{} bytes, expected {}", file_.size(), fixed.file_bytes));
    return {};
  }

  std::unexpected<Error> not_a_snapshot() const {
    return fail(ErrorCode::Usage,
                fmt::format("{}: is not a saved state of deltafin\n  give a file that "
                            "run --save-state has written",
                            file_.path()));
  }
  std::unexpected<Error> refuse(const std::string& what) const {
    return fail(ErrorCode::Usage, fmt::format("{}: {}\n  {}", file_.path(), what, kAgain));
  }
  std::unexpected<Error> damaged(const std::string& found) const {
    return fail(ErrorCode::Io, fmt::format("{}: the saved state is damaged: found {}\n  {}",
                                           file_.path(), found, kAgain));
  }

  const io::File& file_;
  const SnapshotOwner& owner_;
  const CancelToken& cancel_;
  uint64_t at_ = 0;
  Sha256 sha_;
};

}  // namespace

uint64_t snapshot_bytes(const Layout& layout, const SnapshotCounts& counts) {
  return sizeof(FixedHeader) + layout.layers.size() * sizeof(LayerEntry) + sizeof(Sha256Digest) +
         (counts.tokens + counts.waiting) * sizeof(TokenId) + counts.logits * sizeof(float) +
         counts.tokens * layout.bytes_per_position() + layout.fixed_bytes() + sizeof(Sha256Digest);
}

Status write_snapshot(const SnapshotOwner& owner, const SnapshotView& view,
                      const SnapshotSink& sink) {
  CHECK(owner.arithmetic.size() <= kArithmeticBytes);
  CHECK(!view.tokens.empty() && view.tokens.size() == view.state.position_count());
  CHECK(view.waiting.empty() ? view.logits.size() == owner.vocab_size : view.logits.empty());
  Writer writer(sink);
  TRY_STATUS(write_header(writer, owner, view));
  TRY_STATUS(writer.add(std::as_bytes(view.tokens)));
  TRY_STATUS(writer.add(std::as_bytes(view.waiting)));
  TRY_STATUS(writer.add(std::as_bytes(view.logits)));
  for (size_t i = 0; i < view.state.layout().layers.size(); ++i)
    TRY_STATUS(write_layer(writer, view.state, i));
  return writer.add_checksum();
}

Result<SnapshotCounts> check_snapshot(const io::File& file, const SnapshotOwner& owner) {
  const CancelToken never;
  TRY(const Header header, Reader(file, owner, never).read_header());
  return Reader::counts_of(header.fixed);
}

Result<Snapshot> read_snapshot(const io::File& file, const SnapshotOwner& owner,
                               const Layout& layout, const CancelToken& cancel) {
  Reader reader(file, owner, cancel);
  TRY(const Header header, reader.read_header());
  TRY_STATUS(reader.check_layout(header, layout));
  Snapshot snapshot{.state = SequenceState(layout), .tokens = {}, .waiting = {}, .logits = {}};
  TRY(snapshot.tokens, reader.read_tokens(header.fixed.token_count));
  TRY(snapshot.waiting, reader.read_tokens(header.fixed.waiting_count));
  TRY(snapshot.logits, reader.read_logits(header.fixed.logits_count));
  // Reading is a pass that computes nothing: without its commit nothing has happened.
  Transaction transaction(snapshot.state, snapshot.tokens.size(), ReplayInputs::Dropped);
  for (size_t i = 0; i < header.layers.size(); ++i)
    TRY_STATUS(reader.read_layer(transaction, i, header.layers[i]));
  TRY_STATUS(reader.check_checksum("content"));
  transaction.commit(snapshot.tokens.size());
  return snapshot;
}

}  // namespace deltafin::state
