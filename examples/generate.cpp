// Text from a Hugging Face checkpoint: load, compile, generate. Takes a folder with config.json, safetensors and
// tokenizer.json, and a prompt; without them, from the root of the source tree, the bundled model.
#include <iostream>

#include <sinter/sinter.h>

using namespace sinter;

int main(int argc, char** argv) try {
  std::string folder = argc > 1 ? argv[1] : "assets/whale-5m";
  std::string prompt = argc > 2 ? argv[2] : "Call me Ishmael.";

  auto model = models::causal_lm(models::from_pretrained(folder));
  auto tokenizer = Tokenizer::from_pretrained(folder);

  // The prompt goes through one compiled program, every token after it through another.
  TextGenerator generator(model, {.mode = Mode::kReduceOverhead});

  GenerateOptions options;
  options.max_new_tokens = 60;
  options.sampling = {.temperature = 0.8, .top_p = 0.95, .seed = 1};
  options.stop_ids = GenerationConfig::read(folder).eos_token_ids;
  options.tokenizer = &tokenizer;
  options.on_text = [](int64_t /*row*/, const std::string& text) { std::cout << text << std::flush; };

  std::cout << prompt;
  Generation result = generator.generate(tokenizer.encode(prompt), options);

  std::cout << "\n\n"
            << result.ids.size() << " tokens, " << generator.times().tokens_per_s() << " a second; ended by "
            << to_string(result.finish) << "\n";
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
