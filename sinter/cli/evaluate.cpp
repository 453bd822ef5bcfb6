// `sinter evaluate`: how well a model predicts a text.
#include <cmath>
#include <iostream>

#include <CLI/CLI.hpp>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/progress.h"
#include "sinter/base/table.h"
#include "sinter/capture/compiler.h"
#include "sinter/cli/commands.h"
#include "sinter/cli/model_options.h"
#include "sinter/io/file.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::cli {

namespace {

struct Flags : ModelOptions {
  std::string data;
  double last = 1;
  int64_t length = 0, batch = 8;
  std::string cache_dtype;
};

void evaluate(const Flags& flags) {
  check(!flags.is_package(),
        "evaluate: a package has no program for a text as a whole; give the checkpoint that it was made from");
  auto model = models::causal_lm(flags.load());
  const Tokenizer tokenizer = Tokenizer::from_pretrained(flags.folder());
  const auto ids = tokenizer.encode(MappedFile("evaluate", flags.data).bytes(), /*add_special_tokens=*/false);
  const int64_t most = model->config().max_positions, length = flags.length ? flags.length
                                                               : most > 0   ? std::min<int64_t>(most, 512)
                                                                            : 512;
  check(most == 0 || length <= most, "evaluate: --length {} is more than the {} positions of the model", length, most);
  const size_t count = size_t(double(ids.size()) * flags.last);
  const auto text = std::span<const int64_t>(ids).last(count);
  check(int64_t(text.size()) > length, "evaluate: '{}' has {} tokens to predict, less than --length {}", flags.data,
        text.size(), length);
  const int64_t windows = (int64_t(text.size()) - 1) / length;

  NoGradGuard no_grad;
  // Through a cache, where one is asked for: tokens then see keys and values as it has them.
  const std::optional<DType> cached = parse_cache_dtype(flags.cache_dtype);
  auto loss = [&](const Tensor& given, const Tensor& next) {
    Tensor logits;
    if (cached) {
      models::KvCache cache = model->make_cache(given.size(0).to_int(), given.size(1).to_int(), cached);
      logits = model->forward(given, arange_of_size(given.size(1), given.options()), {}, &cache).to(kFloat32);
    } else {
      logits = model->forward(given).to(kFloat32);
    }
    return cross_entropy(logits.reshape({-1, logits.size(-1)}), next.reshape({-1}), {}, Reduction::kSum);
  };
  auto compiled = compile(loss, {.mode = flags.compile_mode()});
  const Device device = model->parameters().at(0).device();
  Progress bar("evaluate", windows * length, "tokens");
  double total = 0;
  for (int64_t first = 0; first < windows; first += flags.batch) {
    const int64_t rows = std::min(flags.batch, windows - first);
    auto at = [&](int64_t shift) {
      std::vector<int64_t> part(text.begin() + first * length + shift, text.begin() + (first + rows) * length + shift);
      return tensor(part).view({rows, length}).to(device);
    };
    const Tensor given = at(0), next = at(1);
    total += (flags.eager() ? loss(given, next) : compiled(given, next)).item().to_double();
    bar.advance(rows * length);
  }
  const double mean = total / double(windows * length);
  std::cout << format("{} tokens in windows of {}: loss {}, perplexity {}\n", windows * length, length, fixed(mean, 5),
                      fixed(std::exp(mean), 3));
}

}  // namespace

void add_evaluate(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("evaluate", "The mean loss of a model's predictions of a text");
  flags->add_to(*command);
  command->add_option("--data", flags->data, "The text, as a file")->required()->check(CLI::ExistingFile);
  command->add_option("--last", flags->last, "Only this part of it, at its end: 0.05")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      ->add_option("--length", flags->length,
                   "Tokens of a window, each predicted from those before it there (default: 512 at most)")
      ->check(CLI::PositiveNumber);
  add_cache_dtype(*command, flags->cache_dtype);
  command->add_option("--batch", flags->batch, "Windows at a time")->check(CLI::PositiveNumber)->capture_default_str();
  command->footer("  sinter evaluate --data assets/moby-dick.txt --last 0.05 --dtype bf16 --quantize int4\n");
  command->callback([flags] { evaluate(*flags); });
}

}  // namespace sinter::cli
