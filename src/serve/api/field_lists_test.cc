#include "serve/api/field_lists.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace deltafin::serve {
namespace {

using testing::SizeIs;

// The cells of a line of a Markdown table, without backquotes and spaces around; none elsewhere.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  if (!line.starts_with('|')) return cells;
  for (size_t begin = 1, end; (end = line.find('|', begin)) != std::string::npos; begin = end + 1) {
    std::string cell = line.substr(begin, end - begin);
    const size_t first = cell.find_first_not_of(" `"), last = cell.find_last_not_of(" `");
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
  }
  return cells;
}

// The rows of the table under a heading of docs/api.md, without its two rows of head.
std::vector<std::vector<std::string>> table_under(const std::string& heading) {
  std::ifstream file(DELTAFIN_SOURCE_DIR "/docs/api.md");
  std::vector<std::vector<std::string>> rows;
  std::string line;
  while (std::getline(file, line) && line != heading) continue;
  while (std::getline(file, line) && !line.starts_with('#')) {
    std::vector<std::string> cells = cells_of(line);
    if (!cells.empty()) rows.push_back(std::move(cells));
  }
  if (rows.size() < 2) return {};
  rows.erase(rows.begin(), rows.begin() + 2);
  return rows;
}

std::string endpoints_of(const Field& field) {
  return field.completions && field.chat ? "both" : field.chat ? "chat" : "completions";
}

// The rows that the code has for a policy, with so many cells.
std::vector<std::vector<std::string>> rows_of(FieldPolicy policy, size_t cells) {
  std::vector<std::vector<std::string>> rows;
  for (const Field& field : fields()) {
    if (field.policy != policy) continue;
    std::vector<std::string> row = {std::string(field.name), endpoints_of(field),
                                    std::string(field.accepts), std::string(field.why)};
    row.resize(cells);
    rows.push_back(std::move(row));
  }
  return rows;
}

TEST(FieldLists, AreThoseOfTheDocumentation) {
  std::vector<std::vector<std::string>> honoured = table_under("### Honoured");
  for (std::vector<std::string>& row : honoured) {
    ASSERT_THAT(row, SizeIs(3));
    EXPECT_NE(row[2], "") << row[0] << " is not explained";
    row.resize(2);
  }
  EXPECT_EQ(honoured, rows_of(FieldPolicy::Honoured, 2));
  EXPECT_EQ(table_under("### Accepted, since nothing depends on them"),
            rows_of(FieldPolicy::Neutral, 3));
  EXPECT_EQ(table_under("### Refused"), rows_of(FieldPolicy::Refused, 4));
}

TEST(FieldLists, HaveEachFieldOnceWithAReasonWhereItIsRefused) {
  std::set<std::pair<std::string_view, bool>> seen;
  for (const Field& field : fields()) {
    EXPECT_TRUE(field.completions || field.chat) << field.name;
    EXPECT_TRUE(!field.chat || seen.emplace(field.name, true).second) << field.name;
    EXPECT_TRUE(!field.completions || seen.emplace(field.name, false).second) << field.name;
    EXPECT_EQ(field.policy == FieldPolicy::Refused, !field.why.empty()) << field.name;
    EXPECT_EQ(field.policy == FieldPolicy::Neutral && field.accepts.empty(), false) << field.name;
  }
}

TEST(FieldLists, AcceptWhatTheySay) {
  // A value of each kind, and each value that any field accepts.
  const std::map<std::string, std::string> examples = {
      {"string", R"("x y")"}, {"object", R"({"a": [1]})"}, {"boolean", "true"}};
  for (const Field& field : fields()) {
    if (field.policy == FieldPolicy::Honoured) continue;
    const Endpoint endpoint = field.chat ? Endpoint::Chat : Endpoint::Completions;
    const auto is_refused = [&](const std::string& value) {
      const std::string body = fmt::format("{{\"{}\": {}}}", field.name, value);
      const text::JsonValue json = text::parse_json(body, text::JsonDialect::Strict).value();
      const std::optional<ApiError> error = check_fields(*json.as_object(), endpoint);
      EXPECT_EQ(error ? error->param : field.name, field.name);
      return error.has_value();
    };
    EXPECT_FALSE(is_refused("null")) << field.name;
    EXPECT_TRUE(is_refused("[[1, 2]]")) << field.name;
    std::string rest(field.accepts);
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(", "), rest.size());
      const std::string value = rest.substr(0, comma);
      EXPECT_FALSE(is_refused(examples.contains(value) ? examples.at(value) : value))
          << field.name << " " << value;
      rest = rest.substr(std::min(comma + 2, rest.size()));
    }
  }
}

}  // namespace
}  // namespace deltafin::serve
