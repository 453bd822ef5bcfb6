# Writes OUTPUT, a C++ source that holds the bytes of INPUT as the array SYMBOL (a literal would meet length limits).
file(READ "${INPUT}" bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
file(WRITE "${OUTPUT}"
"#include \"sinter_embedded.h\"

namespace sinter::embedded {
const char ${SYMBOL}[] = {
${bytes}
'\\0'};
const std::size_t ${SYMBOL}_size = ${size};
}  // namespace sinter::embedded
")
