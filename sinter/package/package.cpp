#include "sinter/package/package.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sinter/autograd/autograd.h"
#include "sinter/base/build_id.h"
#include "sinter/base/error.h"
#include "sinter/base/log.h"
#include "sinter/io/checkpoint.h"
#include "sinter/package/compiled_model.h"
#include "sinter/package/package_file.h"
#include "sinter/runtime/code_store.h"
#include "sinter/runtime/cpu/cpu_features.h"
#include "sinter/runtime/cpu/toolchain.h"
#include "sinter/runtime/device_runtime.h"

namespace sinter {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::json;

constexpr const char *kManifest = "manifest", *kArtifacts = "artifacts", *kWeights = "weights";
constexpr std::string_view kFilePrefix = "file/";  // of sections that are files of the checkpoint

std::string gpu_here(Device device) {
  return device.is_cpu() ? std::string() : runtime::runtime_of(device).architecture(device.index());
}

PackageInfo info_of(const PackageFile& file) {
  try {
    Json json = Json::parse(file.read(kManifest));
    PackageInfo info;
    info.sinter = json.at("sinter");
    info.build = json.at("build");
    info.cpu = json.at("cpu");
    info.gpu = json.at("gpu");
    info.architecture = json.at("architecture");
    auto dtype = parse_dtype(json.at("dtype").get<std::string>());
    check(dtype.has_value(), "package: '{}' has weights of an unknown type", file.path());
    info.dtype = *dtype;
    info.device = parse_device(json.at("device").get<std::string>());
    info.mode = parse_mode(json.at("mode").get<std::string>());
    info.cache_length = json.at("cache_length");
    info.buckets = json.at("buckets").get<std::vector<int64_t>>();
    info.batches = json.at("batches").get<std::vector<int64_t>>();
    for (auto& [name, value] : json.at("options").items()) info.options[name] = value.get<int64_t>();
    info.weights = json.at("weights");
    info.weights_size = json.at("weights_size");
    info.weights_checksum = json.at("weights_checksum");
    info.artifacts = json.at("artifacts");
    return info;
  } catch (const Json::exception& error) {
    throw_error(format("package: '{}' is damaged: its manifest: {}", file.path(), error.what()));
  }
}

// Why nothing can be compiled here for the package's device; empty where it can.
std::string compiler_problem(const PackageInfo& info) {
  try {
    runtime::Toolchain({.cache_directory = {}}).compile("extern \"C\" void nothing() {}", "nothing");
  } catch (const Error& error) {
    return error.message();
  }
  return info.device.is_cpu() ? "" : runtime::runtime_of(info.device).compiler_problem();
}

// Whether its programs can be used as they are; where not, says what it needs and what is here.
void check_fits(const std::string& path, const PackageInfo& info) {
  std::string difference;
  auto differ = [&](std::string_view what, std::string_view needs, std::string_view here) {
    if (needs != here) difference += format("{}it is for {} {}, here is {}", difference.empty() ? "" : "; ", what, needs, here);
  };
  if (!info.device.is_cpu()) {
    auto& problem = runtime::runtime_of(info.device).problem();
    check(problem.empty(), "package: '{}' is for a GPU ({}), and there is none here: {}", path, info.gpu, problem);
  }
  differ("the CPU", info.cpu, runtime::host_target().name);
  differ("the GPU", info.gpu, gpu_here(info.device));
  differ("build", info.build, build_id());
  if (difference.empty()) return;
  std::string problem = compiler_problem(info);
  check(problem.empty(), "package: '{}' cannot be used as it is: {}. Nor can it be compiled anew: {}", path, difference,
        problem);
  warn("the package {} is compiled anew: {}", path, difference);
}

// The file beside the package that has its weights.
std::string weights_beside(const PackageFile& file, const PackageInfo& info, bool verify) {
  const std::string& path = file.path();
  check(fs::path(info.weights).filename() == info.weights, "package: '{}' names weights that do not lie beside it", path);
  std::string beside = (fs::path(path).parent_path() / info.weights).string();
  check(fs::exists(beside), "package: the weights of '{}' should lie beside it, in '{}'", path, beside);
  check(fs::file_size(beside) == info.weights_size, "package: the weights '{}' have {} bytes, the package was made with {}",
        beside, fs::file_size(beside), info.weights_size);
  check(!verify || file_checksum(beside, 0, info.weights_size) == info.weights_checksum,
        "package: the weights '{}' are damaged, or are not those that the package was made with", beside);
  return beside;
}

GeneratorOptions generator_options(const PackageInfo& info) {
  return {.mode = info.mode, .eager = false, .cache_length = info.cache_length, .buckets = info.buckets,
          .options = info.options};
}

// The programs that a package shall have, each made by running it once.
class Warming {
 public:
  Warming(const ExportOptions& options, const CheckpointFiles& files) : options_(options) {
    samplings_ = options.samplings;
    samplings_.push_back({});
    GenerationConfig wanted = GenerationConfig::read(files);
    if (!wanted.do_sample && !wanted.repetition_penalty) return;
    SamplingOptions sampling;
    sampling.repetition_penalty = wanted.repetition_penalty.value_or(1);
    if (wanted.do_sample) {
      sampling.temperature = wanted.temperature.value_or(1);
      sampling.top_k = wanted.top_k.value_or(0);
      sampling.top_p = wanted.top_p.value_or(1);
      sampling.min_p = wanted.min_p.value_or(0);
    }
    samplings_.push_back(sampling);
  }

