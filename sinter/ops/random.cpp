#include "sinter/ops/creation.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <numbers>
#include <random>

#include "sinter/base/host_effects.h"
#include "sinter/ops/checked.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/define.h"
#include "sinter/ops/draws.h"
#include "sinter/ops/layout.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

struct RandomAttrs {
  Shape size;
  DType dtype = kFloat32;
  Device device;
  SINTER_FIELDS(size, dtype, device)
};

// The scalar functions of (element, seed, offset) behind the ops.
#define SINTER_RANDOM_BODY(Struct, function)                                       \
  struct Struct : Pointwise<Struct> {                                              \
    static constexpr auto name = #function;                                        \
    static constexpr Typing typing = Typing::kRandom;                              \
    SINTER_BODY((index, seed, offset), function(index, seed, offset))              \
    static constexpr NotDifferentiable grad{"random numbers depend on no tensor"}; \
  };
SINTER_RANDOM_BODY(UniformF32, rand_uniform_f32)
SINTER_RANDOM_BODY(WordF32, rand_word_f32)
SINTER_RANDOM_BODY(UniformF64, rand_uniform_f64)
SINTER_RANDOM_BODY(NormalF32, rand_normal_f32)
#undef SINTER_RANDOM_BODY

const Op& pointwise(std::string_view name) {
  const Op* op = find_op(name);
  SINTER_INTERNAL_ASSERT(op, "no op is called {}", name);
  return *op;
}

// Operands are the seed and the offset of the draw, then what the op adds.
template <class Self>
struct Random : Loop {
  using Attributes = RandomAttrs;
  static constexpr bool random = true;
  static constexpr int inputs = 2;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<RandomAttrs>();
    for (auto& d : a.size) check(!d.is_number() || d.number() >= 0, "{}: the size {} is negative", call.name(), a.size);
    check(Self::floating ? is_floating(a.dtype) : a.dtype != kBool, "{}: cannot draw numbers of dtype {}", call.name(),
          a.dtype);
    return {Type{a.dtype, a.size, a.device}};
  }
  static Dim linear_index(const ElementBuilder& b) {
    Dim at = 0;
    auto& size = b.call.as<RandomAttrs>().size;
    for (size_t d = 0; d < size.size(); ++d) at = at * size[d] + b.i[d];
    return at;
  }
  template <class Body>
  static Elem draw(ElementBuilder& b, DType dtype, const Dim& index) {
    return b.apply(op_of<Body>, dtype, {b.number(index), b.load(0, {}), b.load(1, {})});
  }
  static constexpr NotDifferentiable grad{"random numbers depend on no tensor"};
};

struct Rand : Random<Rand> {
  static constexpr auto name = "rand";
  static constexpr bool floating = true;
  static Elem element(ElementBuilder& b) {
    DType dtype = b.call.as<RandomAttrs>().dtype;
    if (dtype == kFloat64) return draw<UniformF64>(b, kFloat64, linear_index(b));
    Elem u = draw<UniformF32>(b, kFloat32, linear_index(b));
    if (dtype == kFloat32) return u;
    // As many bits as the half type holds: rounding must not reach 1.
    static const Op &mul = pointwise("mul"), &floor = pointwise("floor");
    double steps = dtype == kFloat16 ? 0x1p11 : 0x1p8;
    Elem whole = b.apply(floor, kFloat32, {b.apply(mul, kFloat32, {u, b.constant(steps)})});
    return b.apply(mul, kFloat32, {whole, b.constant(1 / steps)});
  }
  SINTER_SAMPLES("5, 0 | size=[3, 4], dtype=f32", "1, 7 | size=[100], dtype=f32", "-3, 2 | size=[37], dtype=f64",
                 "0, 1 | size=[2, 19], dtype=bf16", "9, 9 | size=[40], dtype=f16", "1, 1 | size=[0], dtype=f32")
};

// As rand of f32, but four elements after one another share a counter.
struct RandWords : Random<RandWords> {
  static constexpr auto name = "rand_words";
  static constexpr bool floating = true;
  static std::vector<Type> infer(const OpCall& call) {
    check(call.as<RandomAttrs>().dtype == kFloat32, "rand_words: draws f32, not {}", call.as<RandomAttrs>().dtype);
    return Random::infer(call);
  }
  static Elem element(ElementBuilder& b) { return draw<WordF32>(b, kFloat32, linear_index(b)); }
  SINTER_SAMPLES("5, 0 | size=[3, 4]", "1, 7 | size=[2, 37]", "-3, 2 | size=[0]")
};

