#include "checkpoint/quantization_config.h"

#include <fmt/format.h>

namespace deltafin::checkpoint {
namespace {

// --- Must equal
// -----------------------------------------------------------------------------------

constexpr FixedField kFixedQuantization[] = {
    {"quant_method", "\"compressed-tensors\"", Presence::Required, "how K3 is published"},
    {"format", "\"mxfp4-pack-quantized\"", Presence::Required, "the only packed format we read"},
    {"quantization_status", "\"compressed\"", Presence::Optional, "weights must be packed"},
    {"kv_cache_scheme", "null", Presence::Optional, "the cache is not quantised"},
    {"sparsity_config", "{}", Presence::Optional, "weights must be dense"},
    {"transform_config", "{}", Presence::Optional, "weights must not be rotated"},
};

constexpr FixedField kFixedGroup[] = {
    {"format", "\"mxfp4-pack-quantized\"", Presence::Optional, "the only packed format we read"},
    {"targets", "[\"Linear\"]", Presence::Required, "how K3 is published"},
    {"input_activations", "null", Presence::Optional, "activations are not quantised"},
    {"output_activations", "null", Presence::Optional, "activations are not quantised"},
};

constexpr FixedField kFixedWeights[] = {
    {"num_bits", "4", Presence::Required, "MXFP4"},
    {"type", "\"float\"", Presence::Required, "MXFP4"},
    {"group_size", "32", Presence::Required, "MXFP4 has one scale for 32 columns"},
    {"strategy", "\"group\"", Presence::Required, "MXFP4 has one scale for 32 columns"},
    {"symmetric", "true", Presence::Required, "MXFP4 has no zero points"},
    {"dynamic", "false", Presence::Optional, "scales are stored"},
    {"scale_dtype", "\"torch.uint8\"", Presence::Optional, "scales are E8M0 bytes"},
    {"zp_dtype", "null", Presence::Optional, "MXFP4 has no zero points"},
    {"actorder", "null", Presence::Optional, "columns are in their natural order"},
    {"block_structure", "null", Presence::Optional, "scales follow rows"},
};

// --- Ignored
// --------------------------------------------------------------------------------------

constexpr const char* kIgnoredQuantization[] = {"ignore", "global_compression_ratio", "version"};
constexpr const char* kIgnoredWeights[] = {"observer", "observer_kwargs"};

void append_unread(const Fields& fields, std::vector<std::string>& unknown_fields) {
  for (std::string& name : fields.unread()) unknown_fields.push_back(std::move(name));
}

}  // namespace

Result<ExpertFormat> parse_quantization(Fields fields, std::vector<std::string>& unknown_fields) {
  TRY_STATUS(fields.must_equal(kFixedQuantization));
  for (const char* name : kIgnoredQuantization) fields.ignore(name);
  TRY(Fields groups, fields.object("config_groups"));
  TRY(Fields group, groups.object("group_0"));
  if (const std::vector<std::string> more = groups.unread(); !more.empty()) {
    return fail(ErrorCode::BadModel,
                fmt::format("{}: found a second group, expected group_0 alone", more.front()));
  }
  TRY_STATUS(group.must_equal(kFixedGroup));
  TRY(Fields weights, group.object("weights"));
  TRY_STATUS(weights.must_equal(kFixedWeights));
  for (const char* name : kIgnoredWeights) weights.ignore(name);
  append_unread(fields, unknown_fields);
  append_unread(group, unknown_fields);
  append_unread(weights, unknown_fields);
  return ExpertFormat::Mxfp4;
}

}  // namespace deltafin::checkpoint
