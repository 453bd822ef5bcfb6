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

// "linalg_solve" of "linalg::solve".
bool is_flat_name(std::string_view name, std::string_view full) {
  const size_t colon = full.find("::");
  return colon != full.npos && name.size() + 1 == full.size() && name.starts_with(full.substr(0, colon)) && name[colon] == '_' &&
         name.substr(colon + 1) == full.substr(colon + 2);
}

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
    if (full == name || last == name || is_flat_name(name, full)) out.push_back(&f);
  }
  constexpr std::string_view kOut = "_out";
  if (out.empty() && name.ends_with(kOut)) return functions_named(name.substr(0, name.size() - kOut.size()));
  return out;
}

std::string_view example_of(std::string_view name) {
  for (auto& example : kExamples)
    if (example.name == name) return example.text;
  return {};
}

}  // namespace sinter::cli
