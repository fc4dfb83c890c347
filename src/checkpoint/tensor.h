// What tensors a model has: their roles, and where their bytes lie.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace deltafin::checkpoint {

// Element types of the safetensors format that we know by name; only some are accepted by a
// contract.
enum class DType : uint8_t {
  F64,
  F32,
  F16,
  BF16,
  I64,
  I32,
  I16,
  I8,
  U64,
  U32,
  U16,
  U8,
  Bool,
  F8E4M3,
  F8E5M2
};

std::optional<DType> parse_dtype(std::string_view name);  // "BF16"; empty when unknown
const char* name_of(DType dtype);
uint64_t bytes_of(DType dtype);  // per element

// "[128, 1, 4]", for messages.
std::string describe_shape(std::span<const uint64_t> shape);

// What a tensor is for. One list for all families; a layer has the roles its contract names.
enum class TensorRole : uint8_t {
  // once per model
  Embedding,
  FinalNorm,
  LmHead,
  OutputResNorm,
  OutputResProj,
  // every layer
  InputNorm,
  PostAttentionNorm,
  AttentionResNorm,
  AttentionResProj,
  MlpResNorm,
  MlpResProj,
  // mixers (several kinds share a role, such as QProj and OProj)
  QProj,
  KProj,
  VProj,
  OProj,
  GProj,
  QConv,
  KConv,
  VConv,
  DecayA,
  DecayB,
  BetaProj,
  GateA,
  GateB,
  ALog,
  DtBias,
  HeadNorm,
  QueryA,
  QueryANorm,
  QueryB,
  KvA,
  KvANorm,
  KvB,
  QkvProj,
  QkvConv,
  DecayProj,
  ZProj,
  QNorm,
  KNorm,
  // dense feed-forward
  MlpGate,
  MlpUp,
  MlpDown,
  // mixture of experts
  Router,
  RouterBias,
  LatentDown,
  LatentNorm,
  LatentUp,
  SharedGate,
  SharedUp,
  SharedDown,
  SharedExpertGate,
  Count
};
inline constexpr size_t kTensorRoleCount = static_cast<size_t>(TensorRole::Count);

// Matrices stay in the checkpoint's own bytes; vectors (norm weights, biases, convolution taps) are
// few and small and are widened to f32 when they are loaded.
enum class TensorKind : uint8_t { Matrix, Vector };

struct TensorSpec {
  TensorRole role;
  TensorKind kind;
  std::string name;                           // as in the safetensors header, prefix included
  std::vector<std::vector<uint64_t>> shapes;  // any one of these; matrices have one, [rows, cols]
  DType published = DType::BF16;  // in the published files; any checkpoint may have BF16 or F32
  bool optional = false;          // may be absent
};

// Bytes of one tensor. `file` indexes Checkpoint::files().
struct TensorLocation {
  uint32_t file = 0;
  DType dtype = DType::BF16;
  uint64_t offset = 0;  // from the start of the file
  uint64_t size = 0;    // bytes
};

}  // namespace deltafin::checkpoint
