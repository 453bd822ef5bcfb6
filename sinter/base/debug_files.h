#pragma once
// Files for whoever looks into Sinter: SINTER_DEBUG names the directory they go to.
#include <string>
#include <string_view>

namespace sinter {

// Whether SINTER_DEBUG is set.
bool is_debugged();
// Writes `<label>.<stage>.<extension>` there and gives its path; nothing, and an empty path, where SINTER_DEBUG is not set.
std::string write_debug_file(const std::string& label, std::string_view stage, const std::string& text,
                             std::string_view extension = "txt");

}  // namespace sinter
