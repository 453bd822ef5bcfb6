// `sinter embed`: texts in, a vector for each out.
#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/compiler.h"
#include "sinter/cli/commands.h"
#include "sinter/cli/model_options.h"
#include "sinter/io/safetensors.h"
#include "sinter/models/sentence_encoder.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::cli {

namespace {

// Texts are padded to a multiple of this, so that few programs serve all lengths.
constexpr int64_t kPadTo = 16;

struct Flags : ModelOptions {
  std::vector<std::string> texts;
  std::string inputs, outputs;
  int64_t batch = 32;
};

std::vector<std::string> texts_of(const Flags& flags) {
  std::vector<std::string> texts = flags.texts;
  if (!flags.inputs.empty()) {
    std::ifstream file(flags.inputs);
    check(bool(file), "cannot read '{}'", flags.inputs);
    for (std::string line; std::getline(file, line);) texts.push_back(line);
  }
  check(!texts.empty(), "'{}' holds no lines", flags.inputs);
  return texts;
}

void run_embed(const Flags& flags) {
  check(!flags.model.empty() && !flags.is_package(), "embed: --model names the folder of an encoder, or a hub id");
  auto texts = texts_of(flags);
  flags.set_threads();
  models::FromOptions from;
  if (!flags.dtype.empty()) from.dtype = parse_dtype(flags.dtype);
  from.device = parse_device(flags.device);
  auto model = models::sentence_encoder(flags.model, from);
  auto tokenizer = Tokenizer::from_pretrained(flags.folder());
  auto run = [model](const Tensor& ids, const Tensor& mask) { return model->forward(ids, mask); };
  std::function<Tensor(const Tensor&, const Tensor&)> forward = run;
  if (!flags.eager()) forward = compile(run, {.mode = flags.compile_mode(), .fullgraph = true});
  NoGradGuard no_grad;
  TensorList parts;
  for (size_t at = 0; at < texts.size(); at += size_t(flags.batch)) {
    std::span<const std::string> batch(texts.data() + at, std::min(size_t(flags.batch), texts.size() - at));
    auto [ids, mask] = model->tokenize(batch, tokenizer, kPadTo);
    Tensor rows = forward(ids, mask).to(kFloat32).cpu();
    parts.push_back(rows);
    if (!flags.outputs.empty()) continue;
    for (int64_t r = 0; r < int64_t(batch.size()); ++r)
      std::cout << nlohmann::json(rows.select(0, r).to_vector<float>()).dump() << "\n";
  }
  if (flags.outputs.empty()) return;
  Tensor all = cat(parts, 0);
  save_safetensors(flags.outputs, {{"embeddings", all}});
  std::cout << "embeddings " << all.dtype() << to_string(all.sizes()) << "\n";
}

}  // namespace

void add_embed(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("embed", "Turn texts into vectors with an encoder");
  flags->add_to(*command);
  auto* texts = command->add_option_group("texts", "What to embed");
  texts->add_option("TEXT", flags->texts, "A text, or several");
  texts->add_option("--inputs", flags->inputs, "A file with a text on each line");
  texts->require_option(1);
  command->add_option("--outputs", flags->outputs,
                      "safetensors file for `embeddings`, a row for each text (default: JSON lines)");
  command->add_option("--batch", flags->batch, "Texts to compute at a time")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  sinter embed --model sentence-transformers/all-MiniLM-L6-v2 'A whale.' 'A ship.'\n"
      "  sinter embed --model ~/models/bge-small --inputs lines.txt --outputs vectors.safetensors\n"
      "What follows the encoder (pooling, linear layers, unit length) is read from modules.json, as "
      "sentence-transformers\n"
      "lays it out; without one the mean over the tokens is taken. Longer texts than the model reads are cut.");
  command->callback([flags] { run_embed(*flags); });
}

}  // namespace sinter::cli
