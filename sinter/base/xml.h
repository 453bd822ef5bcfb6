#pragma once
// Text inside XML and HTML.
#include <string>
#include <string_view>

namespace sinter {

// The text with what HTML and XML reserve replaced, in attributes too.
std::string escape_markup(std::string_view text);
// The same for XML, in which no control characters may stand but line ends and tabs: spaces take their places.
std::string xml_escape(std::string_view text);

}  // namespace sinter
