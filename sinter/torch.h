#pragma once
// For programs written for LibTorch: everything, in LibTorch's namespaces and with its macros. With the flag -I and the folder
// sinter/libtorch of the installed headers (CMake: the target sinter::torch) a program's own #include <torch/torch.h> is this
// header, and so are the others of sinter/torch_headers.txt.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "sinter/autograd/functional.h"
#include "sinter/data.h"
#include "sinter/nn/nn.h"
#include "sinter/nn/recurrent.h"
#include "sinter/nn/utils/parametrizations.h"
#include "sinter/nn/utils/rnn.h"
#include "sinter/serialize.h"
#include "sinter/sinter.h"
#include "sinter/sparse.h"

#include "sinter/ops/out_names.inc"

namespace torch = sinter;
namespace at = sinter;
namespace c10 = sinter;

namespace sinter SINTER_API {

// What these print, one behind the other.
template <class... T>
std::string str(const T&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

namespace detail {

template <class... T>
[[noreturn]] void check_failed(const char* condition, const T&... message) {
  if constexpr (sizeof...(T) > 0)
    throw_error(str(message...));
  else
    throw_error(str("expected ", condition, " to be true"));
}

}  // namespace detail
}  // namespace sinter

#define TORCH_MODULE(Name) SINTER_MODULE(Name)
#define TORCH_ARG(T, name) SINTER_OPTION(T, name)
// An Error with these pieces as its message, unless the condition holds.
#define TORCH_CHECK(condition, ...)                                                                \
  do {                                                                                             \
    if (!(condition)) ::sinter::detail::check_failed(#condition __VA_OPT__(, ) __VA_ARGS__);       \
  } while (false)
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK((a) == (b), #a " == " #b " does not hold: ", (a), " and ", (b))
#define TORCH_CHECK_NE(a, b) TORCH_CHECK((a) != (b), #a " != " #b " does not hold: ", (a))
#define TORCH_CHECK_LT(a, b) TORCH_CHECK((a) < (b), #a " < " #b " does not hold: ", (a), " and ", (b))
#define TORCH_CHECK_LE(a, b) TORCH_CHECK((a) <= (b), #a " <= " #b " does not hold: ", (a), " and ", (b))
#define TORCH_CHECK_GT(a, b) TORCH_CHECK((a) > (b), #a " > " #b " does not hold: ", (a), " and ", (b))
#define TORCH_CHECK_GE(a, b) TORCH_CHECK((a) >= (b), #a " >= " #b " does not hold: ", (a), " and ", (b))
#define TORCH_INTERNAL_ASSERT(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_ASSERT(condition) TORCH_CHECK(condition)
#define AT_ASSERTM(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
