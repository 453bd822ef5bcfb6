// `sinter forward`: named tensors through a model, from file to file.
#include <filesystem>
#include <iostream>

#include <CLI/CLI.hpp>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/compiler.h"
#include "sinter/cli/commands.h"
#include "sinter/cli/exported.h"
#include "sinter/cli/model_options.h"
#include "sinter/io/safetensors.h"

namespace sinter::cli {

namespace {

struct Flags : ModelOptions {
  std::string inputs, outputs;
};

void write(NamedTensors outputs, const std::string& path) {
  for (auto& [name, tensor] : outputs) {
    tensor = tensor.to(cpu()).contiguous();
    std::cout << name << " " << tensor.dtype() << to_string(tensor.sizes()) << "\n";
  }
  save_safetensors(path, outputs);
}

// An exported program: inputs by its own names, results by their numbers.
void run_exported(const Flags& flags) {
  check(flags.dtype.empty(), "'{}' has the dtypes it was exported with; leave out --dtype", flags.model);
  flags.set_threads();
  const Device device = parse_device(flags.device);
  ExportedModel model = load_exported_model(flags.model, device);
  const SafeTensorsFile given(flags.inputs);
  TensorList inputs;
  for (auto& name : model->input_names()) {
    check(given.contains(name), "'{}' has no tensor '{}'; the model takes {}", flags.inputs, name, model->extra_repr());
    inputs.push_back(given.tensor(name).to(device));
  }
  NoGradGuard no_grad;
  const TensorList results =
      flags.eager() ? model->forward(inputs) : compile(model, {.mode = flags.compile_mode()})(inputs);
  NamedTensors outputs;
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].defined()) outputs.emplace_back(format("output.{}", i), results[i]);
  write(outputs, flags.outputs);
}

void run_forward(const Flags& flags) {
  if (is_exported(flags.model)) return run_exported(flags);
  NamedTensors inputs = load_safetensors(flags.inputs);
  check(!inputs.empty(), "'{}' holds no tensors", flags.inputs);
  std::optional<Package> package;
  if (flags.is_package()) {
    flags.set_threads();
    package = Package::load(flags.model);
  }
  auto model = package ? package->model() : flags.load();
  Tensor weight = model->parameters().at(0);
  for (auto& [name, tensor] : inputs) {
    if (tensor.is_floating_point()) tensor = tensor.to(weight.dtype());
    tensor = tensor.to(weight.device());
  }
  NoGradGuard no_grad;
  auto run = [model](const NamedTensors& in) { return model->run(in); };
  NamedTensors outputs = package         ? package->run(inputs)
                         : flags.eager() ? run(inputs)
                                         : compile(run, {.mode = flags.compile_mode(), .fullgraph = true})(inputs);
  write(outputs, flags.outputs);
}

}  // namespace

void add_forward(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("forward", "Run tensors of a file through any model");
  flags->add_to(*command);
  command->add_option("--inputs", flags->inputs, "safetensors file with the inputs by name")->required();
  command->add_option("--outputs", flags->outputs, "safetensors file to write the results to")->required();
  command->footer(
      "Examples:\n"
      "  sinter forward --model ~/models/bert --inputs in.safetensors --outputs out.safetensors\n"
      "  sinter forward --model ~/models/vit --inputs images.safetensors --outputs classes.safetensors --mode eager\n"
      "Language models and encoders read input_ids [batch, tokens] and, if it is there, attention_mask; image models\n"
      "pixel_values [batch, channels, height, width]. They give logits or last_hidden_state. Floating-point inputs "
      "are\n"
      "converted to the model's element type. A program of torch.export.save (--model FILE.pt2) or an ONNX\n"
      "model (FILE.onnx) takes its inputs by the names that `sinter info FILE` shows, and gives output.0, output.1, ...");
  command->callback([flags] { run_forward(*flags); });
}

}  // namespace sinter::cli
