#include "checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/limits.h"
#include "checkpoint/test_checkpoint.h"

namespace deltafin::checkpoint {
namespace {

using test::safetensors_bytes;
using testing::HasSubstr;

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Result<Header> parse(const std::string& file) { return parse_header(as_bytes(file), file.size()); }

// Header and length of the file together, as a survey asks them.
Status check(const std::string& file) {
  TRY(const Header header, parse(file));
  return check_file_size(header, file.size());
}

constexpr const char* kTwoTensors = R"({"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
                                    R"("b":{"dtype":"U8","shape":[5],"data_offsets":[12,17]}})";

TEST(Safetensors, ReadsNamesTypesShapesAndSpans) {
  const Result<Header> header = parse(safetensors_bytes(kTwoTensors, 17));
  ASSERT_TRUE(header.has_value()) << header.error().what;
  EXPECT_EQ(header->data_begin, 8 + std::string(kTwoTensors).size());
  EXPECT_EQ(header->data_size, 17u);
  ASSERT_EQ(header->tensors.size(), 2u);
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_EQ(header->tensors[0].dtype, DType::BF16);
  EXPECT_EQ(header->tensors[0].shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(header->tensors[1].begin, 12u);
  EXPECT_EQ(header->tensors[1].end, 17u);
}

TEST(Safetensors, RefusesEveryTruncation) {
  const std::string whole = safetensors_bytes(kTwoTensors, 17);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(check(whole.substr(0, size)).has_value()) << size;
  }
  EXPECT_TRUE(check(whole).has_value());
}

TEST(Safetensors, RefusesEveryTruncationOfTheJson) {
  const std::string json = kTwoTensors;
  for (size_t size = 0; size < json.size(); ++size) {
    EXPECT_FALSE(check(safetensors_bytes(json.substr(0, size), 17)).has_value()) << size;
  }
}

TEST(Safetensors, SaysWhatIsWrongWithAHeaderThatIsNotWhole) {
  const std::string whole = safetensors_bytes(kTwoTensors, 17);
  EXPECT_THAT(check(whole.substr(0, 3)).error().what,
              HasSubstr("the file has 3 bytes, expected at least 8"));
  EXPECT_THAT(check(whole.substr(0, 20)).error().what,
              AllOf(HasSubstr("but only 12 bytes follow"), HasSubstr("interrupted download")));
}

TEST(Safetensors, TellsHowManyBytesAreMissingAtTheEnd) {
  const std::string whole = safetensors_bytes(kTwoTensors, 17);
  EXPECT_THAT(
      check(whole.substr(0, whole.size() - 4)).error().what,
      AllOf(HasSubstr("4 bytes shorter than its header says"), HasSubstr("interrupted download")));
}

TEST(Safetensors, RefusesBytesAfterTheLastTensor) {
  const std::string file = safetensors_bytes(kTwoTensors, 18);
  EXPECT_THAT(check(file).error().what, HasSubstr("goes on for 1 bytes after its last tensor"));
}

TEST(Safetensors, RefusesAnAbsurdHeaderLengthWithoutReadingOn) {
  std::string file = safetensors_bytes("", 100);
  file[7] = '\x7f';
  const Result<uint64_t> begin = parse_data_begin(as_bytes(file), uint64_t{1} << 62);
  ASSERT_FALSE(begin.has_value());
  EXPECT_THAT(begin.error().what, HasSubstr("not a safetensors file"));
}

TEST(Safetensors, KnowsToTheByteWhetherAHeaderFits) {
  const std::string file = safetensors_bytes("{}", 0);
  EXPECT_EQ(parse_data_begin(as_bytes(file), 10), 10u);
  EXPECT_FALSE(parse_data_begin(as_bytes(file), 9).has_value());
}

// Everything that a header can get wrong, and a piece of what is said about it.
struct BadHeader {
  const char* name;
  const char* json;
  const char* message;
};

class BadHeaders : public testing::TestWithParam<BadHeader> {};

TEST_P(BadHeaders, AreRefusedWithAReason) {
  const Result<Header> header = parse(safetensors_bytes(GetParam().json, 64));
  ASSERT_FALSE(header.has_value());
  EXPECT_EQ(header.error().code, ErrorCode::BadModel);
  EXPECT_THAT(header.error().what, HasSubstr(GetParam().message));
}

constexpr BadHeader kBadHeaders[] = {
    {"Empty", "", "the header of 0 bytes does not begin with '{'"},
    {"NotAnObject", "[]", "does not begin with '{'"},
    {"LeadingSpace", " {}", "does not begin with '{'"},
    {"NotJson", "{\"a\":", "not valid JSON"},
    {"InvalidUtf8", "{\"\xff\":{}}", "not valid JSON"},
    {"TwoObjects", "{}{}", "goes on after its closing brace"},
    {"TextAfterTheObject", "{} x}", "goes on after its closing brace"},
    {"DescriptionIsNoObject", R"({"a":1})", "tensor a: its description is not an object"},
    {"NoDtype", R"({"a":{"shape":[1],"data_offsets":[0,1]}})", "tensor a: dtype is missing"},
    {"NoShape", R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", "tensor a: shape is missing"},
    {"NoOffsets", R"({"a":{"dtype":"U8","shape":[1]}})", "tensor a: data_offsets is missing"},
    {"UnknownField", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":0}})",
     "field \"x\" is unknown or given twice"},
    {"FieldTwice", R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
     "field \"dtype\" is unknown or given twice"},
    {"UnknownDtype", R"({"a":{"dtype":"F4","shape":[1],"data_offsets":[0,1]}})",
     "tensor a: unknown dtype \"F4\""},
    {"DtypeIsNoString", R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,1]}})",
     "dtype is not a string"},
    {"ShapeIsNoList", R"({"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})",
     "shape is not a list"},
    {"NegativeShape", R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})",
     "shape holds something that is not an integer"},
    {"FractionalShape", R"({"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})",
     "shape holds something that is not an integer"},
    {"FloatShape", R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})",
     "shape holds something that is not an integer"},
    {"ShapeAsText", R"({"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}})",
     "shape holds something that is not an integer"},
    {"ShapeBeyond64Bits",
     R"({"a":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,1]}})",
     "shape holds something that is not an integer"},
    {"ElementsOverflow",
     R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
     "does not fit into 64 bits"},
    {"BytesOverflow", R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,0]}})",
     "does not fit into 64 bits"},
    {"TooManyAxes", R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})",
     "shape has more than 8 numbers"},
    {"OneOffset", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})",
     "data_offsets is not a pair"},
    {"ThreeOffsets", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})",
     "data_offsets has more than 2 numbers"},
    {"NegativeOffset", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}})",
     "data_offsets holds something that is not an integer"},
    {"OffsetsReversed", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})",
     "end before they begin"},
    {"SpanTooShort", R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,8]}})",
     "shape [2, 2] of F32 takes 16 bytes, but data_offsets [0, 8] hold 8"},
    {"SpanTooLong", R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,3]}})",
     "takes 2 bytes, but data_offsets [0, 3] hold 3"},
    {"Overlap",
     R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
     R"("b":{"dtype":"U8","shape":[8],"data_offsets":[7,15]}})",
     "tensor b at [7, 15] overlaps tensor a at [0, 8]"},
    {"SameSpan",
     R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
     R"("b":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
     "overlaps"},
    {"Hole",
     R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
     R"("b":{"dtype":"U8","shape":[8],"data_offsets":[9,17]}})",
     "1 bytes at [8, 9] before tensor b belong to no tensor"},
    {"HoleAtTheStart", R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[4,12]}})",
     "4 bytes at [0, 4] before tensor a"},
    {"SameNameTwice",
     R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
     R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
     "tensor a is described twice"},
    {"SameNameInOtherSpelling",
     R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
     R"("\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
     "tensor a is described twice"},
    {"ControlCharacterInAName", R"({"a\u001b[2J":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
     "control character 0x1b"},
    {"MetadataIsNoObject", R"({"__metadata__":[]})", "__metadata__ is not an object"},
    {"MetadataHoldsNumbers", R"({"__metadata__":{"a":1}})", "something that is not a string"},
};