  void run(TextGenerator& generator) {
    std::vector<int64_t> lengths = generator.buckets();
    for (auto& sampling : samplings_)
      generator.warmup({.batch = options_.batches, .lengths = lengths, .sampling = sampling});
    // What a generator computes beside its programs is compiled when it runs.
    int64_t total = int64_t(samplings_.size() * options_.batches.size() * lengths.size()), done = 0;
    for (auto& sampling : samplings_)
      for (int64_t batch : options_.batches)
        for (int64_t length : lengths) {
          // One token less than the cache has, so that a decode step follows.
          std::vector<int64_t> prompt(size_t(std::min(length, generator.cache_length() - 1)), 0);
          generator.generate(std::vector(size_t(batch), prompt), {.max_new_tokens = 2, .sampling = sampling});
          // Rows of different lengths have programs of their own.
          if (batch > 1 && prompt.size() > 1) {
            std::vector<std::vector<int64_t>> uneven(size_t(batch), prompt);
            uneven.back().pop_back();
            generator.generate(uneven, {.max_new_tokens = 2, .sampling = sampling});
          }
          report(++done, total);
        }
  }

  void run(const std::shared_ptr<models::Model>& model, const std::function<NamedTensors(const NamedTensors&)>& forward) {
    auto inputs = example_inputs(*model, options_.batches, options_.buckets, options_.device);
    NoGradGuard no_grad;
    for (size_t i = 0; i < inputs.size(); ++i) {
      forward(inputs[i]);
      report(int64_t(i + 1), int64_t(inputs.size()));
    }
  }

 private:
  void report(int64_t done, int64_t total) const {
    if (options_.progress) options_.progress(done, total);
  }

  const ExportOptions& options_;
  std::vector<SamplingOptions> samplings_;
};

}  // namespace

std::string PackageInfo::json() const {
  Json named = Json::object();
  for (auto& [name, value] : options) named[name] = std::get<int64_t>(value);
  return Json{{"sinter", sinter},
              {"build", build},
              {"cpu", cpu},
              {"gpu", gpu},
              {"architecture", architecture},
              {"dtype", to_string(dtype)},
              {"device", std::string(name_of(device.type()))},
              {"mode", to_string(mode)},
              {"cache_length", cache_length},
              {"buckets", buckets},
              {"batches", batches},
              {"options", named},
              {"weights", weights},
              {"weights_size", weights_size},
              {"weights_checksum", weights_checksum},
              {"artifacts", artifacts}}
      .dump(2);
}

