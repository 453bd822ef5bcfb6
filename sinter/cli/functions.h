#pragma once
// What the public op headers say of their functions: a table that the build makes from them (tools/make_functions.cpp).
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinter::cli {

struct PublicHeader {
  const char* path;     // "sinter/ops/view.h"
  const char* summary;  // the comment it opens with
};
std::span<const PublicHeader> public_headers();

struct PublicFunction {
  const char* name;       // "hstack", "linalg::solve"
  const char* header;     // its path
  const char* section;    // of the header, where it has sections
  const char* comment;    // the lines above it; may be empty
  const char* signature;  // without the caller's position
  bool is_method, in_place;
  bool follows;  // without a comment, directly below another one: that one's comment speaks of both
};
// In the order of the headers.
std::span<const PublicFunction> public_functions();

// What is said of a function, be it above the one that it follows.
std::string_view comment_of(const PublicFunction& function);
// Those of a name, with or without its namespace, or LibTorch's flat name (linalg_solve, add_out).
std::vector<const PublicFunction*> functions_named(std::string_view name);

// A line that calls it, of sinter/cli/examples.inc; empty where there is none.
std::string_view example_of(std::string_view name);

// Writes a page for each header, and an index: docs/reference of the tree.
void write_reference(const std::string& folder);

}  // namespace sinter::cli
