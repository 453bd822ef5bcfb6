// `sinter export`: a checkpoint as a package that runs without a compiler. `sinter package`: what a package says of itself.
#include <filesystem>
#include <iostream>
#include <optional>

#include <CLI/CLI.hpp>

#include "sinter/base/error.h"
#include "sinter/base/progress.h"
#include "sinter/cli/commands.h"
#include "sinter/cli/model_options.h"
#include "sinter/package/package.h"

namespace sinter::cli {

namespace {

struct ExportFlags : ModelOptions {
  std::string file, weights = "inside";
  int64_t cache_length = 0;
  std::vector<int64_t> buckets, batches = {1};
  std::vector<std::string> samplings;
};

// "temperature,top-k=40,top-p" as options that have these filters; their numbers, but for top-k's, may differ later.
SamplingOptions parse_sampling(const std::string& text) {
  SamplingOptions out;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(',', at), text.size());
    std::string filter = text.substr(at, end - at);
    at = end + 1;
    if (filter == "penalty") {
      out.repetition_penalty = 1.1;
      continue;
    }
    out.temperature = 1;
    if (filter == "top-p")
      out.top_p = 0.9;
    else if (filter == "min-p")
      out.min_p = 0.1;
    else if (filter.starts_with("top-k=") && filter.find_first_not_of("0123456789", 6) == std::string::npos && filter.size() < 16)
      out.top_k = std::stoll("0" + filter.substr(6));
    else
      check(filter == "temperature", "export: --sampling takes temperature, top-k=K, top-p, min-p and penalty, not '{}'", filter);
  }
  return out;
}

std::string joined(const std::vector<int64_t>& numbers) {
  std::string out;
  for (int64_t n : numbers) out += (out.empty() ? "" : ", ") + std::to_string(n);
  return out;
}

void run_export(const ExportFlags& flags) {
  check(!flags.eager(), "export: a package holds compiled programs; --mode eager leaves nothing to put into it");
  flags.set_threads();
  ExportOptions options;
  if (!flags.dtype.empty()) options.dtype = parse_dtype(flags.dtype);
  options.quantize = flags.quantize;
  options.device = parse_device(flags.device);
  options.mode = flags.compile_mode();
  options.cache_length = flags.cache_length;
  options.buckets = flags.buckets;
  options.batches = flags.batches;
  for (auto& text : flags.samplings) options.samplings.push_back(parse_sampling(text));
  options.weights_inside = flags.weights == "inside";
  std::optional<Progress> bar;
  options.progress = [&](int64_t done, int64_t total) {
    if (!bar) bar.emplace("compile", total, " programs");
    bar->advance(done - bar->done());
  };
  export_package(flags.folder(), flags.file, options);
  bar.reset();
  PackageInfo info = Package::info(flags.file);
  std::cout << format("{}: {}, {} artifacts for {}{}, {} MB\n", flags.file, info.architecture, info.artifacts, info.cpu,
                      info.gpu.empty() ? "" : " and " + info.gpu, std::filesystem::file_size(flags.file) >> 20);
}

void print_package(const std::string& file, bool verify, bool json) {
  PackageInfo info = Package::info(file);
  if (verify) Package::verify(file);
  if (json) {
    std::cout << info.json() << "\n";
    return;
  }
  auto line = [](const char* name, const std::string& value) {
    if (!value.empty()) std::cout << format("{}: {}\n", name, value);
  };
  line("model", info.architecture + ", " + to_string(info.dtype));
  line("mode", to_string(info.mode) + (info.device.is_cpu() ? " on the CPU" : " on a GPU"));
  line("compiled for", info.cpu + (info.gpu.empty() ? "" : " and " + info.gpu));
  line("prompts padded to", joined(info.buckets));
  line("batches", joined(info.batches));
  line("weights", info.weights.empty() ? "inside" : "beside, in " + info.weights);
  line("artifacts", std::to_string(info.artifacts));
  line("made by", format("sinter {}, build {}", info.sinter, info.build));
  if (verify) line("checksums", "all right");
}

}  // namespace

void add_export(CLI::App& app) {
  auto flags = std::make_shared<ExportFlags>();
  auto* command = app.add_subcommand("export", "Compile a model into one file that runs without a compiler");
  flags->add_to(*command);
  command->add_option("-o,--output", flags->file, "The package to write, model.sinter say")->required();
  command->add_option("--weights", flags->weights, "In the package, or in a file beside it")
      ->check(CLI::IsMember({"inside", "beside"}))
      ->capture_default_str();
  command
      ->add_option("--cache-length", flags->cache_length,
                   "Tokens that prompt and answer may have together (default: what the model allows, at most 2048)")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--buckets", flags->buckets,
                   "Lengths that prompts are padded to, or that an encoder is compiled for: 32,128,512")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  command->add_option("--batch", flags->batches, "Batches to compile for: 1,4")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--sampling", flags->samplings,
                   "Filters to compile beside greedy decoding, joined by commas: temperature,top-k=40,top-p,min-p,penalty. "
                   "May be given several times")
      ->allow_extra_args(false);
  command->footer(
      "Examples:\n"
      "  sinter export -o whale.sinter --cache-length 256\n"
      "  sinter export --model ~/models/llama --dtype bf16 --device cuda --mode reduce-overhead --weights beside -o "
      "llama.sinter\n"
      "  sinter generate --model whale.sinter --prompt 'Call me Ishmael.'\n"
      "A package holds native code for this machine's instruction set: trust it as you would a program. Elsewhere it is\n"
      "compiled anew where a compiler is installed. Weights are not checked when it is loaded; `sinter package --verify`\n"
      "does that.");
  command->callback([flags] { run_export(*flags); });

  struct ShowFlags {
    std::string file;
    bool verify = false, json = false;
  };
  auto show = std::make_shared<ShowFlags>();
  auto* package = app.add_subcommand("package", "Tell what a package holds and what it needs");
  package->add_option("file", show->file, "The package")->required();
  package->add_flag("--verify", show->verify, "Read every byte, the weights too, and compare checksums");
  package->add_flag("--json", show->json, "Print one JSON object");
  package->callback([show] { print_package(show->file, show->verify, show->json); });
}

}  // namespace sinter::cli
