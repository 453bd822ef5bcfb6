#pragma once
// Small programs over tensors: data that can be generated, run through the public API (eagerly or under compile()),
// printed as C++ and made smaller.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sinter/graph/op.h"
#include "sinter/sinter.h"
#include "tests/fuzz/state.h"

namespace sinter::fuzz {

// What the expression of a form may name: floating tensors a, b, c; indices x; a mask m; any tensor t; a dimension i; a
// position j; a number n; the number s that the program is given; a layer l, which is called on a; the optimiser o, its
// schedule r, and the parameters p of all layers.
struct Operands {
  const Tensor &a, &b, &c, &x, &m, &t;
  int64_t i, j;
  double n;
  const Scalar& s;
  const nn::AnyModule& l;
  optim::Optimizer& o;
  optim::LRScheduler& r;
  const TensorList& p;
};
inline constexpr std::string_view kTensorNames = "abcxmt";

// One expression: as text, and as a function of its operands.
struct Form {
  const char* text;
  Tensor (*run)(const Operands&);
  bool names(char operand) const;
};
struct Condition {
  const char* text;
  bool (*holds)(const Operands&);
  bool names(char operand) const;
};
const std::vector<Form>& forms();
// Where each group of them begins and ends, in the order of FormGroup.
enum FormGroup {
  kPointwiseForms,
  kReduceForms,
  kMoveForms,
  kViewForms,
  kWriteForms,
  kNumberForms,
  kOtherForms,
  kStateForms
};
std::pair<int, int> forms_of(FormGroup group);
const std::vector<Condition>& conditions();

// How a variable becomes an operand that an op or a layer takes. Nothing is done where nothing is said.
struct Fit {
  // A size, or -1 - d: that of dimension d of the variable `like`.
  std::optional<std::vector<int64_t>> sizes;
  int like = -1;
  std::optional<DType> dtype;    // kBool: whether positive
  std::optional<int64_t> below;  // integers in [0, below); coded as the sizes are
  bool by_place = false;         // those integers do not depend on the values
  std::optional<Domain> domain;
  bool contiguous = false;
};
struct Operand {
  int variable = -1;
  Fit fit;
};

// Which variables, and which numbers, stand for the operands of an expression.
struct Choice {
  Operand tensors[kTensorNames.size()];
  int64_t i = 0, j = 0;
  double n = 1;
  int layer = -1;
};

// One op of the registry, by its attributes' text.
struct OpUse {
  const Op* op = nullptr;
  std::string attributes;
  struct Argument {
    std::optional<Scalar> number;  // else a tensor
    Operand tensor;
  };
  std::vector<Argument> arguments;
  int result = 0;
};

// A form with its operands or, where `use.op` is set, an op.
struct Call {
  int form = 0;
  Choice choice;
  OpUse use;
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
  StateSpec state;
  std::vector<Statement> statements;
  std::vector<int> results;
  bool as_module = false;  // compiled by the handle of a module that holds the layers
  bool coarse = false;     // a value of it has eight bits of mantissa
  int inputs() const { return int(arguments.size() + captured.size()); }
};

// The sizes and the values of one call.
struct Round {
  int64_t rows = 4, columns = 6;
  uint32_t values = 0;
  bool training = true;    // the mode of the layers
  double disturbance = 0;  // relative change of every floating value
};

struct Data {
  TensorList tensors;  // one for each input
  TensorList leaves;   // those of them, or of what they are made of, that require gradients
};
Data make_inputs(const std::vector<Input>& inputs, const Round& round, uint32_t stream);
Scalar make_number(const Round& round);

// While it lives, each floating result of a statement is moved by about this part of it, up or down by the pattern, elements by
// themselves or, from kAlike on, all one way: what rounding inside the program may do. Results that share memory with others
// stay.
class RoundingScope {
 public:
  static constexpr int kAlike = 16, kPatterns = 20;
  RoundingScope(double step, int pattern);
  ~RoundingScope();
  static Tensor applied_to(const Tensor& made, const TensorList& variables);
  // Results whose gradients are moved so; a sum of gradients that cancel shows what rounding leaves of it.
  static TensorList weighted(const TensorList& results);

 private:
  Tensor ways(const Shape& sizes) const;

  const double step_;
  const int pattern_;
};

// Runs one statement on the variables so far.
Tensor run(const Statement& statement, const TensorList& variables, const Scalar& s, const State& state);
TensorList run(const Program& program, const TensorList& arguments, const TensorList& captured, const Scalar& s,
               const State& state);

// Whether one of them has eight bits of mantissa.
bool any_coarse(const TensorList& variables);

// Functions that printed programs bring along.
TensorList op(const char* name, const std::vector<TensorArg>& operands, const char* attributes);
Tensor fit(const Tensor& t, const Shape& sizes);
// Into a domain, smoothly: where all that lies outside became one of its ends, there would be ties that no disturbance of
// the values can tell from others, and that rounding decides.
Tensor into(const Tensor& t, double low, double high);
Tensor indices(const Tensor& t, const Dim& below);
// Indices by the place of each element, which no rounding moves.
Tensor places(const Tensor& t, const Dim& below);
Tensor weighted_sum(const TensorList& results);
// Their text.
std::string_view helper_text();

// A complete C++ program that calls it eagerly and compiled with these options (as written in C++) on these rounds.
std::string print(const Program& program, const std::string& options, const std::vector<Round>& rounds);

}  // namespace sinter::fuzz
