#include "cli/logits_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "audit/digest.h"
#include "cli/command_line.h"
#include "cli/events.h"
#include "cli/memory_planning.h"
#include "cli/messages.h"
#include "cli/model_loading.h"
#include "cli/model_location.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/prompt.h"
#include "cli/units.h"
#include "engine/pass.h"

namespace deltafin::cli {

namespace {

// Bound on the logits of one pass: K3 has 655 KB a row.
constexpr uint64_t kLogitsBytesOfPass = 256ull << 20;

struct LogitsFlags {
  std::optional<std::string> model;
  PromptFlags prompt;
  EngineFlags engine;
  std::optional<std::string> out;
  bool force = false;

  void declare(CommandLine& line);
  Status check() const;
};

void LogitsFlags::declare(CommandLine& line) {
  declare_model(line, model);
  prompt.declare(line);
  line.group("output");
  line.flag(
      "--out", "FILE",
      "where the logits go: raw little-endian 32-bit floats [positions, vocabulary]; FILE.json "
      "says what they are. Both appear when they are complete",
      text_into(out));
  line.toggle("--force", "replace FILE and FILE.json", force);
  engine.declare(line);
  line.example("deltafin logits demo --prompt \"The capital of France is\" --out france.f32",
               "numpy.fromfile(\"france.f32\", \"<f4\").reshape(-1, 2560)");
  line.example("deltafin logits ~/models/kimi-k3 --ids 1,2,3 --out three.f32",
               "token ids as prompt");
}

Status LogitsFlags::check() const {
  TRY_STATUS(required_model(model, "logits"));
  TRY_STATUS(prompt.check());
  if (!out) return fail(ErrorCode::Usage, "logits needs a file to write\n  give --out FILE");
  return {};
}

CommandLine logits_line() {
  return {
      "logits MODEL (--prompt TEXT | --prompt-file FILE | --ids LIST) --out FILE [options]",
      "Writes the logits of every position of a prompt to a file, for comparing implementations."};
}

struct LogitsPreparation {
  ModelPreparation model;
  std::vector<TokenId> ids = {};
};

Result<LogitsPreparation> prepare(const LogitsFlags& flags, const io::Storage& storage,
                                  const CancelToken& cancel) {
  TRY(ModelPreparation model, ModelPreparation::create(storage, *flags.model, flags.engine));
  TRY(const std::string text, read_prompt_text(flags.prompt, cancel));
  std::unique_ptr<text::Tokenizer> tokenizer;
  if (!flags.prompt.ids) {
    TRY(tokenizer, open_prompt_tokenizer(storage, model.directory()));
  }
  TRY(std::vector<TokenId> ids,
      prompt_tokens(flags.prompt, text, tokenizer.get(), model.contract()));
  const uint64_t logits_bytes =
      uint64_t{ids.size()} * model.contract().vocab_size() * sizeof(float);
  TRY_STATUS(plan_memory(
      flags.engine,
      {.prompt_rows = ids.size(), .output_bytes = std::min(kLogitsBytesOfPass, logits_bytes)},
      model));
  return LogitsPreparation{.model = std::move(model), .ids = std::move(ids)};
}

// Passes over the prompt, one after the other, whose rows go to the file as they come.
class LogitsWriter {
 public:
  LogitsWriter(LoadedModel& model, std::span<const TokenId> ids, PublishedFile& file,
               const CancelToken& cancel)
      : engine_(model.engine()),
        ids_(ids),
        file_(file),
        cancel_(cancel),
        sequence_(engine_.new_sequence()),
        meter_("logits", style_of_standard_error(), model.clock(), write_to_standard_error) {}

  Status write(size_t rows_per_pass) {
    const size_t affordable =
        std::max<size_t>(1, kLogitsBytesOfPass / (engine_.vocab_size() * sizeof(float)));
    const size_t rows = std::min(rows_per_pass, affordable);
    for (size_t done = 0; done < ids_.size(); done += rows)
      TRY_STATUS(write_pass(done, std::min(rows, ids_.size() - done)));
    meter_.finish();
    return {};
  }

