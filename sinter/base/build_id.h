#pragma once
// Which build of Sinter this is.
#include <string>

namespace sinter {

// The linker's number of the file that holds this library, in hexadecimal: equal for equal code, another one for any
// change. Empty where the linker gave none.
const std::string& build_id();

}  // namespace sinter
