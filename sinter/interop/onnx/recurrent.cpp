// Recurrent layers. ONNX has its own orders of gates, activations by name, lengths of the sequences, and a clip.
#include <cctype>
#include <functional>

#include "sinter/base/error.h"
#include "sinter/interop/onnx/operands.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

using Activation = std::function<Tensor(const Tensor&)>;

struct LayerOptions {
  std::vector<double> alphas, betas;
  std::vector<std::string> activations;
  MaybeReal clip;
  std::string direction;
  bool batch_first;
};

// Names in any case. Alphas and betas are listed for those activations that have them.
class Activations {
 public:
  explicit Activations(const LayerOptions& options) : options_(options) {}

  Activation next(const char* standard) {
    std::string name = at_ < options_.activations.size() ? options_.activations[at_] : standard;
    ++at_;
    for (char& c : name) c = char(std::tolower(c));
    if (name == "sigmoid") return [](const Tensor& x) { return sigmoid(x); };
    if (name == "tanh") return [](const Tensor& x) { return tanh(x); };
    if (name == "relu") return [](const Tensor& x) { return relu(x); };
    if (name == "softsign") return [](const Tensor& x) { return softsign(x); };
    if (name == "softplus") return [](const Tensor& x) { return softplus(x); };
    if (name == "leakyrelu") return [a = alpha(0.01)](const Tensor& x) { return leaky_relu(x, a); };
    if (name == "thresholdedrelu") return [a = alpha(1)](const Tensor& x) { return where(gt(x, a), x, zeros_like(x)); };
    if (name == "elu") return [a = alpha(1)](const Tensor& x) { return elu(x, a); };
    if (name == "hardsigmoid")
      return [a = alpha(0.2), b = beta(0.5)](const Tensor& x) { return clamp(add(mul(x, a), b), 0.0, 1.0); };
    if (name == "affine") return [a = alpha(1), b = beta(0)](const Tensor& x) { return add(mul(x, a), b); };
    if (name == "scaledtanh") return [a = alpha(1), b = beta(1)](const Tensor& x) { return mul(tanh(mul(x, b)), a); };
    throw_error(format("there is no activation '{}'", name));
  }

 private:
  double alpha(double standard) { return alpha_ < options_.alphas.size() ? options_.alphas[alpha_++] : standard; }
  double beta(double standard) { return beta_ < options_.betas.size() ? options_.betas[beta_++] : standard; }

  const LayerOptions& options_;
  size_t at_ = 0, alpha_ = 0, beta_ = 0;
};

// The weights of one direction.
struct Weights {
  Tensor w, r, bias_w, bias_r, peepholes;
};

// What a kind of layer does in a step: states after it, the first of which is the result.
using Step = std::function<TensorList(const Tensor& input, const TensorList& states, const Weights& weights)>;
using MakeStep = Step (*)(Activations& activations, const LayerOptions& options, bool linear_before_reset);

Tensor clipped(const Tensor& x, const MaybeReal& clip) { return clip ? clamp(x, -*clip, *clip) : x; }

Tensor affine(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor out = matmul(x, t(weight));
  return bias.defined() ? add(out, bias) : out;
}

Step rnn_step(Activations& activations, const LayerOptions& options, bool) {
  return [f = activations.next("tanh"), clip = options.clip](const Tensor& input, const TensorList& states, const Weights& w) {
    return TensorList{f(clipped(add(input, affine(states[0], w.r, w.bias_r)), clip))};
  };
}

// Gates z, r, h.
Step gru_step(Activations& activations, const LayerOptions& options, bool linear_before_reset) {
  const Activation f = activations.next("sigmoid"), g = activations.next("tanh");
  return [f, g, clip = options.clip, linear_before_reset](const Tensor& input, const TensorList& states, const Weights& w) {
    const int64_t hidden = w.r.size(1);
    auto gate = [&](const Tensor& all, int64_t i, int64_t count) { return narrow(all, -1, i * hidden, count * hidden); };
    auto rows = [&](const Tensor& all, int64_t i, int64_t count) {
      return all.defined() ? narrow(all, 0, i * hidden, count * hidden) : Tensor();
    };
    const Tensor& h = states[0];
    const Tensor zr = f(clipped(add(gate(input, 0, 2), affine(h, rows(w.r, 0, 2), rows(w.bias_r, 0, 2))), clip));
    const Tensor z = gate(zr, 0, 1), r = gate(zr, 1, 1), weight = rows(w.r, 2, 1), bias = rows(w.bias_r, 2, 1);
    const Tensor hidden_part = linear_before_reset ? mul(r, affine(h, weight, bias)) : affine(mul(r, h), weight, bias);
    const Tensor n = g(clipped(add(gate(input, 2, 1), hidden_part), clip));
    return TensorList{add(mul(sub(1, z), n), mul(z, h))};
  };
}