  const audit::LogitsDigest& digest() const { return digest_; }

 private:
  Status write_pass(size_t first, size_t count) {
    const engine::PassRequest request{.sequence = &sequence_,
                                      .tokens = ids_.subspan(first, count),
                                      .mode = engine::PassMode::Prefill,
                                      .logits = engine::LogitsOf::AllRows};
    TRY(engine::Pass pass, engine::Pass::begin(engine_, std::span(&request, 1)));
    while (!pass.layers_finished()) {
      TRY_STATUS(pass.advance_layer(cancel_));
      show(first, count, pass.layers_done());
    }
    TRY_STATUS(pass.finish(cancel_));
    for (size_t row = 0; row < count; ++row) {
      const std::span<const float> logits = pass.logits(0, row);
      digest_.add(logits);
      TRY_STATUS(file_.append(std::as_bytes(logits)));
    }
    pass.commit(0, count);
    return {};
  }

  void show(size_t first, size_t count, size_t layers_done) {
    const engine::PrefillProgress progress{.rows_done = first,
                                           .rows_in_pass = count,
                                           .rows_total = ids_.size(),
                                           .layers_done = layers_done,
                                           .layer_count = engine_.layer_count()};
    meter_.update(progress.fraction(), fmt::format("{} of {} positions", with_separators(first),
                                                   with_separators(ids_.size())));
  }

  engine::Engine& engine_;
  std::span<const TokenId> ids_;
  PublishedFile& file_;
  const CancelToken& cancel_;
  engine::Sequence sequence_;
  ProgressMeter meter_;
  audit::LogitsDigest digest_;
};

nlohmann::ordered_json description(const LogitsPreparation& ready, const std::string& path,
                                   const std::string& sha256) {
  return {
      {"schema", "deltafin.logits.v1"},
      {"file", path.substr(path.find_last_of('/') + 1)},
      {"dtype", "float32"},
      {"byte_order", "little"},
      {"shape", {ready.ids.size(), ready.model.contract().vocab_size()}},
      {"sha256", sha256},
      {"ids", ready.ids},
      {"model",
       {{"directory", ready.model.directory()},
        {"architecture", ready.model.contract().architecture}}},
      {"version", version()},
  };
}

// With the flag's name in front.
Result<PublishedFile> create(const std::string& path, bool force) {
  Result<PublishedFile> file =
      PublishedFile::create(path, force ? Existing::Replace : Existing::Refuse);
  if (!file) return std::unexpected(std::move(file).error().within("--out"));
  return file;
}

}  // namespace

Result<int> logits_command(const std::vector<std::string>& arguments, CancelToken& cancel) {
  LogitsFlags flags;
  CommandLine line = logits_line();
  flags.declare(line);
  TRY(const CommandLine::Parsed parsed, line.parse(arguments));
  if (parsed == CommandLine::Parsed::Help) return print(line.help());
  TRY_STATUS(flags.check());
  const io::PosixStorage storage;
  TRY(LogitsPreparation ready, prepare(flags, storage, cancel));
  warn_of_unknown_fields(ready.model.contract());
  TRY(PublishedFile data, create(*flags.out, flags.force));
  TRY(PublishedFile beside, create(*flags.out + ".json", flags.force));
  TRY(const std::unique_ptr<LoadedModel> model, LoadedModel::open(ready.model, cancel));

  LogitsWriter writer(*model, ready.ids, data, cancel);
  TRY_STATUS(writer.write(flags.engine.prefill_rows.value_or(model->engine().prefill_rows())));
  const std::string sha256 = writer.digest().hex();
  TRY_STATUS(beside.append(to_document(description(ready, data.path(), sha256))));
  // A Ctrl-C that comes now is too late to matter.
  TRY_STATUS(data.publish());
  TRY_STATUS(beside.publish());
  return print(fmt::format("{}: [{}, {}] float32, sha256 {}\n", data.path(), ready.ids.size(),
                           ready.model.contract().vocab_size(), sha256));
}

}  // namespace deltafin::cli