struct RandN : Random<RandN> {
  static constexpr auto name = "randn";
  static constexpr bool floating = true;
  // f64 draws its two uniforms from different elements of the stream, for all their bits.
  static Elem element(ElementBuilder& b) {
    if (b.call.as<RandomAttrs>().dtype != kFloat64) return draw<NormalF32>(b, kFloat32, linear_index(b));
    static const Op &mul = pointwise("mul"), &sub = pointwise("sub"), &log = pointwise("log"), &cos = pointwise("cos"),
                    &sqrt = pointwise("sqrt");
    auto apply = [&](const Op& op, std::initializer_list<Elem> args) { return b.apply(op, kFloat64, args); };
    Elem u = draw<UniformF64>(b, kFloat64, linear_index(b) * 2),
         v = draw<UniformF64>(b, kFloat64, linear_index(b) * 2 + 1);
    Elem radius = apply(sqrt, {apply(mul, {apply(log, {apply(sub, {b.constant(1.0), u})}), b.constant(-2.0)})});
    return apply(mul, {radius, apply(cos, {apply(mul, {v, b.constant(2 * std::numbers::pi)})})});
  }
  static constexpr Tolerance tolerance{.ulp = 4, .absolute = 2e-6};
  SINTER_SAMPLES("5, 0 | size=[3, 4], dtype=f32", "1, 7 | size=[100], dtype=f32", "-3, 2 | size=[37], dtype=f64",
                 "0, 1 | size=[2, 19], dtype=bf16", "1, 1 | size=[0], dtype=f32")
};

struct RandInt : Random<RandInt> {
  static constexpr auto name = "randint";
  static constexpr int inputs = 4;
  static constexpr bool floating = false;
  static Elem element(ElementBuilder& b) {
    static const Op &mul = pointwise("mul"), &sub = pointwise("sub"), &floor = pointwise("floor"),
                    &add = pointwise("add");
    Elem low = b.load(2, {}), range = b.apply(sub, kInt64, {b.load(3, {}), low});
    Elem u = draw<UniformF64>(b, kFloat64, linear_index(b));
    return b.apply(add, kInt64, {b.apply(floor, kFloat64, {b.apply(mul, kFloat64, {u, range})}), low});
  }
  SINTER_SAMPLES("5, 0, 0, 10 | size=[3, 4], dtype=i64", "1, 7, -5, 100 | size=[100], dtype=i32",
                 "2, 2, 0, 2 | size=[37], dtype=u8", "0, 1, 3, 9 | size=[19], dtype=f32")
};

// The stream that a call was given; null: the default one.
thread_local Generator* given_stream = nullptr;

template <class T>
Tensor draw_tensor(const Shape& size, const TensorOptions& options, const Where& where,
                   std::initializer_list<Scalar> more = {}) {
  UserPosition here(where, op_of<T>.name.data());
  check_available(options.device_);
  std::vector<TensorArg> inputs = next_draw(where);
  for (auto& s : more) inputs.push_back({s, where});
  Tensor out = call_op(op_of<T>, inputs, RandomAttrs{size, options.dtype_, options.device_}, where);
  if (options.requires_grad_) out.requires_grad_();
  return out;
}

}  // namespace

namespace {

// The stream is moved on the host: what a program that is being captured has drawn so far comes before.
void settle_draws(const Generator& generator, const char* what) {
  auto* effects = HostEffects::current();
  if (effects && &generator == &default_generator()) effects->settle_draws(what);
}

}  // namespace

struct Generator::State {
  std::mutex mutex;
  Draw position;
};

Generator::Generator(uint64_t seed) : state_(new State{{}, {int64_t(seed), 0}}) {}
Generator::~Generator() = default;

void Generator::manual_seed(uint64_t seed) { set_position({int64_t(seed), 0}); }