// Gates i, o, f, c; peepholes i, o, f.
Step lstm_step(Activations& activations, const LayerOptions& options, bool coupled) {
  const Activation f = activations.next("sigmoid"), g = activations.next("tanh"), last = activations.next("tanh");
  return [f, g, last, clip = options.clip, coupled](const Tensor& input, const TensorList& states, const Weights& w) {
    const int64_t hidden = w.r.size(1);
    const Tensor all = add(input, affine(states[0], w.r, w.bias_r));
    const Tensor& cell = states[1];
    auto gate = [&](int64_t i, const Tensor& seen, int64_t peephole) {
      Tensor out = narrow(all, -1, i * hidden, hidden);
      if (w.peepholes.defined()) out = add(out, mul(narrow(w.peepholes, 0, peephole * hidden, hidden), seen));
      return clipped(out, clip);
    };
    const Tensor i = f(gate(0, cell, 0));
    const Tensor forget = coupled ? sub(1, i) : f(gate(2, cell, 2));
    const Tensor now = add(mul(forget, cell), mul(i, g(clipped(narrow(all, -1, 3 * hidden, hidden), clip))));
    return TensorList{mul(f(gate(1, now, 1)), last(now)), now};
  };
}

// One direction over [time, batch, features]: the results of all steps and the states after the last one of each sequence.
struct Walk {
  Tensor results;
  TensorList states;
};
Walk walk(const Tensor& x, bool backwards, const Tensor& lengths, const Step& step, const Weights& weights, TensorList states) {
  const int64_t time = x.size(0);
  const Tensor input = affine(x, weights.w, weights.bias_w);
  TensorList results(static_cast<size_t>(time));
  for (int64_t n = 0; n < time; ++n) {
    const int64_t at = backwards ? time - 1 - n : n;
    TensorList next = step(select(input, 0, at), states, weights);
    results[size_t(at)] = next[0];
    if (lengths.defined()) {
      // Behind its end a sequence keeps its states and gives zeros.
      const Tensor goes_on = gt(lengths, at).unsqueeze(1);
      results[size_t(at)] = where(goes_on, next[0], zeros_like(next[0]));
      for (size_t s = 0; s < states.size(); ++s) next[s] = where(goes_on, next[s], states[s]);
    }
    states = std::move(next);
  }
  return {stack(results, 0), states};
}

struct Given {
  In x, w, r;
  Tensor bias, lengths;
  TensorList states;  // undefined ones are zeros
  Tensor peepholes;
};

