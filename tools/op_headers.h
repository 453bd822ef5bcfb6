#pragma once
// The functions that the public op headers declare, read from the text of the headers.
#include <string>
#include <string_view>
#include <vector>

// A declaration without comments, and what stands around it.
struct Statement {
  std::string text;
  std::string note;      // the comment that ends its last line
  std::string comment;   // the lines above it, joined by newlines
  std::string section;   // the last "--- …" above it
  std::string scope;     // "linalg::" inside of that namespace
  bool follows = false;  // without a comment, directly below another one (of a function: below another function)
};

struct Parameter {
  std::string type, name, standard;  // standard: what stands behind "=", if anything
};

struct Function {
  Statement statement;
  std::string constraint;  // "template <…> requires …", empty of a plain function
  std::string result, name;
  std::vector<Parameter> parameters;
  // Whether the build makes a method of Tensor of it, and one that works in place (make_methods.cpp).
  bool is_method = false, in_place = false;
};

// A function of namespace sinter that a namespace inside of it has, too: `using sinter::erf;` in special.
struct Borrowed {
  std::string scope, name;
};

struct Header {
  std::string path;
  std::string summary;  // the comment it opens with
  std::vector<Function> functions;
  std::vector<Borrowed> borrowed;
};

// Throws when there is no such file.
std::string read_file(const std::string& path);
// Leaves a file as it is, with its time, when it would not change.
void write_if_changed(const std::string& path, const std::string& text);

// White space at the ends dropped, and a single space elsewhere.
std::string tidy(std::string_view text);
bool is_word(char c);
// A `const TensorArg&`.
bool is_operand(const Parameter& parameter);

// The functions of namespace sinter and of the namespaces inside of it, but for `detail` and operators.
Header read_header(const std::string& path);
