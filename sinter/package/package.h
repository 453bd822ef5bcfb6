#pragma once
// A compiled model in one file, which runs where no compiler is installed.
//
//   export_package("path/to/checkpoint", "model.sinter", {.dtype = kBFloat16});
//   …
//   Package package = Package::load("model.sinter");
//   auto result = package.generator().generate(package.tokenizer().encode("Call me Ishmael."), {.max_new_tokens = 64});
//
// A package holds native code: trust it as you would a program. Programs are found in it, not traced.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/generate/text_generator.h"
#include "sinter/io/config.h"
#include "sinter/models/models.h"

namespace sinter SINTER_API {

struct ExportOptions {
  std::optional<DType> dtype = {};  // that of the checkpoint by default
  std::string quantize = {};        // "int8" or "int4": as models::from_pretrained has it
  Device device = {};               // what it is compiled for; it must be here
  Mode mode = Mode::kDefault;
  OptionMap options = {};           // for compile()
  // What is compiled. For text: a prefill for each bucket and a decode step, each for every batch and for greedy decoding,
  // what generation_config.json asks for, and the samplings given here. Encoders and image models take any size.
  int64_t cache_length = 0;
  std::vector<int64_t> buckets = {};
  std::vector<int64_t> batches = {1};
  std::vector<SamplingOptions> samplings = {};
  bool weights_inside = true;  // else in a file beside the package, called like it with .safetensors behind
  // Programs compiled so far, and all of them.
  std::function<void(int64_t done, int64_t total)> progress = {};
};

// Compiles a checkpoint (as models::from_pretrained finds it) and writes it to `file`. What was compiled goes through the
// store: there must be a cache directory.
void export_package(const std::string& folder_or_id, const std::string& file, const ExportOptions& options = {});

struct PackageInfo {
  std::string sinter, build;          // the version and the build that made it
  std::string cpu, gpu;               // instruction set and GPU architecture that its kernels are for; gpu may be empty
  std::string architecture;           // of the model
  DType dtype = kFloat32;
  Device device;
  Mode mode = Mode::kDefault;
  int64_t cache_length = 0;
  std::vector<int64_t> buckets, batches;
  OptionMap options;                  // of compile()
  std::string weights;                // the file beside the package that has them; empty: inside
  uint64_t weights_size = 0, weights_checksum = 0;  // of that file
  int64_t artifacts = 0;              // programs, kernels and choices

  // All of it, as the package has it.
  std::string json() const;
};

class Package {
 public:
  struct LoadOptions {
    bool verify = false;  // read every byte, the weights too, and compare checksums
  };
  // An Error says what is damaged, of another version, or missing here. Where the package is for another machine or was made
  // by another build of Sinter, its programs are compiled anew, with a warning; without a compiler that is an Error.
  static Package load(const std::string& file, const LoadOptions& options);
  static Package load(const std::string& file) { return load(file, {}); }
  // Reads what it says of itself alone.
  static PackageInfo info(const std::string& file);
  // Reads every byte, those of weights beside it too; an Error says what is damaged.
  static void verify(const std::string& file);

  const PackageInfo& info() const { return info_; }
  // Configurations and the like, as the checkpoint had them.
  const CheckpointFiles& files() const { return files_; }
  const std::shared_ptr<models::Model>& model() const { return model_; }
  // The compiled forward pass: named tensors as Model::run takes and gives them.
  NamedTensors run(const NamedTensors& inputs) { return forward_(inputs); }
  // Of a model that generates text; an Error for others.
  TextGenerator& generator();
  std::shared_ptr<TextGenerator> shared_generator();
  // An Error where the checkpoint had none.
  const Tokenizer& tokenizer() const;
  bool has_tokenizer() const { return tokenizer_.has_value(); }

 private:
  explicit Package(CheckpointFiles files) : files_(std::move(files)) {}

  PackageInfo info_;
  CheckpointFiles files_;
  std::shared_ptr<models::Model> model_;
  std::function<NamedTensors(const NamedTensors&)> forward_;
  std::shared_ptr<TextGenerator> generator_;
  std::optional<Tokenizer> tokenizer_;
};

}  // namespace sinter
