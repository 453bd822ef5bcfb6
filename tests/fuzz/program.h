#pragma once
// Small programs over tensors: data that can be generated, run through the public API (eagerly or under compile()),
// printed as C++ and made smaller.
#include <cstdint>
#include <string>
#include <vector>

#include "sinter/sinter.h"

namespace sinter::fuzz {

// What the expression of a form may name: floating tensors a, b, c; indices x; a mask m; any tensor t; a dimension i; a
// position j; a number n; the number s that the program is given.
struct Operands {
  const Tensor &a, &b, &c, &x, &m, &t;
  int64_t i, j;
  double n;
  const Scalar& s;
};
inline constexpr std::string_view kTensorNames = "abcxmt";

// One expression: as text, and as a function of its operands.
struct Form {
  const char* text;
  Tensor (*run)(const Operands&);
  bool names(char operand) const;
  bool writes() const { return std::string_view(text).find("_(") != std::string_view::npos; }
  bool draws() const { return std::string_view(text).find("rand") != std::string_view::npos; }
};
struct Condition {
  const char* text;
  bool (*holds)(const Operands&);
  bool names(char operand) const;
};
const std::vector<Form>& forms();
const std::vector<Condition>& conditions();

// Which variables, and which numbers, stand for the operands of an expression.
struct Choice {
  int variables[kTensorNames.size()] = {-1, -1, -1, -1, -1, -1};
  int64_t i = 0, j = 0;
  double n = 1;
};
struct Call {
  int form = 0;
  Choice choice;
};

// variable = call, or variable = condition ? call : otherwise.
struct Statement {
  Call call;
  int condition = -1;
  Choice asked;
  Call otherwise;
};

struct Input {
  DType dtype = kFloat32;
  std::vector<int> sizes;  // a number, or kRows, kColumns
  enum class Layout { kRowMajor, kTransposed, kSpread, kExpanded, kSame, kRow } layout = Layout::kRowMajor;
  int of = -1;  // kSame, kRow: of this earlier input
  bool requires_grad = false, leaf = true;
};
inline constexpr int kRows = -1, kColumns = -2;

// Variables are numbered: the arguments, the captured tensors, then the result of each statement.
struct Program {
  uint32_t seed = 0;
  std::vector<Input> arguments, captured;
  std::vector<Statement> statements;
  std::vector<int> results;
  int inputs() const { return int(arguments.size() + captured.size()); }
};

// The sizes and the values of one call.
struct Round {
  int64_t rows = 4, columns = 6;
  uint32_t values = 0;
  double disturbance = 0;  // relative change of every floating value
};

struct Data {
  TensorList tensors;  // one for each input
  TensorList leaves;   // those of them, or of what they are made of, that require gradients
};
Data make_inputs(const std::vector<Input>& inputs, const Round& round, uint32_t stream);
Scalar make_number(const Round& round);

// Runs one statement on the variables so far.
Tensor run(const Statement& statement, const TensorList& variables, const Scalar& s);
TensorList run(const Program& program, const TensorList& arguments, const TensorList& captured, const Scalar& s);

// A complete C++ program that calls it eagerly and compiled with these options (as written in C++) on these rounds.
std::string print(const Program& program, const std::string& options, const std::vector<Round>& rounds);

}  // namespace sinter::fuzz
