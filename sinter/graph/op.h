#pragma once
// Op: everything the system knows of an operation. One constant object per op, made from one struct in ops/.
#include <functional>
#include <string_view>

#include "sinter/base/api.h"
#include "sinter/graph/attrs.h"
#include "sinter/graph/element.h"
#include "sinter/graph/type.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

// Few kinds carry the rules, so that interpreter, lowering and dispatch have a handful of cases and not one per op.
enum class OpKind : uint8_t {
  kInput,      // a graph input
  kScalar,     // a plain number
  kPointwise,  // a scalar body over broadcast operands
  kView,       // another look at the same elements; eager gives a strided alias
  kLoop,       // each element by its definition, perhaps reduced over extra coordinates: pads, gathers, pools, contractions
  kReduce,     // whole dimensions of one operand combined
  kScatter,    // elements of a source combined into a copy of the first operand
  kScan,       // a running combination along one dimension
  kOpaque,     // a kernel per device
  kComposite   // a body of other ops, kept whole where a template may take it
};

// How many elements become one. kArgMax and kArgMin keep the payload of the winner: the first of equals; NaN wins.
enum class Combine : uint8_t { kNone, kSum, kProd, kMax, kMin, kAny, kAll, kArgMax, kArgMin, kReplace };

// What a combination of no elements is, in this type: what changes nothing that it is combined with.
Scalar identity_of(Combine combine, DType dtype);

// How a pointwise op chooses its types.
enum class Typing : uint8_t {
  kPromote,  // computes in and gives the promoted type
  kFloat,    // as kPromote, but integers become f32
  kCompare,  // computes in the promoted type, gives bool
  kBool,     // takes each operand as a truth value, gives bool
  kInteger,  // kPromote for integers and bool only
  kSelect,   // the first operand is a condition, the rest promote
  kAttr,     // the op names the result type; computes in the operand's type and converts
  kRandom    // i64 operands, a floating result: on_int gives the bits of a double
};

// The scalar function of a pointwise op: as text for the code generator, as functions for the interpreter.
struct PointwiseBody {
  Typing typing;
  std::string_view params;  // "x, y"
  std::string_view text;    // "x * sigmoid(y)"
  int arity;
  int tensors;  // how many leading operands may be tensors; those after them are plain numbers
  bool expensive;  // computing it costs far more than a load and a store
  double (*on_double)(const double* args);
  int64_t (*on_int)(const int64_t* args);
};

// Allowed error of a result against the double-precision referee, beyond rounding to the result's dtype.
struct Tolerance {
  double ulp = 2;        // in units of the last place of the computing type
  double absolute = 0;   // added to it; for f32, other computing types scale it by their precision
  bool partial = false;  // partial results are stored and read again, so each rounds to the result's dtype
};

// Where test inputs are drawn from; uniform in [low, high].
struct Domain {
  double low = -3, high = 3;
};

// One call being differentiated. `grads` are the gradients of the outputs (undefined when none flows).
struct GradCall {
  const Op& op;
  std::span<const TensorArg> inputs;
  std::span<const Tensor> outputs;
  std::span<const Tensor> grads;
  const Attrs& attrs;
  const std::vector<bool>& needed;

  const TensorArg& operator[](int i) const { return inputs[size_t(i)]; }
  const Tensor& out(int i = 0) const { return outputs[size_t(i)]; }
  const Tensor& grad(int i = 0) const { return grads[size_t(i)]; }
  bool needs(int i) const { return needed[size_t(i)]; }
  template <class A>
  const A& as() const { return attrs.as<A>(); }
  // The gradient of each input in turn, computed only where needed: return c.each([&] { … }, [&] { … });
  template <class... F>
  TensorList each(F&&... f) const {
    TensorList out(inputs.size());
    size_t i = 0;
    ((i < needed.size() && needed[i] ? void(out[i] = f()) : void(), ++i), ...);
    return out;
  }
};

// One call with complex operands, told in real ones: see ops/complex_call.h.
struct ComplexCall;

// A value of the reference interpreter: doubles for floating types, int64 for the rest.
struct Array;
struct InterpretCall;

// What an Op calls: a plain function or, for an op registered at run time, a std::function that lives as long as it.
template <class Signature>
class OpFunction;
template <class R, class... Args>
class OpFunction<R(Args...)> {
 public:
  using Plain = R (*)(Args...);
  constexpr OpFunction() = default;
  constexpr OpFunction(std::nullptr_t) {}
  template <class F>
    requires std::is_convertible_v<F, Plain>
  constexpr OpFunction(F plain) : plain_(plain) {}
  explicit OpFunction(const std::function<R(Args...)>* registered) : registered_(registered) {}

