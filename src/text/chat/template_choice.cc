#include <fmt/format.h>

#include <optional>

#include "base/limits.h"
#include "base/sha256.h"
#include "checkpoint/json_document.h"
#include "text/chat/chat_template.h"

namespace deltafin::text {

namespace {

// Published templates, by the SHA-256 of their files.
struct KnownTemplate {
  std::string_view sha256;
  std::string_view name;
};

constexpr KnownTemplate kKnownTemplates[] = {
    // Kimi-K2-Instruct (August 2025) and 0905
    {"8a4cd421d3a014c1700ce2adddc16c0ab8c3bdff2f13622c7d93d1fcd6418c6a", "kimi-k2"},
    {"a3c11df3af2b48115722f837b5a3fed37e8b60b24e2152b1ebc842ae1e1fcd9b", "kimi-k2-thinking"},
    // Qwen3-0.6B to 235B, and the first of April 2025, which only fails on more conversations
    {"a55ee1b1660128b7098723e0abcd92caa0788061051c62d51cbe87d9cf1974d8", "qwen3"},
    {"87a2728cb8dc9fe424d624542f6060ec05a1d285ebbec578bb078900e33396b5", "qwen3"},
    // Qwen3.5-4B and 9B
    {"a4aee8afcf2e0711942cf848899be66016f8d14a889ff9ede07bca099c28f715", "qwen3.5"},
    {"273d8e0e683b885071fb17e08d71e5f2a5ddfb5309756181681de4f5a1822d80", "qwen3.5-small"},
};

// What a template that we do not know may be a relative of, by words in it; the first that fits.
struct Likeness {
  std::string_view marker;
  std::string_view name;
};

constexpr Likeness kLikenesses[] = {
    {"<|end_of_msg|>", "kimi-k3"},
    {"</think><|", "kimi-k2-thinking"},
    {"<think></think>{", "kimi-k2-thinking"},
    {"<|im_middle|>", "kimi-k2"},
    {"<function=", "qwen3.5"},
    {"<|im_start|>", "qwen3"},
};

constexpr const char* kK3Architecture = "KimiK3ForConditionalGeneration";

std::string sha256_of(std::string_view text) {
  Sha256 hash;
  hash.add(std::as_bytes(std::span(text)));
  return to_hex(hash.digest());
}

// With or without a last line feed, which copies gain and lose; null when it is none of ours.
const ChatTemplate* find_by_text(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const std::string with = sha256_of(std::string(text) + '\n'), without = sha256_of(text);
  for (const KnownTemplate& known : kKnownTemplates) {
    if (known.sha256 == with || known.sha256 == without) return find_template(known.name);
  }
  return nullptr;
}

struct FoundTemplate {
  std::string path;  // for messages
  std::string text;
};

// From tokenizer_config.json: one text, or a list of named ones.
Result<std::optional<FoundTemplate>> template_in_config(const std::string& json,
                                                        const std::string& path) {
  Result<nlohmann::json> document = checkpoint::parse_json_object(json);
  if (!document) return std::unexpected(std::move(document.error()).within(path));
  const auto field = document->find("chat_template");
  const std::string place = path + ": chat_template";
  if (field == document->end() || field->is_null()) return std::optional<FoundTemplate>();
  if (field->is_string()) return FoundTemplate{place, field->get<std::string>()};
  if (field->is_array()) {
    for (const nlohmann::json& named : *field) {
      if (!named.is_object() || named.value("name", nlohmann::json()) != "default") continue;
      const nlohmann::json text = named.value("template", nlohmann::json());
      if (text.is_string()) return FoundTemplate{place + " \"default\"", text.get<std::string>()};
    }
  }
  return fail(ErrorCode::BadModel,
              place + ": expected a template or a list with one named \"default\"");
}

Result<std::optional<FoundTemplate>> read_template(const io::Storage& storage,
                                                   const std::string& directory) {
  const std::string jinja = io::join_path(directory, "chat_template.jinja");
  if (storage.exists(jinja)) {
    TRY(std::string text, io::read_text(storage, jinja, limits::kConfigBytes));
    return FoundTemplate{jinja, std::move(text)};
  }
  const std::string config = io::join_path(directory, "tokenizer_config.json");
  if (!storage.exists(config)) return std::optional<FoundTemplate>();
  TRY(const std::string json, io::read_text(storage, config, limits::kConfigBytes));
  return template_in_config(json, config);
}

Result<bool> is_k3(const io::Storage& storage, const std::string& directory) {
  const std::string path = io::join_path(directory, "config.json");
  if (!storage.exists(path)) return false;
  TRY(const std::string json, io::read_text(storage, path, limits::kConfigBytes));
  Result<nlohmann::json> document = checkpoint::parse_json_object(json);
  if (!document) return std::unexpected(std::move(document.error()).within(path));
  const auto names = document->find("architectures");
  return names != document->end() && names->is_array() && !names->empty() &&
         names->front() == kK3Architecture;
}

std::unexpected<Error> unknown(const FoundTemplate& found) {
  std::string advice = "\n  choose one with --template: " + template_names();
  for (const Likeness& likeness : kLikenesses) {
    if (found.text.find(likeness.marker) == std::string::npos) continue;
    advice += fmt::format("; {} looks most like it", likeness.name);
    break;
  }
  return fail(ErrorCode::BadModel,
              fmt::format("{}: a chat template that this program does not know (SHA-256 {}); it "
                          "runs no templates but those it was written for{}",
                          found.path, sha256_of(found.text), advice));
}

}  // namespace

Result<const ChatTemplate*> choose_template(const io::Storage& storage,
                                            const std::string& directory) {
  TRY(const std::optional<FoundTemplate> found, read_template(storage, directory));
  if (found) {
    const ChatTemplate* known = find_by_text(found->text);
    return known != nullptr ? Result<const ChatTemplate*>(known) : unknown(*found);
  }
  TRY(const bool k3, is_k3(storage, directory));
  if (k3) return find_template("kimi-k3");
  return fail(ErrorCode::BadModel,
              fmt::format("{}: no chat template: neither chat_template.jinja nor the field "
                          "chat_template of tokenizer_config.json is there\n  choose one with "
                          "--template: {}",
                          directory, template_names()));
}

}  // namespace deltafin::text