void Generator::set_position(const Draw& position) {
  auto move_to = [this](const Draw& to) {
    std::lock_guard lock(state_->mutex);
    state_->position = to;
  };
  if (this != &default_generator()) {
    note_host_change("a seed");
    return move_to(position);
  }
  settle_draws(*this, "manual_seed()");
  Draw before = where_it_is();
  perform_on_host("manual_seed()", [=] { move_to(position); }, [=] { move_to(before); });
}
Generator::Draw Generator::where_it_is() const {
  std::lock_guard lock(state_->mutex);
  return state_->position;
}
Generator::Draw Generator::position() const {
  settle_draws(*this, "Generator::position()");
  note_host_change("Generator::position()");
  return where_it_is();
}
uint64_t Generator::seed() {
  settle_draws(*this, "Generator::seed()");
  note_host_change("Generator::seed()");
  std::random_device device;
  uint64_t seed = uint64_t(device()) << 32 | device();
  manual_seed(seed);
  return seed;
}
uint64_t Generator::initial_seed() const {
  note_host_change("Generator::initial_seed()");
  std::lock_guard lock(state_->mutex);
  return uint64_t(state_->position.seed);
}
Generator::Draw Generator::next(int64_t count) {
  settle_draws(*this, "Generator::next()");
  note_host_change("Generator::next()");
  std::lock_guard lock(state_->mutex);
  Draw first = state_->position;
  state_->position.offset += count;
  return first;
}

Tensor Generator::get_state() const {
  Draw at = position();
  return from_data(reinterpret_cast<const uint8_t*>(&at), {Dim(sizeof at)});
}
void Generator::set_state(const Tensor& state) {
  Draw at;
  check(state.dtype() == kUInt8 && state.numel() == int64_t(sizeof at),
        "Generator::set_state: expected the {} bytes that get_state() gave, got {} {}", int64_t(sizeof at),
        state.dtype(), state.sizes());
  Tensor bytes = state.cpu().contiguous();
  std::memcpy(&at, bytes.data_ptr<uint8_t>(), sizeof at);
  set_position(at);
}

Generator& default_generator() {
  static auto* generator = new Generator;  // threads may draw while the process ends
  return *generator;
}
void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }

DrawFrom::DrawFrom(Generator& generator) : before_(given_stream) { given_stream = &generator; }
DrawFrom::~DrawFrom() { given_stream = before_; }

std::vector<TensorArg> next_draw(const Where& where) {
  std::vector<TensorArg> draw;
  if (auto* tracer = Tracer::current(); tracer && !given_stream) draw = tracer->draw();
  if (!draw.empty()) return draw;
  auto [seed, offset] = (given_stream ? *given_stream : default_generator()).next();
  return {{seed, where}, {offset, where}};
}
Tensor rand_words(const Shape& size, Device device, const TensorArg& seed, const TensorArg& offset) {
  return call_op(op_of<RandWords>, {{seed, offset}}, RandomAttrs{size, kFloat32, device}, seed.where());
}

namespace {

// Of a complex dtype both parts are drawn.
template <class Op>
Tensor draw_pairs(const Shape& size, const TensorOptions& options, const Where& where, double scale) {
  Shape pairs = size;
  pairs.push_back(2);
  Tensor parts = draw_tensor<Op>(pairs, options.dtype(real_dtype(options.dtype_)).requires_grad(false), where);
  Tensor out = view_as_complex(scale == 1 ? parts : parts * scale);
  return options.requires_grad_ ? out.requires_grad_() : out;
}

}  // namespace

Tensor rand(const Shape& size, const TensorOptions& options, Where where) {
  UserPosition here(where);
  if (is_complex(options.dtype_)) return draw_pairs<Rand>(size, options, where, 1);
  return draw_tensor<Rand>(size, options, where);
}
Tensor randn(const Shape& size, const TensorOptions& options, Where where) {
  UserPosition here(where);
  // Of variance 1 altogether.
  if (is_complex(options.dtype_)) return draw_pairs<RandN>(size, options, where, std::numbers::sqrt2 / 2);
  return draw_tensor<RandN>(size, options, where);
}
Tensor randint(int64_t high, const Shape& size, const TensorOptions& options, Where where) {
  return randint(0, high, size, options, where);
}
Tensor randint(int64_t low, int64_t high, const Shape& size, const TensorOptions& options, Where where) {
  UserPosition here(where);
  check(low < high, "randint: no integer lies in [{}, {})", low, high);
  check(double(high) - double(low) <= 0x1p53, "randint: [{}, {}) spans more than 2^53 integers", low, high);
  return draw_tensor<RandInt>(size, options.over(kInt64), where, {low, high});
}
namespace {

// Draws are told by elements, not by places: what one is does not depend on the order.
template <class F>
Tensor draw_like(const char* function, const TensorArg& x, const TensorOptions& options, MemoryFormat format, F draw) {
  UserPosition here(x.where());
  const TensorOptions o = options.over(x.tensor().options());
  Tensor out = laid_like(function, x.tensor(), format, draw(o.requires_grad(false)));
  return o.requires_grad_ ? out.requires_grad_() : out;
}

}  // namespace