  R operator()(Args... args) const { return plain_ ? plain_(args...) : (*registered_)(args...); }
  constexpr operator bool() const { return plain_ || registered_; }

 private:
  Plain plain_ = nullptr;
  const std::function<R(Args...)>* registered_ = nullptr;
};

// What becomes of operands under autocast, as in PyTorch. Promoting types is what ops do anyway.
enum class Autocast : uint8_t {
  kNone,
  kLow,        // they are in the lower type
  kWide,       // in f32
  kWideOnGpu,  // on GPUs
};

struct Op {
  std::string_view name;
  OpKind kind = OpKind::kOpaque;
  int inputs = 1;        // how many operands; -1: any number
  bool random = false;   // never merged, never dropped for being equal to another
  bool aliases = false;  // eager result shares the memory of operand 0
  Autocast autocast = Autocast::kNone;
  bool inlines = false;  // kComposite: a capture records the body; else the op itself, for a template or a pass to take

  OpFunction<Attrs(const FieldTexts& fields)> parse;
  // Types of the results; throws an Error on operands that do not fit.
  OpFunction<std::vector<Type>(const OpCall& call)> infer;
  // Gradients of the inputs; null with a reason in `no_grad_reason` when there is none. A composite without one is
  // differentiated through its body.
  OpFunction<TensorList(const GradCall& call)> grad;
  std::string_view no_grad_reason;

  // What the op does with complex operands, in ops on their real and imaginary parts; null where it has no meaning for them.
  TensorList (*on_complex)(const ComplexCall& call) = nullptr;
  bool sees_complex = false;  // takes complex operands, or gives complex results, as they are: the looks at a pair of parts

  // By kind.
  const PointwiseBody* pointwise = nullptr;             // kPointwise
  // kView: the strided alias of an eager operand, where probing `element` cannot give it; false when it needs a copy.
  bool (*alias)(const OpCall& call, const IntList& strides, IntList& out_strides, int64_t& offset) = nullptr;
  Elem (*element)(ElementBuilder& b) = nullptr;         // kView, kLoop, kReduce, kScatter (value of a source element), kScan
  Shape (*reduction)(const OpCall& call) = nullptr;     // extents reduced over, when `combine` is set
  Dim (*payload)(const ElementBuilder& b) = nullptr;    // kArgMax, kArgMin: what is kept of the winner
  Combine combine = Combine::kNone;
  Shape (*domain)(const OpCall& call) = nullptr;        // kScatter: what is iterated over
  Index (*target)(ElementBuilder& b) = nullptr;         // kScatter: where an element goes
  Combine (*scatter_combine)(const OpCall& call) = nullptr;
  int64_t (*scan_dim)(const OpCall& call) = nullptr;    // kScan
  OpFunction<void(InterpretCall& call)> interpret;      // kOpaque
  // kOpaque; for other kinds where the eager CPU has a better way than their loops (cat: one copy per operand).
  OpFunction<TensorList(std::span<const Tensor> inputs, const Attrs& attrs)> run_cpu;
  bool reads_host_memory = false;  // run_cpu does: operands on another device are brought to the host, results back
  OpFunction<TensorList(std::span<const TensorArg> inputs, const Attrs& attrs)> decompose;  // kComposite

  Tolerance tolerance;
  Domain domain_of_inputs;
  std::span<const std::string_view> samples;  // test operands: "x[2, 3], i64[4]<3 | dim=1"
};

template <class A>
const A& OpCall::as() const { return attrs.as<A>(); }
inline const char* OpCall::name() const { return op.name.data(); }

// Types of the results. Questions about symbolic sizes go to the current tracer; where there is none they are taken to
// hold, since the graph exists already (ops ask only to check).
std::vector<Type> infer_types(const Op& op, std::span<const Type> inputs, const Attrs& attrs);

// The type a pointwise call computes in, before the conversion to the result's type.
DType computing_type(const OpCall& call);

// Every op of the library: the one list (ops/registry.cpp).
std::span<const Op* const> all_ops();
// The op of this name, the library's own or one that register_op added; null when there is none.
const Op* find_op(std::string_view name);
// Why a name of PyTorch's Core ATen set has no op here, empty for every other name.
std::string_view unavailable_reason(std::string_view name);

}  // namespace sinter
