#pragma once
// A run of training that takes a second: a Llama of two narrow layers on the first pages of Moby Dick.
#include <fstream>
#include <string>

#include "sinter/train/trainer.h"
#include "tests/support/own_directory.h"

namespace sinter::train {

inline std::string first_pages(size_t bytes) {
  std::ifstream file(SINTER_SOURCE_DIR "/assets/moby-dick.txt", std::ios::binary);
  std::string text(bytes, '\0');
  file.read(text.data(), std::streamsize(bytes));
  return text;
}

class TinyRun {
 public:
  TinyRun() {
    std::ofstream(own_.file("config.json")) << R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
      "vocab_size": 2048, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
      "num_key_value_heads": 1, "max_position_embeddings": 64, "tie_word_embeddings": true})";
    std::ofstream(own_.file("text.txt")) << first_pages(20000);
    options.config = own_.file("config.json");
    options.tokenizer = SINTER_SOURCE_DIR "/assets/whale-5m";
    options.data = own_.file("text.txt");
    options.out = own_.file("run");
    options.steps = 12;
    options.batch = 4;
    options.length = 16;
    options.lr = 1e-2;
    options.warmup = 3;
    options.eval_every = options.save_every = 4;
    options.keep = 0;
  }

  std::string file(const std::string& name) const { return own_.file(name); }
  Trainer start(bool resume = false) const { return Trainer(options, resume, {}); }
  // All steps; the losses of the log, those on what is held back among them.
  std::vector<double> losses(bool resume = false) const {
    Trainer trainer = start(resume);
    Observer nobody;
    trainer.run(nobody);
    return losses_of(trainer.log());
  }
  static std::vector<double> losses_of(const LossLog& log) {
    std::vector<double> out;
    for (auto& step : log.steps()) {
      out.push_back(step.loss);
      if (step.held_out) out.push_back(step.held_out->loss);
    }
    return out;
  }

  TrainOptions options;

 private:
  OwnDirectory own_;
};

}  // namespace sinter::train
