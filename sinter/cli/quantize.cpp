// `sinter quantize`: a checkpoint whose weights have fewer bits, for any reader of compressed-tensors.
#include <filesystem>
#include <iostream>

#include <CLI/CLI.hpp>

#include "sinter/base/error.h"
#include "sinter/base/table.h"
#include "sinter/cli/commands.h"
#include "sinter/cli/model_options.h"
#include "sinter/engine/report.h"
#include "sinter/io/file.h"
#include "sinter/nn/quantize.h"

namespace sinter::cli {

namespace {

namespace fs = std::filesystem;

struct Flags : ModelOptions {
  std::string output, format = "int4";
  int64_t group_size = 0;
  bool head = false;
};

void quantize(const Flags& flags) {
  check(!flags.is_package(),
        "quantize: a package has its weights as they are; give the checkpoint that it was made from");
  check(flags.quantize.empty(), "quantize: --format says what weights become; leave out --quantize");
  auto model = flags.load();
  const int64_t vocab = model->config().vocab_size;
  nn::QuantizeOptions how;
  how.encoding = flags.format == "int8"   ? Encoding::kInt8
                 : flags.format == "int4" ? Encoding::kUInt4
                                          : Encoding::kTable8;
  how.group_size = flags.group_size;
  std::map<std::string, nn::LinearImpl*> layers;
  for (auto& [name, module] : model->named_modules())
    if (auto* layer = module->as<nn::Linear>()) layers[name] = layer;
  how.filter = [&](const std::string& name) { return flags.head || layers.at(name)->options.out_features() != vocab; };
  const int64_t count = nn::quantize_(*model, how);
  check(count > 0, "quantize: {} has no linear layers that are not quantised yet", model->config().architecture);
  models::save_pretrained(*model, flags.output);
  const CheckpointFiles files = CheckpointFiles(flags.folder()).in_memory();
  for (auto& [name, text] : files.files()) {
    if (name == "config.json") continue;
    const fs::path path = fs::path(flags.output) / name;
    fs::create_directories(path.parent_path());
    PendingFile file("quantize", path.string());
    file.write(text);
    file.commit();
  }
  const auto size = fs::file_size(fs::path(flags.output) / "model.safetensors");
  std::cout << format("{}: {} layers in {}, {} of weights\n", flags.output, count, flags.format,
                      bytes_text(double(size)));
}

}  // namespace

void add_quantize(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("quantize", "Write a checkpoint whose linear layers have weights of fewer bits");
  flags->add_to(*command);
  command->add_option("-o,--output", flags->output, "The folder to write")->required();
  command->add_option("--format", flags->format, "int8 and fp8: a scale a row; int4: a scale and a zero a group")
      ->check(CLI::IsMember({"int8", "int4", "fp8"}))
      ->capture_default_str();
  command
      ->add_option("--group-size", flags->group_size,
                   "Columns of a group, a multiple of 8 (default: 128, or 32 in short rows)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--head", flags->head, "The layer that gives logits, too");
  command->footer(
      "Examples:\n"
      "  sinter quantize --model ~/models/llama -o llama-int4\n"
      "  sinter generate --model llama-int4 --prompt 'Call me Ishmael.'\n"
      "The layout is that of compressed-tensors, which transformers and vLLM read, too. Needs no data.");
  command->callback([flags] { quantize(*flags); });
}

}  // namespace sinter::cli