// Y, and the last of each state: [time, directions, batch, hidden] and [directions, batch, hidden].
ValueList run_layer(const Given& given, MakeStep make, const LayerOptions& options, bool flag) {
  const bool is_both = options.direction == "bidirectional";
  check(is_both || options.direction == "forward" || options.direction == "reverse", "there is no direction '{}'",
        options.direction);
  const Tensor x = options.batch_first ? transpose(given.x, 0, 1) : given.x.tensor();
  const int64_t directions = is_both ? 2 : 1, hidden = given.r.size(2);
  check(given.w.size(0) == directions, "weights of {} directions for {}", given.w.size(0), directions);
  Activations activations(options);
  TensorList results;
  std::vector<TensorList> last(given.states.size());
  for (int64_t d = 0; d < directions; ++d) {
    Weights weights{.w = select(given.w, 0, d), .r = select(given.r, 0, d), .bias_w = {}, .bias_r = {}, .peepholes = {}};
    if (given.bias.defined()) {
      const Tensor both = select(given.bias, 0, d);
      weights.bias_w = narrow(both, 0, 0, both.size(0) / 2);
      weights.bias_r = narrow(both, 0, both.size(0) / 2, both.size(0) / 2);
    }
    if (given.peepholes.defined()) weights.peepholes = select(given.peepholes, 0, d);
    TensorList states;
    for (auto& state : given.states) {
      if (!state.defined()) states.push_back(zeros({x.size(1), hidden}, x.options()));
      else states.push_back(options.batch_first ? select(state, 1, d) : select(state, 0, d));
    }
    const bool backwards = options.direction == "reverse" || d == 1;
    Walk out = walk(x, backwards, given.lengths, make(activations, options, flag), weights, states);
    results.push_back(out.results);
    for (size_t s = 0; s < last.size(); ++s) last[s].push_back(out.states[s]);
  }
  ValueList out;
  const Tensor y = stack(results, 1);
  out.push_back({options.batch_first ? permute(y, {2, 0, 1, 3}) : y});
  for (auto& each : last) out.push_back({stack(each, options.batch_first ? 1 : 0)});
  return out;
}

std::vector<double> reals(const std::optional<std::vector<double>>& given) { return given.value_or(std::vector<double>()); }
std::vector<std::string> texts(Any given) {
  std::vector<std::string> out;
  if (is_given(given))
    for (auto& each : given.as<ValueList>()) out.push_back(value_to<std::string>(each));
  return out;
}

using Reals = const std::optional<std::vector<double>>&;

}  // namespace

std::span<const Function> recurrent_operators() {
  static const Function kList[] = {
      {"onnx::RNN.7(Tensor X, Tensor W, Tensor R, Tensor? B=None, Tensor? sequence_lens=None, Tensor? initial_h=None, *, float[]? "
       "activation_alpha=None, float[]? activation_beta=None, str[]? activations=None, float? clip=None, str direction=\"forward\", "
       "int? hidden_size=None, int layout=0) -> (Tensor, Tensor)",
       [](In x, In w, In r, Maybe bias, Maybe lengths, Maybe h, Reals alphas, Reals betas, Any names, MaybeReal clip, Text direction,
          Ignored, bool layout) {
         return run_layer({x, w, r, bias, lengths, {h}, {}}, rnn_step,
                          {reals(alphas), reals(betas), texts(names), clip, direction, layout}, false);
       }},
      {"onnx::GRU.7(Tensor X, Tensor W, Tensor R, Tensor? B=None, Tensor? sequence_lens=None, Tensor? initial_h=None, *, float[]? "
       "activation_alpha=None, float[]? activation_beta=None, str[]? activations=None, float? clip=None, str direction=\"forward\", "
       "int? hidden_size=None, int layout=0, int linear_before_reset=0) -> (Tensor, Tensor)",
       [](In x, In w, In r, Maybe bias, Maybe lengths, Maybe h, Reals alphas, Reals betas, Any names, MaybeReal clip, Text direction,
          Ignored, bool layout, bool linear_before_reset) {
         return run_layer({x, w, r, bias, lengths, {h}, {}}, gru_step,
                          {reals(alphas), reals(betas), texts(names), clip, direction, layout}, linear_before_reset);
       }},
      {"onnx::LSTM.7(Tensor X, Tensor W, Tensor R, Tensor? B=None, Tensor? sequence_lens=None, Tensor? initial_h=None, Tensor? "
       "initial_c=None, Tensor? P=None, *, float[]? activation_alpha=None, float[]? activation_beta=None, str[]? activations=None, "
       "float? clip=None, str direction=\"forward\", int? hidden_size=None, int input_forget=0, int layout=0) -> (Tensor, Tensor, "
       "Tensor)",
       [](In x, In w, In r, Maybe bias, Maybe lengths, Maybe h, Maybe c, Maybe peepholes, Reals alphas, Reals betas, Any names,
          MaybeReal clip, Text direction, Ignored, bool coupled, bool layout) {
         return run_layer({x, w, r, bias, lengths, {h, c}, peepholes}, lstm_step,
                          {reals(alphas), reals(betas), texts(names), clip, direction, layout}, coupled);
       }},
  };
  return kList;
}

}  // namespace sinter::interop::onnx
