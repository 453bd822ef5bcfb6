#pragma once
// The bundled model behind an engine, with a template for conversations.
#include <thread>

#include "sinter/io/config.h"
#include "sinter/serve/api.h"
#include "tests/generate/whale.h"

namespace sinter::testing {

inline const Tokenizer& chat_tokenizer() {
  static const Tokenizer tokenizer = [] {
    CheckpointFiles files = CheckpointFiles(whale_folder()).in_memory();
    auto all = files.files();
    all["chat_template.jinja"] =
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% "
        "endif %}";
    return Tokenizer::from_pretrained(CheckpointFiles(std::move(all), "whale"));
  }();
  return tokenizer;
}

inline serve::EngineOptions served_whale_options() {
  serve::EngineOptions options;
  options.decoder.max_length = 128;
  options.decoder.page = 16;
  options.decoder.rows = {1, 4};
  options.decoder.chunks = {16, 64};
  options.end_ids = {1};
  options.model_name = "whale";
  return options;
}

// One for all tests that only ask.
inline serve::Engine& served_whale() {
  static serve::Engine* engine = [] {
    auto* made = new serve::Engine(whale(), &chat_tokenizer(), served_whale_options());
    made->start();
    return made;
  }();
  return *engine;
}

}  // namespace sinter::testing
