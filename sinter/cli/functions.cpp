#include "sinter/cli/functions.h"

namespace sinter::cli {

namespace {

struct Example {
  std::string_view name, text;
};
constexpr Example kExamples[] = {
#define EXAMPLE(name, ...) {#name, #__VA_ARGS__},
#include "sinter/cli/examples.inc"
#undef EXAMPLE
};

}  // namespace

std::string_view comment_of(const PublicFunction& function) {
  auto* f = &function;
  while (f->follows && !*f->comment) --f;
  return f->comment;
}

std::vector<const PublicFunction*> functions_named(std::string_view name) {
  std::vector<const PublicFunction*> out;
  for (auto& f : public_functions()) {
    std::string_view full = f.name, last = full.substr(full.rfind(':') + 1);
    if (full == name || last == name) out.push_back(&f);
  }
  return out;
}

std::string_view example_of(std::string_view name) {
  for (auto& example : kExamples)
    if (example.name == name) return example.text;
  return {};
}

}  // namespace sinter::cli
