#include "sinter/c/program.h"

#include <charconv>
#include <cstring>
#include <mutex>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/capture/compiler.h"
#include "sinter/capture/fingerprint.h"
#include "sinter/capture/warmup.h"
#include "sinter/interop/exported.h"
#include "sinter/interop/graph_function.h"
#include "sinter/tensor/dlpack_exchange.h"

namespace sinter::c {

namespace {

using interop::GraphFunction;
using Holds = interop::ProgramOutput::Holds;

// Where nothing is read: what stands for memory that is not there.
void* const kNowhere = reinterpret_cast<void*>(uintptr_t(4096));

const dlpack::DLTensor& lent_by(const SinterValue& value, size_t number) {
  check(value.kind == SINTER_TENSOR && value.tensor, "input {} has to be a tensor", number);
  return *static_cast<const dlpack::DLTensor*>(value.tensor);
}

Tensor tensor_of(const SinterValue& value, size_t number, bool is_example) {
  dlpack::DLTensor lent = lent_by(value, number);
  if (is_example && !lent.data) lent.data = kNowhere;
  return dlpack::borrow(lent);
}

// Whether a tensor that was made of `before` stands for `now` too, and nobody else holds it: weights come again at each call, and
// making them anew costs more than all else of a small one. What was made of the memory's contents is not to be used again.
bool renew(const Tensor& tensor, const dlpack::DLTensor& before, const dlpack::DLTensor& now) {
  if (before.data != now.data || before.byte_offset != now.byte_offset || before.ndim != now.ndim || !now.strides ||
      std::memcmp(&before.dtype, &now.dtype, sizeof(now.dtype)) || std::memcmp(&before.device, &now.device, sizeof(now.device)))
    return false;
  auto& impl = tensor.impl();
  const size_t bytes = sizeof(int64_t) * size_t(now.ndim);
  if (impl.use_count() != 1 || impl.buffer->use_count() != 1) return false;
  if (bytes && (std::memcmp(impl.sizes.data(), now.shape, bytes) || std::memcmp(impl.strides.data(), now.strides, bytes)))
    return false;
  impl.buffer->version.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// The input whose memory a result has; -1: it is the result's own.
int owner_of(const Tensor& result, const TensorList& inputs, const std::vector<int>& places) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].impl().buffer == result.impl().buffer) return places[i];
  return -1;
}

SinterValue tensor_result(const Tensor& tensor, const TensorList& inputs, const std::vector<int>& places) {
  if (!tensor.defined()) return {.kind = SINTER_NOTHING, .input = -1, .tensor = nullptr, .integer = 0, .real = 0};
  return {.kind = SINTER_TENSOR,
          .input = owner_of(tensor, inputs, places),
          .tensor = dlpack::to_versioned(tensor),
          .integer = 0,
          .real = 0};
}

// --- a graph whose inputs are all its caller's

using GraphResults = GraphFunction::Results;

// A call of a graph. It knows how many results there will be, so that the store may have the program.
class GraphCall final : public capture::Invocation {
 public:
  GraphCall(const GraphFunction& graph, const TensorList& tensors, const std::vector<Dim>& integers,
            const std::vector<Scalar>& reals)
      : graph_(graph), tensors_(tensors), integers_(integers), reals_(reals) {
    capture::detail::Flatten flatten(*this);
    capture::detail::walk(flatten, tensors_);
    capture::detail::walk(flatten, integers_);
    capture::detail::walk(flatten, reals_);
  }

  void describe(capture::LeafVisitor& visitor) override {
    auto copy = std::tuple{tensors_, integers_, reals_};
    visit(copy, visitor);
  }
  std::shared_ptr<capture::ResultBox> invoke(capture::LeafVisitor& replace) override {
    auto copy = std::tuple{tensors_, integers_, reals_};
    visit(copy, replace);
    return std::make_shared<capture::ResultOf<GraphResults>>(std::apply(
        [&](auto& tensors, auto& integers, auto& reals) { return graph_.run(tensors, integers, reals); }, copy));
  }
  std::shared_ptr<capture::ResultBox> blank_result() const override {
    GraphResults blank;
    for (auto& output : graph_.outputs()) {
      if (output.input >= 0) continue;
      if (output.holds == Holds::kTensor) blank.tensors.emplace_back();
      if (output.holds == Holds::kInteger) blank.integers.emplace_back();
      if (output.holds == Holds::kReal) blank.reals.emplace_back();
    }
    return std::make_shared<capture::ResultOf<GraphResults>>(std::move(blank));
  }
  const char* type_name() const override { return "graph"; }

