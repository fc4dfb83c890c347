// What tests of the channel parser share: results as one line, and vocabularies of bytes.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/simulated.h"
#include "text/chat/channels.h"
#include "text/test_text.h"
#include "text/tokenizer.h"

namespace deltafin::text {

// All of an output: "reasoning|answer|name(arguments)", calls of one after the other; bad arguments
// as name!raw!.
struct WholeOutput {
  std::string reasoning, answer, calls;

  void add(const std::vector<ChannelEvent>& events) {
    for (const ChannelEvent& event : events) {
      if (!event.call) {
        (event.channel == Channel::Reasoning ? reasoning : answer) += event.text;
      } else if (event.call->arguments) {
        add_call(event.call->id, event.call->name, *event.call->arguments);
      } else {
        calls += fmt::format("[{} {}!{}!]", event.call->id, event.call->name,
                             event.call->arguments.error().raw);
      }
    }
  }
  void add_call(const std::string& id, const std::string& name, const std::string& arguments) {
    calls += fmt::format("[{} {}({})]", id, name, arguments);
  }
  std::string line() const { return fmt::format("{}|{}|{}", reasoning, answer, calls); }
};

// 256 tokens of one byte each, and control tokens of these names behind them.
inline std::unique_ptr<Tokenizer> byte_tokenizer(const std::vector<std::string>& controls) {
  nlohmann::json config;
  config["added_tokens_decoder"] = nlohmann::json::object();
  for (size_t i = 0; i < controls.size(); ++i) {
    config["added_tokens_decoder"][std::to_string(256 + i)]["content"] = controls[i];
  }
  io::SimulatedStorage storage;
  storage.add_file("m/tiktoken.model", rank_file_of(tokens_with({})));
  storage.add_file("m/tokenizer_config.json", config.dump());
  return open_tokenizer(storage, "m").value();
}

// The code points of a text.
inline std::vector<std::string> code_points(const std::string& text) {
  std::vector<std::string> points;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80 || points.empty()) points.push_back("");
    points.back() += c;
  }
  return points;
}

}  // namespace deltafin::text
