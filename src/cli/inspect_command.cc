#include "cli/inspect_command.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "checkpoint/config.h"
#include "checkpoint/survey.h"
#include "cli/command_line.h"
#include "cli/events.h"
#include "cli/inspect_report.h"
#include "cli/messages.h"
#include "cli/model_location.h"

namespace deltafin::cli {

namespace {

struct InspectFlags {
  std::optional<std::string> model, config;
  bool json = false;

  void declare(CommandLine& line);
  Status check() const;
};

void InspectFlags::declare(CommandLine& line) {
  line.argument(
      "MODEL",
      "a checkpoint directory, complete or not, or demo for the bundled model (./demo for a "
      "folder)",
      model);
  line.group("");
  line.flag("--config", "FILE",
            "look at one config.json instead: what the model would be, before any download",
            text_into(config));
  line.toggle("--json", "print one JSON object", json);
  line.example("deltafin inspect ~/models/kimi-k3", "also while it is still downloading");
  line.example("deltafin inspect --config config.json --json | jq .bytes.total",
               "how big the model will be");
}

Status InspectFlags::check() const {
  if (!model && !config)
    return fail(ErrorCode::Usage,
                "inspect needs a MODEL\n  give a checkpoint directory, demo, or --config FILE");
  if (model && config)
    return fail(ErrorCode::Usage,
                "inspect looks at a MODEL or at a --config FILE, not at both\n  drop one of them");
  return {};
}

CommandLine inspect_line() {
  return {
      "inspect (MODEL | --config FILE) [--json]",
      "Reads config.json and the headers of all shards, no weights: architecture, sizes, bytes a "
      "token reads, and everything that is missing or wrong, layer by layer. Exit status 3 when "
      "the "
      "checkpoint is incomplete."};
}

Result<int> show(const InspectReport& report, bool json) {
  return print(json ? to_document(to_json(report)) : to_text(report));
}

Result<int> inspect_config(const std::string& path, bool json) {
  const io::PosixStorage storage;
  TRY(const checkpoint::ModelContract contract, checkpoint::load_config(storage, path));
  return show({.place = path, .contract = &contract, .survey = nullptr}, json);
}

Result<int> inspect_model(const std::string& model, bool json) {
  const io::PosixStorage storage;
  TRY(const std::string directory, find_model(storage, model));
  const checkpoint::Survey survey = checkpoint::Survey::of(storage, directory);
  const std::optional<checkpoint::ModelContract>& contract = survey.contract();
  // Without a contract there is nothing to show a person but what is wrong.
  if (!contract && !json) return std::unexpected(survey.problems().to_error(directory));
  TRY_STATUS(show(
      {.place = directory, .contract = contract ? &*contract : nullptr, .survey = &survey}, json));
  return survey.is_usable() ? 0 : exit_code(survey.problems().to_error(directory).code);
}

}  // namespace

Result<int> inspect_command(const std::vector<std::string>& arguments, CancelToken& /*cancel*/) {
  InspectFlags flags;
  CommandLine line = inspect_line();
  flags.declare(line);
  TRY(const CommandLine::Parsed parsed, line.parse(arguments));
  if (parsed == CommandLine::Parsed::Help) return print(line.help());
  TRY_STATUS(flags.check());
  return flags.config ? inspect_config(*flags.config, flags.json)
                      : inspect_model(*flags.model, flags.json);
}

}  // namespace deltafin::cli
