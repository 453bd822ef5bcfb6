#pragma once
// What the readers of types, attributes and graphs share: splitting text that nests.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sinter {

// Without the white space at both ends.
std::string_view trim(std::string_view text);
// The pieces between top-level commas, trimmed: those inside (), [], {} and "quotes" do not count. Blank text has none.
std::vector<std::string_view> split_list(std::string_view text);
// "name=value, …" split into pairs; an Error for a piece without a name.
std::vector<std::pair<std::string, std::string>> split_fields(std::string_view text);
// Where the bracket that opens at `open` is closed; npos when it is not.
size_t closing_bracket(std::string_view text, size_t open);
// The closing quote of the text that opens at `open`; npos when there is none.
size_t closing_quote(std::string_view text, size_t open);

// "a \"quoted\" text" and back; an Error when it is not one.
std::string quote(std::string_view text);
std::string unquote(std::string_view text);

}  // namespace sinter
