// Contracts against the tensors of published models, one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "checkpoint/inventory.h"
#include "checkpoint/roster.h"
#include "checkpoint/test_checkpoint.h"

namespace deltafin::checkpoint {
namespace {

using testing::IsEmpty;

struct Tensor {
  std::string form;  // "BF16 [512, 2048]"
  uint64_t bytes = 0;
};
using Tensors = std::map<std::string, Tensor>;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// "0-2,5": 0, 1, 2, 5
std::vector<uint32_t> numbers_of(const std::string& ranges) {
  std::vector<uint32_t> numbers;
  for (const std::string& range : split(ranges, ',')) {
    const std::vector<std::string> ends = split(range, '-');
    const auto last = static_cast<uint32_t>(std::stoul(ends.back()));
    for (auto i = static_cast<uint32_t>(std::stoul(ends.front())); i <= last; ++i)
      numbers.push_back(i);
  }
  return numbers;
}

// Every name that `folded` stands for; see tests/golden/tensors/README.md.
void unfold(const std::string& folded, std::vector<std::string>& names) {
  const size_t open = folded.find('{');
  if (open == folded.npos) return names.push_back(folded);
  const size_t close = folded.find('}', open);
  for (const uint32_t number : numbers_of(folded.substr(open + 1, close - open - 1)))
    unfold(folded.substr(0, open) + std::to_string(number) + folded.substr(close + 1), names);
}

uint64_t bytes_of_form(const std::string& dtype, const std::string& shape) {
  uint64_t bytes = bytes_of(parse_dtype(dtype).value());
  for (const std::string& side : split(shape.substr(1), ',')) bytes *= std::stoull(side);
  return bytes;
}

struct Published {
  Tensors tensors;
  uint64_t count = 0;  // as the list itself says
  uint64_t bytes = 0;
};

Published published_tensors(const std::string& model) {
  Published published;
  const std::string text =
      test::read_file(test::source_path("tests/golden/tensors/" + model + ".tsv"));
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> fields = split(line, '\t');
    if (fields[0] == "total") {
      published.count = std::stoull(fields[1]);
      published.bytes = std::stoull(fields[2]);
      continue;
    }
    std::vector<std::string> names;
    unfold(fields[0], names);
    for (const std::string& name : names)
      published.tensors[name] = {fields[1] + " " + fields[2], bytes_of_form(fields[1], fields[2])};
  }
  return published;
}

Tensors contracted_tensors(const ModelContract& contract) {
  Tensors tensors;
  const auto add = [&](const std::string& name, DType dtype, const std::vector<uint64_t>& shape) {
    const std::string described = describe_shape(shape);
    tensors[name] = {std::string(name_of(dtype)) + " " + described,
                     bytes_of_form(name_of(dtype), described)};
  };
  const auto add_all = [&](const std::vector<TensorSpec>& specs) {
    for (const TensorSpec& spec : specs) add(spec.name, spec.published, spec.shapes.front());
  };
  add_all(contract.globals);
  for (uint32_t layer = 0; layer < contract.layers.size(); ++layer) {
    add_all(contract.layers[layer].trunk);
    if (!contract.layers[layer].experts) continue;
    for (uint32_t set = 0; set < expert_set_count(*contract.layers[layer].experts); ++set)
      for (const ExpertTensorSpec& tensor : expert_tensors(contract, layer, set))
        add(tensor.name, DType::BF16, tensor.shape);
  }
  return tensors;
}

struct Model {
  const char* name;
  uint64_t tensor_count;   // of the release
  uint64_t bytes;          // of the release
  uint64_t ignored_count;  // of them, prediction layers and vision tower
};

void PrintTo(const Model& model, std::ostream* out) { *out << model.name; }

class PublishedTensors : public testing::TestWithParam<Model> {};

TEST_P(PublishedTensors, AreThoseOfTheContractAndOfNothingElseButIgnoredParts) {
  const Model& model = GetParam();
  const ModelContract contract = test::golden_contract(std::string(model.name) + ".json");
  const Roster roster(contract);
  const Published published = published_tensors(model.name);
  Tensors contracted = contracted_tensors(contract);

  std::vector<std::string> differences;
  const auto differ = [&](const std::string& name, const std::string& text) {
    if (differences.size() < 10) differences.push_back(name + ": " + text);
  };
  uint64_t bytes = 0, text_bytes = 0, ignored_count = 0;
  for (const auto& [name, tensor] : published.tensors) {
    bytes += tensor.bytes;
    const PlaceKind kind = roster.find(name).kind;
    const bool is_outside = name.starts_with("mtp.") || name.starts_with("model.visual.");
    if ((kind == PlaceKind::Ignored) != is_outside)
      differ(name, is_outside ? "is not ignored" : "is ignored");
    if (is_outside) {
      ++ignored_count;
      continue;
    }
    text_bytes += tensor.bytes;
    const auto found = contracted.find(name);
    if (found == contracted.end()) {
      differ(name, "published, but not in the contract");
      continue;
    }
    if (found->second.form != tensor.form)
      differ(name, "published as " + tensor.form + ", in the contract " + found->second.form);
    contracted.erase(found);
  }
  for (const auto& [name, tensor] : contracted) differ(name, "in the contract, but not published");

  EXPECT_THAT(differences, IsEmpty());
  EXPECT_EQ(published.tensors.size(), model.tensor_count);
  EXPECT_EQ(published.count, model.tensor_count);
  EXPECT_EQ(bytes, model.bytes);
  EXPECT_EQ(published.bytes, model.bytes);
  EXPECT_EQ(ignored_count, model.ignored_count);

  const Inventory inventory = take_inventory(contract);
  EXPECT_EQ(inventory.tensor_count, model.tensor_count - model.ignored_count);
  EXPECT_EQ(inventory.total_bytes(), text_bytes);
}

constexpr Model kModels[] = {
    {"qwen3-0.6b", 311, 1'503'264'768, 0},
    {"qwen3-1.7b", 311, 4'063'479'808, 0},
    {"qwen3-30b-a3b", 18'867, 61'064'245'248, 0},
    {"qwen3.5-35b-a3b", 1'811, 71'903'655'008, 333 + 785},
    {"qwen3.5-122b-a10b", 1'949, 250'173'007'840, 333 + 785},
    {"qwen3.5-397b-a17b", 2'924, 806'795'875'168, 333 + 1553},
};

INSTANTIATE_TEST_SUITE_P(Qwen, PublishedTensors, testing::ValuesIn(kModels), [](const auto& test) {
  std::string name = test.param.name;
  std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
  return name;
});

}  // namespace
}  // namespace deltafin::checkpoint
