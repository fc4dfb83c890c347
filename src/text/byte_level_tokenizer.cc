#include "text/byte_level_tokenizer.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "checkpoint/config_fields.h"
#include "text/byte_alphabet.h"
#include "text/byte_pair_tokenizer.h"
#include "text/merge_list.h"
#include "text/qwen_pattern.h"
#include "text/tokenizer_json.h"

namespace deltafin::text {

namespace {

using checkpoint::Fields;
using checkpoint::FixedField;
using checkpoint::Presence::Optional;
using checkpoint::Presence::Required;

constexpr const char* kVocab = "model.vocab";
constexpr const char* kMerges = "model.merges";

std::unexpected<Error> refuse(std::string what) {
  return fail(ErrorCode::BadModel, std::move(what));
}

Result<RankTable> read_tokens(const TokenizerJson& file) {
  const std::vector<TokenizerJson::Entry>& vocab = file.vocab();
  if (vocab.empty())
    return refuse(fmt::format("{}: found nothing, expected {{\"token\": id, ...}}", kVocab));
  std::vector<const TokenizerJson::Entry*> by_id(vocab.size());
  size_t bytes_max = 0;
  for (const TokenizerJson::Entry& entry : vocab) {
    if (entry.id >= vocab.size())
      return refuse(fmt::format(
          "{}: found id {} of {}, expected ids from 0 to {} without a gap for its {} "
          "tokens",
          kVocab, entry.id, shown_letters(entry.letters), vocab.size() - 1, vocab.size()));
    if (const TokenizerJson::Entry* other = std::exchange(by_id[entry.id], &entry))
      return refuse(
          fmt::format("{}: found id {} of {} and of {}, expected an id of its own for each", kVocab,
                      entry.id, shown_letters(other->letters), shown_letters(entry.letters)));
    bytes_max += entry.letters.size();
  }
  RankTable tokens(vocab.size(), bytes_max);
  std::string bytes;
  for (const TokenizerJson::Entry* entry : by_id) {
    bytes.clear();
    if (!append_bytes_of_letters(entry->letters, bytes) || bytes.empty())
      return refuse(fmt::format("{}: found {}, expected letters of the byte-level alphabet alone",
                                kVocab, shown_letters(entry->letters)));
    if (tokens.add(bytes))
      return refuse(
          fmt::format("{}: found {} twice, expected once", kVocab, shown_letters(entry->letters)));
  }
  Status complete = check_single_bytes(tokens);
  if (!complete) return std::unexpected(std::move(complete).error().within(kVocab));
  return tokens;
}

Status add_merges(const TokenizerJson& file, MergeListVocabulary& vocabulary) {
  const RankTable& tokens = vocabulary.tokens();
  std::string bytes;
  for (const auto& [left, right] : file.merges()) {
    const auto refuse_this = [&](const char* what) {
      return refuse(fmt::format("{}[{}]: found {} and {}, {}", kMerges, vocabulary.merge_count(),
                                shown_letters(left), shown_letters(right), what));
    };
    bytes.clear();
    bool are_letters = append_bytes_of_letters(left, bytes);
    const size_t left_size = bytes.size();
    are_letters = are_letters && append_bytes_of_letters(right, bytes);
    if (!are_letters) return refuse_this("expected letters of the byte-level alphabet alone");
    const std::string_view both = bytes;
    const std::optional<Rank> left_token = tokens.find(both.substr(0, left_size));
    const std::optional<Rank> right_token = tokens.find(both.substr(left_size));
    const std::optional<Rank> token = tokens.find(both);
    if (!left_token || !right_token || !token)
      return refuse_this("expected two tokens of the vocabulary that make a third");
    if (!vocabulary.add(*left_token, *right_token, *token))
      return refuse_this("which an earlier merge has already");
  }
  return {};
}

Status check_all_read(const Fields& fields) {
  const std::vector<std::string> unread = fields.unread();
  if (unread.empty()) return {};
  return refuse(
      fmt::format("{}: found a field that deltafin does not know, and that might change "
                  "the tokens; expected none",
                  unread.front()));
}

Result<bool> read_ignore_merges(Fields& root) {
  static constexpr FixedField kFixed[] = {
      {"type", "\"BPE\"", Required, "no other models are supported"},
      {"dropout", "null", Optional, "tokens must not be random"},
      {"unk_token", "null", Optional, "a byte-level vocabulary knows every byte"},
      {"fuse_unk", "false", Optional, "a byte-level vocabulary knows every byte"},
      {"byte_fallback", "false", Optional, "a byte-level vocabulary knows every byte"},
  };
  static constexpr const char* kAffixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
  TRY(Fields model, root.object("model"));
  TRY_STATUS(model.must_equal(kFixed));
  for (const char* name : kAffixes)
    if (const nlohmann::json* affix = model.find(name); affix != nullptr && *affix != "")
      return model.refuse(name, "null or \"\" (tokens have no affixes)");
  TRY(const std::optional<bool> ignore_merges, model.optional_flag("ignore_merges"));
  TRY_STATUS(check_all_read(model));
  return ignore_merges.value_or(false);
}

Result<Normalization> read_normalization(Fields& root) {
  TRY(std::optional<Fields> normalizer, root.optional_object("normalizer"));
  if (!normalizer) return Normalization::None;
  TRY_STATUS(normalizer->must_equal({"type", "\"NFC\"", Required, "no other is supported"}));
  TRY_STATUS(check_all_read(*normalizer));
  return Normalization::Nfc;
}

// The object in place `index` of the list `name`.
Result<Fields> item_of(const nlohmann::json& list, const std::string& name, size_t index) {
  const std::string place = fmt::format("{}[{}]", name, index);
  if (!list[index].is_object()) return refuse(place + ": found no object, expected one");
  return Fields(list[index], place + ".");
}

Status check_byte_level(Fields& fields) {
  static constexpr FixedField kFixed[] = {
      {"type", "\"ByteLevel\"", Required, "the vocabulary is one of bytes"},
      {"add_prefix_space", "false", Required, "text is taken as it is"},
      {"use_regex", "false", Required, "Split comes before, with the model's own pattern"},
  };
  TRY_STATUS(fields.must_equal(kFixed));
  fields.ignore("trim_offsets");  // about where tokens stand in the text
  return check_all_read(fields);
}

Result<std::string> read_pattern(Fields& root) {
  static constexpr FixedField kFixed[] = {
      {"type", "\"Split\"", Required, "no other is supported here"},
      {"behavior", "\"Isolated\"", Required, "each match is a piece"},
      {"invert", "false", Required, "each match is a piece"},
  };
  constexpr const char* kExpected =
      "a Sequence of Split with a pattern and ByteLevel, as Qwen publishes it";
  TRY(std::optional<Fields> pre_tokenizer, root.optional_object("pre_tokenizer"));
  if (!pre_tokenizer) return root.refuse("pre_tokenizer", kExpected);
  TRY_STATUS(pre_tokenizer->must_equal({"type", "\"Sequence\"", Required, kExpected}));
  const nlohmann::json* steps = pre_tokenizer->find("pretokenizers");
  if (steps == nullptr || !steps->is_array() || steps->size() != 2)
    return pre_tokenizer->refuse("pretokenizers", kExpected);
  TRY_STATUS(check_all_read(*pre_tokenizer));
  const std::string place = pre_tokenizer->full_name("pretokenizers");
  TRY(Fields split, item_of(*steps, place, 0));
  TRY(Fields byte_level, item_of(*steps, place, 1));
  TRY_STATUS(split.must_equal(kFixed));
  TRY(Fields pattern, split.object("pattern"));
  TRY_STATUS(check_all_read(split));
  TRY(const std::string regex, pattern.word("Regex"));
  TRY_STATUS(check_all_read(pattern));
  TRY_STATUS(check_byte_level(byte_level));
  const std::optional<std::string> known = published_split_pattern(regex);
  if (!known)
    return pattern.refuse("Regex",
                          "the pattern of Qwen2, 2.5 and 3 or that of Qwen3.5, to the "
                          "letter (others have not been compared)");
  return *known;
}

// One of `added_tokens`.
struct AddedToken {
  std::string spelling;
  bool is_special;
};

Result<AddedToken> read_added_token(Fields& fields) {
  static constexpr FixedField kFixed[] = {
      {"single_word", "false", Optional, "control tokens are found anywhere"},
      {"lstrip", "false", Optional, "spaces around control tokens stay"},
      {"rstrip", "false", Optional, "spaces around control tokens stay"},
      {"normalized", "false", Optional, "control tokens are looked for in the text as it is"},
  };
  AddedToken token;
  TRY(token.spelling, fields.word("content"));
  if (token.spelling.empty()) return fields.refuse("content", "a text that is not empty");
  TRY_STATUS(fields.must_equal(kFixed));
  TRY(const std::optional<bool> special, fields.optional_flag("special"));
  token.is_special = special.value_or(false);
  fields.ignore("id");  // read by the caller
  TRY_STATUS(check_all_read(fields));
  return token;
}

// The tokens in the order of their ids, which start at `first_id`.
Result<std::vector<AddedToken>> read_added_tokens(Fields& root, size_t first_id) {
  const nlohmann::json* list = root.find("added_tokens");
  if (list == nullptr) return std::vector<AddedToken>();
  if (!list->is_array()) return root.refuse("added_tokens", "a list");
  std::vector<std::optional<AddedToken>> by_place(list->size());
  for (size_t i = 0; i < list->size(); ++i) {
    TRY(Fields fields, item_of(*list, "added_tokens", i));
    TRY(const uint64_t id,
        fields.integer("id", {.least = first_id, .most = first_id + list->size() - 1}));
    std::optional<AddedToken>& place = by_place[id - first_id];
    if (place) return fields.refuse("id", "an id that no token before it has");
    TRY(place, read_added_token(fields));
  }
  std::vector<AddedToken> tokens;
  for (std::optional<AddedToken>& token : by_place) tokens.push_back(std::move(*token));
  return tokens;
}

Status check_the_rest(Fields& root) {
  static constexpr FixedField kFixed[] = {
      {"version", "\"1.0\"", Required, "no other version is known"},
      {"truncation", "null", Optional, "text is never cut"},
      {"padding", "null", Optional, "nothing is added to text"},
  };
  TRY_STATUS(root.must_equal(kFixed));
  TRY(std::optional<Fields> post_processor, root.optional_object("post_processor"));
  if (post_processor) {
    TRY_STATUS(post_processor->must_equal(
        {"type", "\"ByteLevel\"", Required, "no tokens are added to text"}));
  }
  TRY(Fields decoder, root.object("decoder"));
  TRY_STATUS(decoder.must_equal({"type", "\"ByteLevel\"", Required, "tokens are bytes"}));
  return check_all_read(root);
}

Result<std::unique_ptr<Tokenizer>> build(const TokenizerJson& file) {
  Fields root(file.rest(), "");
  TRY(const bool ignore_merges, read_ignore_merges(root));
  TRY(const Normalization normalization, read_normalization(root));
  TRY(const std::string pattern_text, read_pattern(root));
  TRY(RankTable tokens, read_tokens(file));
  const size_t first_id = tokens.size();
  TRY(std::vector<AddedToken> added_tokens, read_added_tokens(root, first_id));
  TRY_STATUS(check_the_rest(root));
  auto vocabulary = std::make_unique<MergeListVocabulary>(
      std::move(tokens),
      ignore_merges ? MergeListVocabulary::WholeTokens::Kept
                    : MergeListVocabulary::WholeTokens::Merged,
      file.merges().size());
  TRY_STATUS(add_merges(file, *vocabulary));
  std::vector<std::string> spellings;
  std::vector<TokenId> shown_tokens;
  for (AddedToken& token : added_tokens) {
    if (!token.is_special)
      shown_tokens.push_back(static_cast<TokenId>(first_id + spellings.size()));
    spellings.push_back(std::move(token.spelling));
  }
  TRY(ControlTokens control_tokens,
      ControlTokens::create(static_cast<TokenId>(first_id), std::move(spellings), "added_tokens"));
  TRY(SplitPattern pattern, SplitPattern::compile(pattern_text, SplitOptions{}));
  return std::make_unique<BytePairTokenizer>(TokenizerParts{
      .vocabulary = std::move(vocabulary),
      .control_tokens = std::move(control_tokens),
      .shown_control_tokens = std::move(shown_tokens),
      .cuts = std::nullopt,
      .normalization = normalization,
      .pattern = std::move(pattern),
  });
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_byte_level_tokenizer(std::string json,
                                                             const std::string& path) {
  const auto make = [&]() -> Result<std::unique_ptr<Tokenizer>> {
    TRY(const TokenizerJson file, TokenizerJson::read(std::move(json)));
    return build(file);
  };
  Result<std::unique_ptr<Tokenizer>> tokenizer = make();
  if (!tokenizer) return std::unexpected(std::move(tokenizer).error().within(path));
  return tokenizer;
}

}  // namespace deltafin::text