 private:
  template <class Arguments>
  static void visit(Arguments& arguments, capture::LeafVisitor& visitor) {
    capture::detail::Forward forward{visitor};
    size_t i = 0;
    std::apply(
        [&](auto&... argument) {
          ((visitor.enter("argument " + std::to_string(i++)), capture::detail::walk(forward, argument), visitor.leave()), ...);
        },
        arguments);
  }

  const GraphFunction& graph_;
  const TensorList& tensors_;
  const std::vector<Dim>& integers_;
  const std::vector<Scalar>& reals_;
};

// Known by its text alone, in every process.
std::shared_ptr<capture::Function> compile_graph(std::string_view json, CompileOptions options) {
  options.name = "graph";
  options.fingerprint = [text = hash_hex(json)] {
    return std::make_shared<const capture::Fingerprint>(capture::Fingerprint{text, {}, {}});
  };
  return capture::Function::make(std::move(options), "");
}

class GraphProgram final : public SinterProgram {
 public:
  GraphProgram(std::string_view json, CompileOptions options)
      : graph_(std::make_shared<const GraphFunction>(json, "the graph")), run_(compile_graph(json, std::move(options))) {}

  size_t input_count() const override { return graph_->inputs().size(); }
  size_t result_count() const override { return graph_->outputs().size(); }
  void prepare(std::span<const SinterValue> inputs) override;
  void run(std::span<const SinterValue> inputs, std::span<SinterValue> results) override;

 private:
  struct Arguments {
    TensorList tensors;
    std::vector<Dim> integers;
    std::vector<Scalar> reals;
    std::vector<int> places;              // of the tensors among the inputs
    std::vector<dlpack::DLTensor> lent;  // what the tensors were made of
  };
  GraphResults called(const Arguments& given) const;
  void fill(Arguments& out, std::span<const SinterValue> inputs, bool is_example) const;
  // Arguments of an earlier call that is over, or new ones; they come back when the call ends.
  std::shared_ptr<Arguments> lease();

  std::shared_ptr<const GraphFunction> graph_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Arguments>> idle_;  // guarded by it
  std::shared_ptr<capture::Function> run_;
};

void GraphProgram::fill(Arguments& out, std::span<const SinterValue> inputs, bool is_example) const {
  auto& wanted = graph_->inputs();
  check(inputs.size() == wanted.size(), "{} inputs are given; the program takes {}", inputs.size(), wanted.size());
  out.integers.clear();
  out.reals.clear();
  size_t tensors = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto& value = inputs[i];
    if (wanted[i].kind == GraphFunction::Input::Kind::kTensor) {
      const size_t n = tensors++;
      auto& lent = lent_by(value, i);
      if (n == out.tensors.size()) {
        out.tensors.emplace_back();
        out.places.push_back(int(i));
        out.lent.emplace_back();
      } else if (out.tensors[n].defined() && renew(out.tensors[n], out.lent[n], lent)) {
        continue;
      }
      out.tensors[n] = {};
      Tensor tensor = tensor_of(value, i, is_example);
      for (int64_t d : wanted[i].dynamic)
        if (d < tensor.dim() && tensor.size(d) >= 2) compiler::mark_dynamic(tensor, d);
      out.tensors[n] = std::move(tensor);
      out.lent[n] = lent;
    } else if (wanted[i].kind == GraphFunction::Input::Kind::kReal) {
      check(value.kind == SINTER_REAL || value.kind == SINTER_INTEGER, "input {} has to be a number", i);
      out.reals.push_back(value.kind == SINTER_REAL ? value.real : double(value.integer));
    } else if (!wanted[i].is_implied) {
      check(value.kind == SINTER_INTEGER, "input {} has to be an integer", i);
      out.integers.push_back(value.integer);
    }
  }
}

std::shared_ptr<GraphProgram::Arguments> GraphProgram::lease() {
  std::unique_ptr<Arguments> out;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      out = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!out) out = std::make_unique<Arguments>();
  return {out.release(), [this](Arguments* used) {
            std::lock_guard lock(mutex_);
            idle_.emplace_back(used);
          }};
}

void GraphProgram::prepare(std::span<const SinterValue> inputs) {
  Arguments given;
  fill(given, inputs, true);
  NoGradGuard no_grad;
  GraphCall call(*graph_, given.tensors, given.integers, given.reals);
  capture::Warmup warmup(run_->name());
  warmup.add([&](auto& work) { run_->prepare(call, work); });
  warmup.run();
}

