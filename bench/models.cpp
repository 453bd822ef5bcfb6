// The patterns and models of bench/peers/suite.py on this side: every case is a folder that the other library wrote,
// with the inputs, the weights and the results it expects. Sizes are told there alone.
// Usage: models --serve answers a driver: a line `FOLDER SECONDS` on standard input times one round of each kind;
// --profile FOLDER prints the plan and where the time goes; --config NAME prints the config.json of known sizes.
#include <cmath>
#include <cstdio>

#include "bench/support/programs.h"
#include "bench/support/report.h"
#include "bench/support/serve.h"
#include "bench/support/timing.h"
#include "sinter/engine/report.h"
#include "sinter/runtime/cpu/ceilings.h"
#include "sinter/sinter.h"

using namespace sinter;
using namespace sinter::bench;

namespace {

// --- a folder: inputs.safetensors with tensors x0, x1 … (arguments) and w0, w1 … (weights), and as metadata the
// program, its numbers and the tolerance; expected.safetensors with y0, y1 …; model/, a checkpoint, where there is one

class Folder {
 public:
  explicit Folder(std::string path)
      : path_(std::move(path)), inputs_(path_ + "/inputs.safetensors"), expected_(path_ + "/expected.safetensors") {}

  const std::string& fact(const std::string& name) const {
    auto found = inputs_.metadata().find(name);
    check(found != inputs_.metadata().end(), "models: {} does not tell '{}'", path_, name);
    return found->second;
  }
  // Copies, since a mapping's pages are not those of tensors.
  TensorList list(const SafeTensorsFile& file, const std::string& prefix) const {
    TensorList out;
    for (std::string name; file.contains(name = prefix + std::to_string(out.size()));)
      out.push_back(file.tensor(name).clone());
    return out;
  }
  TensorList arguments() const { return list(inputs_, "x"); }
  TensorList weights() const { return list(inputs_, "w"); }
  TensorList expected() const { return list(expected_, "y"); }
  std::shared_ptr<models::Model> model() const {
    return models::from_pretrained(path_ + "/model", {.dtype = fact("dtype") == "bf16" ? kBFloat16 : kFloat32});
  }

 private:
  std::string path_;
  SafeTensorsFile inputs_, expected_;
};

// --- a program on its data

// The same data in other memory: programs may write their arguments.
Tensor copy_of(const Tensor& t) { return t.clone(); }
TensorList copy_of(const TensorList& list) {
  TensorList out;
  for (auto& t : list) out.push_back(t.clone());
  return out;
}
models::KvCache copy_of(const models::KvCache& cache) { return {copy_of(cache.keys), copy_of(cache.values)}; }

struct Kind {
  std::string name;
  Work work;
  double first = 0;  // seconds of the first call
  double error = 0;  // of its results, as a norm relative to the expected ones
};

struct Case {
  std::vector<Kind> kinds;
  double tolerance = 0;
  double bytes = 0;  // that every call must read from memory; 0 where nothing is claimed
  int64_t kernels = 0;
  std::string report;
};

double relative_error(const TensorList& got, const TensorList& expected) {
  check(got.size() == expected.size(), "models: {} results, not {}", got.size(), expected.size());
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    check(got[i].sizes() == expected[i].sizes(), "models: result {} is {}, not {}", i, got[i].sizes(),
          expected[i].sizes());
    Tensor a = got[i].to(kFloat32).contiguous(), b = expected[i].to(kFloat32).contiguous();
    const float *x = a.data_ptr<float>(), *y = b.data_ptr<float>();
    double difference = 0, scale = 0;
    for (int64_t k = 0, n = int64_t(a.numel()); k < n; ++k) {
      difference += (double(x[k]) - y[k]) * (double(x[k]) - y[k]);
      scale += double(y[k]) * y[k];
    }
    double error = std::sqrt(difference / scale);
    worst = error <= worst ? worst : error;  // not a number is the worst
  }
  return worst;
}

template <class F, class... A>
void add_kind(Case& out, const std::string& name, const F& f, const TensorList& expected, A... arguments) {
  NoGradGuard no_grad;
  TensorList got;
  Kind kind{name, {}};
  kind.first = timed([&] { got = f(arguments...); });
  kind.error = relative_error(got, expected);
  kind.work = repeat([f, arguments...] {
    NoGradGuard guard;
    f(arguments...);
  });
  out.kinds.push_back(std::move(kind));
}

struct Modes {
  bool max_autotune = true;
};

