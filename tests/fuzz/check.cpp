// What a program does, eagerly and compiled, and whether it is the same.
#include <algorithm>
#include <cmath>

#include "sinter/base/format.h"
#include "tests/fuzz/fuzzer.h"

namespace sinter::fuzz {

namespace {

struct Seen {
  std::string name;
  bool defined = false, requires_grad = false;
  DType dtype = kFloat32;
  IntList sizes, strides;
  std::vector<double> values;
};

struct Observation {
  bool failed = false, backward_failed = false, broken = false;  // broken: by a fault of the library's own
  std::string error;
  std::vector<Seen> tensors;
  std::string sharing;  // which of the tensors see the same memory, and from where
};

Seen look(std::string name, const Tensor& tensor, bool layout) {
  Seen seen{.name = std::move(name), .sizes = {}, .strides = {}, .values = {}};
  seen.defined = tensor.defined();
  if (!seen.defined) return seen;
  seen.requires_grad = tensor.requires_grad();
  seen.dtype = tensor.dtype();
  seen.sizes = tensor.impl().sizes;
  if (layout)
    for (size_t d = 0; d < seen.sizes.size(); ++d)  // the stride of a dimension of one element means nothing
      seen.strides.push_back(seen.sizes[d] == 1 || tensor.impl().numel == 0 ? 0 : tensor.impl().strides[d]);
  seen.values = tensor.detach().to_vector<double>();
  return seen;
}

// A sum that gives every element of the results another gradient.
Tensor loss_of(const TensorList& results) {
  Tensor loss;
  for (auto& result : results) {
    if (!result.defined() || !result.requires_grad()) continue;
    Tensor weights = cos(arange(result.numel(), kFloat32)).view(result.sizes());
    Tensor part = (result * weights).sum().to(kFloat32);
    loss = loss.defined() ? loss + part : part;
  }
  return loss;
}

bool is_expanded(const Tensor& tensor) {
  for (size_t d = 0; d < tensor.impl().sizes.size(); ++d)
    if (tensor.impl().sizes[d] > 1 && tensor.impl().strides[d] == 0) return true;
  return false;
}

// A program made ready to be called, eagerly or compiled, with the tensors that it captures.
class Subject {
 public:
  Subject(const Program& program, const CompileOptions* options)
      : program_(program), captured_(make_inputs(program.captured, Round(), 1)) {
    auto f = [&program, captured = captured_.tensors](const TensorList& arguments, const Scalar& s) {
      return run(program, arguments, captured, s);
    };
    if (options)
      call_ = compile(f, *options);
    else
      call_ = f;
  }

  Observation operator()(const Round& round) {
    restore(round);
    Data arguments = make_inputs(program_.arguments, round, 0);
    Observation seen;
    TensorList results, leaves = arguments.leaves;
    leaves.insert(leaves.end(), captured_.leaves.begin(), captured_.leaves.end());
    manual_seed(1);
    attempt(seen, seen.failed, [&] { results = call_(arguments.tensors, make_number(round)); });
    Tensor next = rand({1});  // tells how many numbers were drawn
    attempt(seen, seen.backward_failed, [&] {
      if (Tensor loss = loss_of(results); loss.defined()) loss.backward();
    });
    TensorList all;
    auto note = [&](const char* what, const TensorList& tensors, bool layout) {
      for (size_t i = 0; i < tensors.size(); ++i) {
        seen.tensors.push_back(look(format("{} {}", what, i), tensors[i], layout));
        if (layout) all.push_back(tensors[i]);
      }
    };
    note("result", results, true);
    note("argument", arguments.tensors, true);
    note("captured tensor", captured_.tensors, true);
    if (!seen.failed) note("the draw after result", {next}, false);
    TensorList grads;
    for (auto& leaf : leaves) grads.push_back(leaf.grad());
    note("gradient", grads, false);
    seen.sharing = sharing(all);
    return seen;
  }

 private:
  template <class F>
  static void attempt(Observation& seen, bool& failed, F f) {
    try {
      f();
    } catch (const std::exception& error) {
      failed = true;
      seen.broken = seen.broken || dynamic_cast<const InternalError*>(&error);
      seen.error = error.what();
    }
  }