GraphResults GraphProgram::called(const Arguments& given) const {
  GraphCall call(*graph_, given.tensors, given.integers, given.reals);
  capture::Results found;
  if (!run_->call(call, found)) return graph_->run(given.tensors, given.integers, given.reals);
  auto* box = static_cast<const capture::ResultBox*>(found.prototype.get());
  GraphResults out = static_cast<const capture::ResultOf<GraphResults>*>(box)->value;
  capture::detail::Fill fill(found);
  capture::detail::walk<capture::Role::kResult>(fill, out);
  return out;
}

void GraphProgram::run(std::span<const SinterValue> inputs, std::span<SinterValue> results) {
  auto lease = this->lease();
  Arguments& given = *lease;
  fill(given, inputs, false);
  NoGradGuard no_grad;
  GraphResults computed = called(given);
  size_t tensor = 0, integer = 0, real = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    auto& output = graph_->outputs()[i];
    if (output.input >= 0) {
      results[i] = inputs[size_t(output.input)];
      results[i].input = output.input;
      results[i].tensor = nullptr;
    } else if (output.holds == Holds::kTensor) {
      results[i] = tensor_result(computed.tensors.at(tensor++), given.tensors, given.places);
    } else if (output.holds == Holds::kInteger) {
      results[i] = {SINTER_INTEGER, -1, nullptr, computed.integers.at(integer++).to_int(), 0};
    } else if (output.holds == Holds::kReal) {
      results[i] = {SINTER_REAL, -1, nullptr, 0, computed.reals.at(real++).to_double()};
    } else {
      results[i] = {SINTER_NOTHING, -1, nullptr, 0, 0};
    }
  }
}

// --- a file

class FileProgram final : public SinterProgram {
 public:
  FileProgram(const std::string& path, const CompileOptions& options)
      : model_(load_exported(path)), names_(model_->input_names()), run_(compile(model_, options)) {}

  size_t input_count() const override { return names_.size(); }
  size_t result_count() const override { return model_->result_count(); }
  const char* input_name(size_t input) const override { return names_.at(input).c_str(); }
  void prepare(std::span<const SinterValue> inputs) override {
    NoGradGuard no_grad;
    warmup(run_, std::tuple{tensors(inputs, true)});
  }
  void run(std::span<const SinterValue> inputs, std::span<SinterValue> results) override {
    TensorList given = tensors(inputs, false);
    std::vector<int> places;
    for (size_t i = 0; i < given.size(); ++i) places.push_back(int(i));
    NoGradGuard no_grad;
    TensorList computed = run_(given);
    for (size_t i = 0; i < results.size(); ++i) results[i] = tensor_result(computed.at(i), given, places);
  }

 private:
  TensorList tensors(std::span<const SinterValue> inputs, bool is_example) const {
    check(inputs.size() == names_.size(), "{} inputs are given; the program takes {}", inputs.size(), names_.size());
    TensorList out;
    for (size_t i = 0; i < inputs.size(); ++i) out.push_back(tensor_of(inputs[i], i, is_example));
    return out;
  }

  ExportedModel model_;
  std::vector<std::string> names_;
  decltype(compile(std::declval<const ExportedModel&>(), CompileOptions())) run_;
};

// A number, a truth or a text, as the option wants it.
std::variant<bool, int64_t, double, std::string> option_value(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  const char* end = text.data() + text.size();
  int64_t integer = 0;
  if (auto read = std::from_chars(text.data(), end, integer); read.ec == std::errc() && read.ptr == end) return integer;
  double real = 0;
  if (auto read = std::from_chars(text.data(), end, real); read.ec == std::errc() && read.ptr == end) return real;
  return text;
}

}  // namespace

CompileOptions options_of(std::span<const SinterOption> given) {
  CompileOptions out;
  for (auto& option : given) {
    const std::string name = option.name, value = option.value;
    if (name == "mode") {
      out.mode = value;
    } else if (name == "fullgraph") {
      out.fullgraph = value == "true";
    } else if (name == "dynamic") {
      check(value == "auto" || value == "true" || value == "false",
            "the option 'dynamic' is 'auto', 'true' or 'false', not '{}'", value);
      out.dynamic = value == "auto" ? Dynamic::kAuto : value == "true" ? Dynamic::kTrue : Dynamic::kFalse;
    } else {
      out.options[name] = option_value(value);
    }
  }
  return checked(out);
}

std::unique_ptr<SinterProgram> load_program(const std::string& path, const CompileOptions& options) {
  return std::make_unique<FileProgram>(path, options);
}

std::unique_ptr<SinterProgram> read_program(std::string_view json, const CompileOptions& options) {
  return std::make_unique<GraphProgram>(json, options);
}

}  // namespace sinter::c