Tensor rand_like(const TensorArg& x, const TensorOptions& options, MemoryFormat format) {
  return draw_like("rand_like", x, options, format, [&](const TensorOptions& o) { return rand(x.sizes(), o, x.where()); });
}
Tensor randn_like(const TensorArg& x, const TensorOptions& options, MemoryFormat format) {
  return draw_like("randn_like", x, options, format, [&](const TensorOptions& o) { return randn(x.sizes(), o, x.where()); });
}
Tensor randint_like(const TensorArg& x, int64_t high, const TensorOptions& options, MemoryFormat format) {
  return randint_like(x, 0, high, options, format);
}
Tensor randint_like(const TensorArg& x, int64_t low, int64_t high, const TensorOptions& options, MemoryFormat format) {
  return draw_like("randint_like", x, options, format,
                   [&](const TensorOptions& o) { return randint(low, high, x.sizes(), o, x.where()); });
}

Tensor randperm(Dim n, const TensorOptions& options, Where where) {
  UserPosition here(where);
  Tensor keys = rand({n}, options.dtype(kFloat64).requires_grad(false), where);
  return to(argsort(keys), options.over(kInt64).dtype_);
}

Tensor bernoulli(const TensorArg& p) {
  UserPosition here(p.where());
  check(is_floating(p.dtype()), "bernoulli: probabilities must be floating, got {}", p.dtype());
  Tensor chance = p.is_scalar() ? full({}, p) : p.tensor();
  chance = checked(chance, (chance >= 0) & (chance <= 1), Fault::kBernoulli);
  return to(rand(chance.sizes(), chance.options().dtype(kFloat32)) < chance, chance.dtype());
}

Tensor bernoulli(const TensorArg& x, double p) {
  UserPosition here(x.where());
  check(p >= 0 && p <= 1, "bernoulli: the probability {} is not between 0 and 1", p);
  return to(rand(x.sizes(), x.tensor().options().dtype(kFloat32)) < p, x.dtype());
}

// Each index wins with its weight's probability when weights are divided by exponential noise.
Tensor multinomial(const TensorArg& weights, int64_t num_samples, bool replacement) {
  UserPosition here(weights.where());
  Tensor w = weights.tensor();
  check(is_floating(w.dtype()) && (w.dim() == 1 || w.dim() == 2),
        "multinomial: expected floating weights of 1 or 2 dimensions, got {} of shape {}", w.dtype(), w.sizes());
  check(num_samples > 0, "multinomial: cannot draw {} samples", num_samples);
  w = checked(w, (w >= 0) & (w < std::numeric_limits<double>::infinity()), Fault::kMultinomialWeight);
  w = checked(w, w.sum({-1}) > 0, Fault::kMultinomialSum);
  TensorOptions options = w.options().dtype(kFloat64);
  auto noise = [&](const Shape& size) { return -log1p(-rand(size, options)); };
  if (!replacement) {
    check(num_samples <= w.size(-1), "multinomial: cannot draw {} different indices of {}", num_samples, w.size(-1));
    return std::get<1>(topk(w / noise(w.sizes()), num_samples, -1));
  }
  Shape size = w.sizes();
  size.insert(size.end() - 1, Dim(num_samples));
  return argmax(w.unsqueeze(-2) / noise(size), -1);
}

Tensor normal(const Tensor& mean, double std, Where where) {
  UserPosition here(where);
  check(std >= 0, "normal: the standard deviation {} is negative", std);
  return mean + randn(mean.sizes(), mean.options(), where) * std;
}
Tensor normal(double mean, const Tensor& std, Where where) {
  UserPosition here(where);
  return randn(std.sizes(), std.options(), where) * std + mean;
}
Tensor normal(const Tensor& mean, const Tensor& std, Where where) {
  UserPosition here(where);
  return mean + randn(broadcast_shapes("normal", mean.sizes(), std.sizes()), mean.options(), where) * std;
}
Tensor normal(double mean, double std, const Shape& size, const TensorOptions& options, Where where) {
  UserPosition here(where);
  check(std >= 0, "normal: the standard deviation {} is negative", std);
  Tensor out = randn(size, options.requires_grad(false), where) * std + mean;
  return options.requires_grad_ ? out.requires_grad_() : out;
}

// --- from a stream of one's own