  // The captured tensors as they were, in the memory in which they are.
  void restore(const Round& round) {
    NoGradGuard none;
    Round first;
    first.disturbance = round.disturbance;
    Data fresh = make_inputs(program_.captured, first, 1);
    for (size_t i = 0; i < fresh.tensors.size(); ++i) {
      if (is_expanded(captured_.tensors[i])) continue;
      captured_.tensors[i].detach().copy_(fresh.tensors[i].detach());
    }
    for (auto& leaf : captured_.leaves) leaf.set_grad({});
  }

  static std::string sharing(const TensorList& tensors) {
    std::string out;
    for (size_t i = 0; i < tensors.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (tensors[i].defined() && tensors[j].defined() && tensors[i].impl().numel > 0 && tensors[i].is_alias_of(tensors[j]))
          out += format("{}~{} by {}, ", i, j, tensors[i].storage_offset() - tensors[j].storage_offset());
    return out;
  }

  const Program& program_;
  Data captured_;
  std::function<TensorList(const TensorList&, const Scalar&)> call_;
};

bool is_coarse(const Program& program) {
  auto coarse = [](const Call& call) {
    return std::string_view(forms()[size_t(call.form)].text).find("BFloat16") != std::string_view::npos;
  };
  for (auto& statement : program.statements)
    if (coarse(statement.call) || (statement.condition >= 0 && coarse(statement.otherwise))) return true;
  return false;
}

std::string text_of(const IntList& list) { return to_string(Shape(std::span<const int64_t>(list))); }

bool mentions(const std::string& error, std::initializer_list<const char*> texts) {
  return std::any_of(texts.begin(), texts.end(), [&](const char* text) { return error.find(text) != std::string::npos; });
}

// What the data decides is looked at when it is used: not in code that gives nothing, and the writes before it may come
// after it.
bool fails_late(const Observation& want) {
  return want.failed && mentions(want.error, {"out of range", "could be anything", "is not among the", "has no view of shape"});
}

bool is_zero(const Seen& seen) {
  return std::all_of(seen.values.begin(), seen.values.end(), [](double value) { return value == 0; });
}

// What compile() is known to refuse, with an Error: see docs/guide.md.
bool is_refused(const Observation& got) {
  return mentions(got.error, {"gradients would leave the compiled function", "cannot be captured",
                              "the gradient of a compiled function needs a value", "no output depends on input", "the gradient asks about a size",
                              "do not broadcast: sizes", "a source of shape [u"});
}

// How two observations differ in what does not depend on rounding; empty when they do not.
std::string difference_in_form(const Observation& want, const Observation& got) {
  if (got.broken) return format("breaks: {}", got.error);
  if (fails_late(want) || is_refused(got)) return {};
  if (want.failed != got.failed)
    return want.failed ? format("does not fail; eager: {}", want.error) : format("fails: {}", got.error);
  if (got.backward_failed && !want.backward_failed) return format("backward fails: {}", got.error);
  for (size_t i = 0; i < want.tensors.size(); ++i) {
    const Seen &a = want.tensors[i], &b = got.tensors[i];
    if ((want.failed || want.backward_failed) && a.name.starts_with("gradient")) continue;
    if (!a.defined && is_zero(b) && a.name.starts_with("gradient")) continue;  // zero by another name
    if (a.defined != b.defined) return format("{} is {}", a.name, b.defined ? "defined" : "undefined");
    if (a.dtype != b.dtype) return format("{} has dtype {} instead of {}", a.name, b.dtype, a.dtype);
    if (a.sizes != b.sizes) return format("{} has sizes {} instead of {}", a.name, text_of(b.sizes), text_of(a.sizes));
    if (a.strides != b.strides) return format("{} has strides {} instead of {}", a.name, text_of(b.strides), text_of(a.strides));
    if (a.requires_grad && !b.requires_grad) return format("{} does not require a gradient", a.name);
  }
  if (want.sharing != got.sharing) return format("memory is shared as {} instead of {}", got.sharing, want.sharing);
  return {};
}

// The largest difference of each element of the program's runs on disturbed values: what rounding may do.
struct Sensitivity {
  bool unstable = false;  // the disturbance changes more than values
  std::vector<std::vector<double>> slack;
};

Sensitivity sensitivity(const Program& program, const Round& round, const Observation& want, double step) {
  Sensitivity out;
  for (auto& seen : want.tensors) out.slack.emplace_back(seen.values.size(), 0.0);
  for (double disturbance : {step, -step, 3 * step}) {
    Subject eager(program, nullptr);
    Round near = round;
    near.disturbance = disturbance;
    Observation moved = eager(near);
    out.unstable = out.unstable || !difference_in_form(want, moved).empty();
    if (out.unstable) return out;
    for (size_t i = 0; i < want.tensors.size(); ++i)
      for (size_t e = 0; e < want.tensors[i].values.size(); ++e) {
        double change = std::abs(moved.tensors[i].values[e] - want.tensors[i].values[e]);
        out.unstable = out.unstable || (change != 0 && !is_floating(want.tensors[i].dtype));
        out.slack[i][e] = std::max(out.slack[i][e], change);
      }
  }
  return out;
}

std::string difference_in_values(const Observation& want, const Observation& got, double tolerance, const Sensitivity* allowed) {
  for (size_t i = 0; i < want.tensors.size(); ++i) {
    const Seen &a = want.tensors[i], &b = got.tensors[i];
    if ((want.failed || want.backward_failed) && a.name.starts_with("gradient")) continue;
    for (size_t e = 0; e < a.values.size(); ++e) {
      double slack = is_floating(a.dtype) ? tolerance * (1 + std::abs(a.values[e])) : 0;
      if (allowed) slack += 4 * allowed->slack[i][e];
      bool same = a.values[e] == b.values[e] || std::abs(a.values[e] - b.values[e]) <= slack ||
                  (std::isnan(a.values[e]) && std::isnan(b.values[e]));
      if (!same) return format("element {} of {} is {} instead of {}", e, a.name, b.values[e], a.values[e]);
    }
  }
  return {};
}

std::string difference(const Program& program, const Round& round, Observation want, const Observation& got, bool exact) {
  // A gradient that asks which element was the largest asks for equality, which another precision does not have.
  want.backward_failed = want.backward_failed || !exact;
  bool coarse = is_coarse(program);
  double tolerance = coarse ? 3e-2 : 1e-4;
  std::string text = difference_in_form(want, got);
  if (text.empty() && !fails_late(want) && !is_refused(got)) text = difference_in_values(want, got, tolerance, nullptr);
  if (text.empty()) return text;
  // Rounding may decide a comparison that values close by decide otherwise.
  Sensitivity allowed = sensitivity(program, round, want, coarse ? 1e-2 : 2e-6);
  if (allowed.unstable) return {};
  text = difference_in_form(want, got);
  return text.empty() ? difference_in_values(want, got, tolerance, &allowed) : text;
}

struct Way {
  const char* text;
  CompileOptions options;
  std::vector<Round> rounds;
};

const std::vector<Way>& ways() {
  const Round first{}, other{.values = 1}, larger{.rows = 5, .columns = 7, .values = 2}, square{.rows = 3, .columns = 3, .values = 4};
  static const std::vector<Way> all = {
      {"", {}, {first, other, larger, square, first, {.rows = 1, .columns = 6, .values = 5}}},
      {".dynamic = Dynamic::kTrue", {.dynamic = Dynamic::kTrue}, {first, larger, square}},
      {".backend = \"eager\"", {.backend = "eager"}, {first, larger, other}},
      {".backend = \"interpreter\"", {.backend = "interpreter"}, {first, larger}},
  };
  return all;
}

}  // namespace

std::optional<Failure> check(const Program& program, const Failure* only) {
  for (auto& way : ways()) {
    if (only && only->options != way.text) continue;
    Subject eager(program, nullptr), compiled(program, &way.options);
    std::vector<Round> rounds;
    for (auto& round : only ? only->rounds : way.rounds) {
      rounds.push_back(round);
      Observation want = eager(round), got = compiled(round);
      std::string text = difference(program, round, want, got, way.options.backend != "interpreter");
      if (!text.empty())
        return Failure{format("compiled with '{}', call {}: {}", way.text, rounds.size(), text), way.text, rounds};
    }
  }
  return {};
}

}  // namespace sinter::fuzz
