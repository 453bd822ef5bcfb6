#pragma once
// Text inside XML and HTML.
#include <string>
#include <string_view>

namespace sinter {

// The text with what XML reserves replaced, in attributes too. Line ends and tabs stay; no other control character may
// stand in XML, and a space takes its place.
std::string xml_escape(std::string_view text);

}  // namespace sinter