template <class F, class... A>
Case case_of(const Folder& folder, const Modes& modes, F f, const A&... arguments) {
  Case out;
  out.tolerance = std::stod(folder.fact("tolerance"));
  TensorList expected = folder.expected();
  // First of all, since eager ops may leave kernels that a compiled program would find.
  auto compiled = compile(f);
  add_kind(out, "default", compiled, expected, copy_of(arguments)...);
  if (modes.max_autotune)
    add_kind(out, "max-autotune", compile(f, {.mode = Mode::kMaxAutotune}), expected, copy_of(arguments)...);
  add_kind(out, "eager", f, expected, copy_of(arguments)...);
  for (auto& program : capture::explain(compiled.function()).programs)
    for (auto& plan : program.reports) {
      out.kernels += int64_t(plan->kernels.size());
      out.report += plan->text();
    }
  return out;
}

// --- the models, by kind

template <class M>
std::shared_ptr<M> model_as(const Folder& folder) {
  auto model = std::dynamic_pointer_cast<M>(folder.model());
  check(model != nullptr, "models: the checkpoint is of another kind than {}", folder.fact("program"));
  return model;
}

Case decode(const Folder& folder, const Modes& modes) {
  auto model = model_as<models::CausalLM>(folder);
  TensorList x = folder.arguments();
  models::KvCache cache;
  double cached = 0;
  for (size_t i = 2; i < x.size(); i += 2) {
    cache.keys.push_back(x[i]);
    cache.values.push_back(x[i + 1]);
    // Of the rows up to the position.
    double used = (x[1].item<double>() + 1) / double(int64_t(x[i].size(2)));
    cached += 2 * used * double(x[i].numel()) * double(item_size(x[i].dtype()));
  }
  auto step = [model](const Tensor& ids, const Tensor& positions, models::KvCache kept) -> TensorList {
    return {model->forward(ids, positions, {}, &kept)};
  };
  Case out = case_of(folder, modes, step, x[0], x[1], cache);
  out.bytes = cached;
  for (auto& p : model->parameters()) out.bytes += double(p.numel()) * double(item_size(p.dtype()));
  return out;
}

// A model of one tensor.
template <class M>
Case whole(const Folder& folder, const Modes& modes) {
  auto model = model_as<M>(folder);
  auto run = [model](const Tensor& x) -> TensorList { return {model->forward(x)}; };
  return case_of(folder, modes, run, folder.arguments()[0]);
}

Case make(const std::string& path, const Modes& modes) {
  Folder folder(path);
  const std::string& program = folder.fact("program");
  if (program == "decode") return decode(folder, modes);
  if (program == "causal_lm") return whole<models::CausalLM>(folder, modes);
  if (program == "text_encoder") return whole<models::TextEncoder>(folder, modes);
  if (program == "image_classifier") return whole<models::ImageClassifier>(folder, modes);
  programs::Program pattern = programs::find(program);
  check(pattern != nullptr, "models: no program '{}'", program);
  auto f = [pattern, weights = folder.weights()](TensorList in) {
    in.insert(in.end(), weights.begin(), weights.end());
    return pattern(in);
  };
  return case_of(folder, modes, f, folder.arguments());
}

// --- taking turns with another library

// Loads what the first compile in a process loads.
void warm_up() {
  NoGradGuard no_grad;
  compile([](const Tensor& x) { return x * 2 + 1; })(ones({17}));
}

Json answer(const Case& c, double least) {
  Json reply{{"kernels", c.kernels}};
  for (auto& kind : c.kinds) {
    reply["first_s"][kind.name] = kind.first;
    reply["error"][kind.name] = std::isfinite(kind.error) ? Json(kind.error) : Json("not finite");
    reply["wrong"][kind.name] = !(kind.error < c.tolerance);
    reply["round_s"][kind.name] = summarize(timed_calls(kind.work, least)).median;
  }
  if (c.bytes > 0) {
    reply["bytes"] = c.bytes;
    reply["read_bandwidth"] = runtime::measured_ceilings().tiers.back().read;
  }
  return reply;
}

int serve_models(const Modes& modes) {
  warm_up();
  return serve_cases([&](const std::string& path) { return make(path, modes); },
                     [](const std::string&, const Case& c, double least) { return answer(c, least); });
}

int print_profile(const std::string& path) {
  Case c = make(path, {.max_autotune = false});
  std::printf("%s\n", c.report.c_str());
  for (auto& kind : c.kinds) std::printf("%s: relative error %.2g\n", kind.name.c_str(), kind.error);
  const Work& work = c.kinds.front().work;
  work(2);
  Profile profile([&] { work(10); });
  std::printf("%s\n", profile.table().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "--serve") return serve_models({.max_autotune = argc < 3 || std::string(argv[2]) != "--no-max-autotune"});
  if (what == "--profile" && argc == 3) return print_profile(argv[2]);
  if (what == "--config" && argc == 3) {
    std::puts(models::config_text(argv[2]).c_str());
    return 0;
  }
  std::fprintf(stderr, "usage: models --serve [--no-max-autotune] | --profile FOLDER | --config NAME\n");
  return 2;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
