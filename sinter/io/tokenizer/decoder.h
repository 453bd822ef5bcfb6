#pragma once
// Decoders: tokens back to text. They work as streams, so that decoding token by token is decoding at once.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/io/tokenizer/json_ref.h"

namespace sinter::tokenizers {

// One stage of one stream. It hands on what can no longer change.
class DecodeStage {
 public:
  using Sink = std::function<void(std::string)>;
  virtual ~DecodeStage() = default;
  virtual void push(std::string token, const Sink& sink) = 0;
  // There is no more to come.
  virtual void finish(const Sink&) {}
};

// What a file says about decoding; makes stages.
class Decoder {
 public:
  // Null: tokens are joined by spaces. Throws for a type that is not known.
  explicit Decoder(JsonRef json);
  std::vector<std::unique_ptr<DecodeStage>> stages() const;

 private:
  using Factory = std::function<std::unique_ptr<DecodeStage>()>;
  void read(JsonRef json, int depth);

  struct Step {
    Factory make;
    std::function<std::unique_ptr<DecodeStage>()> make_fused;  // for tokens that have been joined to one before
    bool joins = false;                                        // makes one token of all
  };
  std::vector<Step> steps_;
};

// A stream through all stages of a decoder.
class DecodeStream {
 public:
  explicit DecodeStream(const Decoder& decoder) : stages_(decoder.stages()) {}
  // Appends what became certain.
  void push(std::string token, std::string& out) { push_into(0, std::move(token), out); }
  void finish(std::string& out);

 private:
  void push_into(size_t stage, std::string token, std::string& out);
  std::vector<std::unique_ptr<DecodeStage>> stages_;
};

}  // namespace sinter::tokenizers
