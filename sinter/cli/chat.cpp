// `sinter chat`: a conversation on the terminal, or from a pipe.
#include <unistd.h>

#include <iostream>

#include <CLI/CLI.hpp>

#include "sinter/base/error.h"
#include "sinter/cli/commands.h"
#include "sinter/cli/model_options.h"
#include "sinter/cli/text_stream.h"

namespace sinter::cli {

namespace {

struct Flags : TextOptions {
  std::string system;
};

class Chat {
 public:
  explicit Chat(const Flags& flags)
      : model_(flags), system_(flags.system), templated_(tokenizer().has_chat_template()) {
    check(!model_.reader, "chat: {} answers a text and knows no conversation; use `sinter generate`",
          model_.generator->model()->config().architecture);
    if (!templated_) model_.options.stop_strings.push_back("\nUser:");
    reset();
  }

  bool templated() const { return templated_; }

  // The last message as if it had not been sent.
  void take_back() { messages_.pop_back(); }
  void reset() {
    messages_.clear();
    if (!system_.empty()) messages_.push_back({"system", system_});
  }

  void answer(const std::string& line) {
    messages_.push_back({"user", line});
    TextStream stream;
    GenerateOptions options = model_.options;
    options.on_text = [&](int64_t, const std::string& text) { stream.write(text); };
    auto result = model_.generator->generate(prompt_ids(), options);
    stream.finish();
    if (result.finish == Finish::kCacheFull) std::cerr << "(the cache is full; /reset begins anew)\n";
    messages_.push_back({"assistant", result.text});
  }

 private:
  const Tokenizer& tokenizer() const { return model_.text_tokenizer(); }

  std::vector<int64_t> encoded() const {
    if (templated_) return tokenizer().encode(tokenizer().apply_chat_template(messages_), false);
    std::string text;
    for (auto& message : messages_)
      text += (message.role == "user"        ? "User: " + message.content
               : message.role == "assistant" ? "Assistant:" + message.content
                                             : message.content) +
              "\n";
    return tokenizer().encode(text + "Assistant:");
  }

  // The conversation, without its oldest turns where it leaves less than a quarter of the cache for the answer.
  std::vector<int64_t> prompt_ids() {
    int64_t room = model_.generator->cache_length();
    room -= std::min(model_.options.max_new_tokens, room / 4);
    auto ids = encoded();
    size_t first = system_.empty() ? 0 : 1, forgotten = 0;
    while (int64_t(ids.size()) > room && messages_.size() > first + 1) {
      messages_.erase(messages_.begin() + int64_t(first), messages_.begin() + int64_t(first) + 2);
      ++forgotten;
      ids = encoded();
    }
    if (forgotten) std::cerr << format("(the oldest turns did not fit any more: {} forgotten)\n", forgotten);
    return ids;
  }

  TextModel model_;
  std::string system_;
  bool templated_;
  std::vector<ChatMessage> messages_;
};

void run_chat(const Flags& flags) {
  Chat chat(flags);
  bool terminal = isatty(STDIN_FILENO);
  if (terminal)
    std::cerr << (chat.templated() ? "" : "This model has no chat template: it continues a plain transcript.\n")
              << "/reset forgets the conversation, /exit or Ctrl-D ends it.\n";
  std::string line;
  while (true) {
    if (terminal) std::cerr << "> " << std::flush;
    if (!std::getline(std::cin, line) || line == "/exit") break;
    if (line == "/reset")
      chat.reset();
    else if (line.starts_with("/"))
      std::cerr << format("'{}' is no command; there are /reset and /exit\n", line);
    else if (!line.empty())
      try {
        chat.answer(line);
      } catch (const Error& error) {
        if (!terminal) throw;
        std::cerr << error.what() << "\n";
        chat.take_back();
      }
  }
  if (terminal) std::cerr << "\n";
}

}  // namespace

void add_chat(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("chat", "Talk with a language model");
  flags->add_to(*command);
  command->add_option("--system", flags->system, "What the model is told before the conversation");
  command->footer(
      "Examples:\n"
      "  sinter chat --model ~/models/qwen --system 'Be brief.' --temperature 0.7\n"
      "  printf 'Who is Ahab?\\nAnd the whale?\\n' | sinter chat --model ~/models/qwen\n"
      "Each line is a message; answers stream as they come, and the model sees the conversation so far, in the form "
      "of\n"
      "the checkpoint's chat template. A model without one continues a plain transcript (User: …, Assistant: …).\n"
      "/reset forgets the conversation, /exit or Ctrl-D ends it.");
  command->callback([flags] { run_chat(*flags); });
}

}  // namespace sinter::cli