INSTANTIATE_TEST_SUITE_P(Safetensors, BadHeaders, testing::ValuesIn(kBadHeaders),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Safetensors, RefusesANameBeyondTheLimit) {
  const std::string name(limits::kTensorNameBytes + 1, 'n');
  const Result<Header> header = parse(safetensors_bytes(
      R"({")" + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1));
  ASSERT_FALSE(header.has_value());
  EXPECT_THAT(header.error().what, HasSubstr("513 bytes long, expected at most 512"));
}

TEST(Safetensors, AcceptsWhatTheFormatAllows) {
  const char* const headers[] = {
      "{}",
      "{}   \n",
      // any order of tensors and of fields, escapes, a misaligned float, a scalar, empty tensors
      R"({"b":{"data_offsets":[1,5],"shape":[],"dtype":"F32"},)"
      R"("a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})",
      R"({"\u0061\"b":{"dtype":"U8","shape":[0,7],"data_offsets":[0,0]},)"
      R"("b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
      R"({"__metadata__":{"format":"pt"}})",
  };
  for (const char* const text : headers) {
    const Result<Header> header = parse(safetensors_bytes(text, 64));
    EXPECT_TRUE(header.has_value()) << text << ": " << header.error().what;
  }
}

TEST(Safetensors, SortsTensorsByPosition) {
  const Result<Header> header =
      parse(safetensors_bytes(R"({"b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]},)"
                              R"("a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})",
                              7));
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_EQ(header->tensors[1].name, "b");
}

TEST(DTypes, HaveNamesThatParseBack) {
  for (int i = 0; i <= static_cast<int>(DType::F8E5M2); ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(name_of(dtype)), dtype);
  }
  EXPECT_EQ(bytes_of(DType::BF16), 2u);
  EXPECT_EQ(parse_dtype("bf16"), std::nullopt);
}

}  // namespace
}  // namespace deltafin::checkpoint