Tensor rand(const Shape& size, Generator& generator, const TensorOptions& options, Where where) {
  DrawFrom from(generator);
  return rand(size, options, where);
}
Tensor randn(const Shape& size, Generator& generator, const TensorOptions& options, Where where) {
  DrawFrom from(generator);
  return randn(size, options, where);
}
Tensor randint(int64_t high, const Shape& size, Generator& generator, const TensorOptions& options, Where where) {
  DrawFrom from(generator);
  return randint(high, size, options, where);
}
Tensor randint(int64_t low, int64_t high, const Shape& size, Generator& generator, const TensorOptions& options,
               Where where) {
  DrawFrom from(generator);
  return randint(low, high, size, options, where);
}
Tensor randperm(Dim n, Generator& generator, const TensorOptions& options, Where where) {
  DrawFrom from(generator);
  return randperm(n, options, where);
}
Tensor bernoulli(const TensorArg& p, Generator& generator) {
  DrawFrom from(generator);
  return bernoulli(p);
}
Tensor multinomial(const TensorArg& weights, int64_t num_samples, bool replacement, Generator& generator) {
  DrawFrom from(generator);
  return multinomial(weights, num_samples, replacement);
}
Tensor normal(const Tensor& mean, double std, Generator& generator, Where where) {
  DrawFrom from(generator);
  return normal(mean, std, where);
}
Tensor normal(double mean, const Tensor& std, Generator& generator, Where where) {
  DrawFrom from(generator);
  return normal(mean, std, where);
}
Tensor normal(const Tensor& mean, const Tensor& std, Generator& generator, Where where) {
  DrawFrom from(generator);
  return normal(mean, std, where);
}
Tensor normal(double mean, double std, const Shape& size, Generator& generator, const TensorOptions& options,
              Where where) {
  DrawFrom from(generator);
  return normal(mean, std, size, options, where);
}

namespace {

void check_probability(const char* op, double p) {
  check(p >= 0 && p <= 1, "{}: the probability {} is not between 0 and 1", op, p);
}

// True with probability 1 - p: one draw for each element of x, or for each channel of each sample.
Tensor kept(const char* op, const Tensor& x, double p, bool whole_channels) {
  Shape size = x.sizes();
  if (whole_channels) {
    check(x.dim() >= 2, "{}: expected an input [batch, channels, …], got {}", op, x.sizes());
    for (size_t d = 2; d < size.size(); ++d) size[d] = 1;
  }
  return rand(size, x.options().dtype(kFloat32)) >= p;
}

Tensor self_normalizing_dropout(const char* op, const TensorArg& x_arg, double p, bool train, bool whole_channels) {
  UserPosition here(x_arg.where());
  const Tensor& x = x_arg.tensor();
  check_probability(op, p);
  if (!train || p == 0) return x;
  if (p == 1) return x * 0;
  // The limit of selu for ever smaller x.
  constexpr double kLimit = -1.7580993408473766;
  double scale = 1 / std::sqrt((1 - p) * (1 + p * kLimit * kLimit));
  return where(kept(op, x, p, whole_channels), x, kLimit) * scale - scale * p * kLimit;
}

}  // namespace

std::tuple<Tensor, Tensor> native_dropout(const TensorArg& x, double p, bool train) {
  UserPosition here(x.where());
  check_probability("dropout", p);
  if (!train) return {x.tensor(), ones(x.sizes(), x.tensor().options().dtype(kBool))};
  Tensor mask = kept("dropout", x.tensor(), p, false);
  return {x * mask * (p == 1 ? 0.0 : 1 / (1 - p)), mask};
}
Tensor dropout(const TensorArg& x, double p, bool train) {
  UserPosition here(x.where());
  check_probability("dropout", p);
  return train && p > 0 ? std::get<0>(native_dropout(x, p, true)) : x.tensor();
}
Tensor feature_dropout(const TensorArg& x, double p, bool train) {
  UserPosition here(x.where());
  check_probability("feature_dropout", p);
  if (!train || p == 0) return x.tensor();
  return x * kept("feature_dropout", x.tensor(), p, true) * (p == 1 ? 0.0 : 1 / (1 - p));
}
Tensor alpha_dropout(const TensorArg& x, double p, bool train) {
  return self_normalizing_dropout("alpha_dropout", x, p, train, false);
}
Tensor feature_alpha_dropout(const TensorArg& x, double p, bool train) {
  return self_normalizing_dropout("feature_alpha_dropout", x, p, train, true);
}