void export_package(const std::string& folder_or_id, const std::string& file, const ExportOptions& options) {
  check(!runtime::process_store().directory().empty(),
        "export: what is compiled goes through the cache, and there is no cache directory: set SINTER_CACHE_DIR");
  for (int64_t batch : options.batches) check(batch > 0, "export: a batch of {}", batch);
  CheckpointFiles files = CheckpointFiles(find_checkpoint(folder_or_id)).in_memory();
  const std::string name = files.name();
  // The weights as the package will have them: the model that is compiled reads them from there, as a loaded one will.
  std::string weights = file + ".safetensors";
  struct Removed {
    std::string path;
    ~Removed() {
      std::error_code ignored;
      if (!path.empty()) fs::remove(path, ignored);
    }
  } removed{options.weights_inside ? weights : ""};
  {
    auto original = models::from_pretrained(folder_or_id, {.dtype = options.dtype, .quantize = options.quantize});
    save_safetensors(weights, original->state_dict());
    std::map<std::string, std::string> small = files.files();
    small["config.json"] = original->origin();
    files = CheckpointFiles(std::move(small), name);
  }
  ConfigFile config = ConfigFile::parse(files.read("config.json").value_or(""), files.path("config.json"));
  PackageInfo info;
  info.sinter = SINTER_VERSION;
  info.build = build_id();
  info.cpu = runtime::host_target().name;
  info.gpu = gpu_here(options.device);
  info.device = options.device;
  info.mode = options.mode;
  info.options = options.options;
  info.cache_length = options.cache_length;
  info.buckets = options.buckets;
  info.batches = options.batches;
  {
    auto model = models::from_state(config, load_safetensors(weights), options.device);
    info.architecture = model->config().architecture;
    info.dtype = model->parameters().at(0).dtype();
    check(!std::dynamic_pointer_cast<models::EncoderDecoder>(model),
          "export: {} reads a text or a sound before it writes; packages of such models do not exist", info.architecture);
    Warming warming(options, files);
    if (auto text = std::dynamic_pointer_cast<models::CausalLM>(model)) {
      TextGenerator generator(text, generator_options(info));
      info.cache_length = generator.cache_length();
      info.buckets = generator.buckets();
      warming.run(generator);
    } else {
      warming.run(model, compile_forward(model, options.mode, options.options));
    }
  }
  auto keys = runtime::CodeStore::used_keys();
  // Which NVRTC is here is nobody else's business.
  std::erase_if(keys, [](const std::string& key) { return runtime::key_part(key, "kind") == "nvrtc"; });
  info.artifacts = int64_t(keys.size());
  if (!options.weights_inside) {
    info.weights = fs::path(weights).filename().string();
    info.weights_size = fs::file_size(weights);
    info.weights_checksum = file_checksum(weights, 0, info.weights_size);
  }
  PackageWriter writer(file);
  writer.add(kManifest, info.json());
  for (auto& [name, text] : files.files()) writer.add(std::string(kFilePrefix) + name, text);
  writer.add(kArtifacts, runtime::process_store().archive(keys));
  if (options.weights_inside) writer.add_file(kWeights, weights);
  writer.finish();
}

PackageInfo Package::info(const std::string& file) { return info_of(PackageFile(file)); }

void Package::verify(const std::string& path) {
  PackageFile file(path);
  file.verify();
  PackageInfo info = info_of(file);
  if (!info.weights.empty()) weights_beside(file, info, /*verify=*/true);
}

Package Package::load(const std::string& path, const LoadOptions& load_options) {
  PackageFile file(path);
  PackageInfo info = info_of(file);
  if (load_options.verify) file.verify();
  std::map<std::string, std::string> small;
  for (auto& section : file.sections())
    if (section.name.starts_with(kFilePrefix)) small[section.name.substr(kFilePrefix.size())] = file.read(section.name);
  check_fits(path, info);
  runtime::CodeStore::mount(file.read(kArtifacts), path);

  Package out(CheckpointFiles(std::move(small), path));
  out.info_ = info;
  auto weights = [&] {
    if (info.weights.empty()) {
      auto* section = file.find(kWeights);
      check(section != nullptr, "package: '{}' has no weights", path);
      return SafeTensorsFile(path, section->offset, section->size);
    }
    return SafeTensorsFile(weights_beside(file, info, load_options.verify));
  }();
  NamedTensors state;
  for (auto& name : weights.names()) state.emplace_back(name, weights.tensor(name));
  auto config = out.files_.read("config.json");
  check(config.has_value(), "package: '{}' has no config.json", path);
  out.model_ = models::from_state(ConfigFile::parse(*config, out.files_.path("config.json")), state, info.device);
  out.forward_ = compile_forward(out.model_, info.mode, info.options);
  if (auto text = std::dynamic_pointer_cast<models::CausalLM>(out.model_))
    out.generator_ = std::make_shared<TextGenerator>(text, generator_options(info));
  if (out.files_.read("tokenizer.json")) out.tokenizer_ = Tokenizer::from_pretrained(out.files_);
  return out;
}

TextGenerator& Package::generator() { return *shared_generator(); }

std::shared_ptr<TextGenerator> Package::shared_generator() {
  check(generator_ != nullptr, "package: {} does not generate text", info_.architecture);
  return generator_;
}

const Tokenizer& Package::tokenizer() const {
  check(tokenizer_.has_value(), "package: '{}' has no tokenizer", files_.name());
  return *tokenizer_;
}

}  // namespace sinter