// --- in place

namespace {

void check_floating(const char* op, const Tensor& t) {
  check(is_floating(t.dtype()), "{}: expected a floating tensor, got {}", op, t.dtype());
}

}  // namespace

const Tensor& Tensor::uniform_(double low, double high, Where where) const {
  UserPosition here(where);
  check_floating("uniform_", *this);
  check(low <= high, "uniform_: the range [{}, {}) is empty", low, high);
  Tensor u = rand(sizes(), options(), where);
  return copy_({low == 0 && high == 1 ? u : u * (high - low) + low, where});
}
const Tensor& Tensor::normal_(double mean, double std, Where where) const {
  UserPosition here(where);
  check_floating("normal_", *this);
  check(std >= 0, "normal_: the standard deviation {} is negative", std);
  Tensor z = randn(sizes(), options(), where);
  return copy_({mean == 0 && std == 1 ? z : z * std + mean, where});
}
const Tensor& Tensor::bernoulli_(double p, Where where) const {
  UserPosition here(where);
  check(p >= 0 && p <= 1, "bernoulli_: the probability {} is not between 0 and 1", p);
  return copy_({rand(sizes(), options().dtype(kFloat32), where) < p, where});
}

const Tensor& Tensor::uniform_(double low, double high, Generator& generator, Where where) const {
  DrawFrom from(generator);
  return uniform_(low, high, where);
}
const Tensor& Tensor::normal_(double mean, double std, Generator& generator, Where where) const {
  DrawFrom from(generator);
  return normal_(mean, std, where);
}
const Tensor& Tensor::bernoulli_(double p, Generator& generator, Where where) const {
  DrawFrom from(generator);
  return bernoulli_(p, where);
}

const Tensor& Tensor::random_(int64_t from, int64_t to, Where where) const {
  UserPosition here(where);
  if (dtype() == kBool) {
    check(from >= 0 && to <= 2, "random_: [{}, {}) has other values than false and true", from, to);
    return copy_({randint(from, to, sizes(), options().dtype(kInt64), where) != 0, where});
  }
  return copy_({randint(from, to, sizes(), options(), where), where});
}
const Tensor& Tensor::random_(int64_t to, Where where) const { return random_(0, to, where); }
// The whole numbers that the dtype holds exactly, up to 2^53.
const Tensor& Tensor::random_(Where where) const {
  constexpr int64_t kBits[] = {1, 8, 7, 15, 31, 53, 11, 8, 24, 53};
  return random_(0, int64_t(1) << kBits[int(dtype())], where);
}

// The draws below are functions of a uniform one in (0, 1]: its logarithm is finite.
const Tensor& Tensor::exponential_(double lambd, Where where) const {
  UserPosition here(where);
  check_floating("exponential_", *this);
  check(lambd > 0, "exponential_: the rate {} is not positive", lambd);
  return copy_({-sinter::log1p(-rand(sizes(), options().dtype(kFloat64), where)) / lambd, where});
}
const Tensor& Tensor::cauchy_(double median, double sigma, Where where) const {
  UserPosition here(where);
  check_floating("cauchy_", *this);
  check(sigma > 0, "cauchy_: the scale {} is not positive", sigma);
  Tensor angle = (rand(sizes(), options().dtype(kFloat64), where) - 0.5) * std::numbers::pi;
  return copy_({sinter::tan(angle) * sigma + median, where});
}
const Tensor& Tensor::log_normal_(double mean, double std, Where where) const {
  UserPosition here(where);
  check_floating("log_normal_", *this);
  check(std > 0, "log_normal_: the standard deviation {} is not positive", std);
  return copy_({sinter::exp(randn(sizes(), options(), where) * std + mean), where});
}
const Tensor& Tensor::geometric_(double p, Where where) const {
  UserPosition here(where);
  check(p > 0 && p < 1, "geometric_: the probability {} is not between 0 and 1", p);
  check(dtype() != kBool, "geometric_: a number of trials is no bool");
  Tensor log_share = sinter::log1p(-rand(sizes(), options().dtype(kFloat64), where));
  return copy_({sinter::clamp_min(sinter::ceil(log_share / std::log1p(-p)), 1), where});
}

OpFamily random_ops() {
  static const Op* const ops[] = {&op_of<Rand>, &op_of<RandWords>, &op_of<RandN>, &op_of<RandInt>};
  return ops;
}

}  // namespace sinter
