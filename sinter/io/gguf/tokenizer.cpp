// tokenizer.json and tokenizer_config.json out of the values of a GGUF file.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_map>

#include "sinter/base/error.h"
#include "sinter/io/gguf/gguf.h"

namespace sinter::gguf {

namespace {

using Json = nlohmann::json;

constexpr const char* kSpace = "\u2581";
enum TokenType : int64_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

// How words are cut apart before they are merged. Files name the way by the model it was first met with.
constexpr const char* kLlama3Split = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
                                     R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2Split =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekkenSplit = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                                     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
                                     R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kGpt4oSplit =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Splitting {
  const char* name;
  const char* regex = nullptr;  // none: that of GPT-2
  bool digits = false;          // one by one, before it
  bool whole_words = false;     // a word that is a token is not merged
  bool begins = false;          // texts begin with the first token, where the file does not say
  bool composed = false;        // NFC
};

constexpr Splitting kSplittings[] = {
    {.name = "gpt-2"},
    {.name = "phi-2"},
    {.name = "olmo"},
    {.name = "mpt"},
    {.name = "llama-bpe", .regex = kLlama3Split, .whole_words = true, .begins = true},
    {.name = "llama3", .regex = kLlama3Split, .whole_words = true, .begins = true},
    {.name = "llama-v3", .regex = kLlama3Split, .whole_words = true, .begins = true},
    {.name = "dbrx", .regex = kLlama3Split},
    {.name = "smaug-bpe", .regex = kLlama3Split},
    {.name = "qwen2", .regex = kQwen2Split, .composed = true},
    {.name = "deepseek-r1-qwen", .regex = kQwen2Split, .composed = true},
    {.name = "stablelm2", .regex = kQwen2Split, .composed = true},
    {.name = "tekken", .regex = kTekkenSplit, .whole_words = true, .begins = true},
    {.name = "gpt-4o", .regex = kGpt4oSplit},
    {.name = "smollm", .digits = true},
    {.name = "starcoder", .digits = true},
    {.name = "refact", .digits = true},
    {.name = "codeshell", .digits = true},
};

const Splitting& splitting_of(const GgufFile& file) {
  const std::string name = file.text("tokenizer.ggml.pre", "default");
  std::string known;
  for (auto& each : kSplittings) {
    if (name == each.name) return each;
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  throw_error(format("gguf: the tokenizer of '{}' cuts words apart as '{}', which is not known; known are {}",
                     file.path(), name, known));
}

// The tokens of a file and what they are for.
class Tokens {
 public:
  explicit Tokens(const GgufFile& file)
      : file_(file), texts_(file.texts("tokenizer.ggml.tokens")), types_(file.integers("tokenizer.ggml.token_type")) {
    check(!texts_.empty(), "gguf: '{}' has a tokenizer without tokens", file.path());
    check(types_.empty() || types_.size() == texts_.size(), "gguf: '{}' has {} tokens and {} types of them",
          file.path(), texts_.size(), types_.size());
  }

  size_t count() const { return texts_.size(); }
  const std::string& text(size_t id) const { return texts_[id]; }
  int64_t type(size_t id) const { return types_.empty() ? int64_t(kNormal) : types_[id]; }
  // Found in a text before all else, and never merged from pieces.
  bool is_added(size_t id) const { return type(id) == kControl || type(id) == kUserDefined; }

  // The token that a key names by its id; none where it names none.
  std::optional<size_t> at(const char* key) const {
    const auto found = special_id(file_, key);
    if (!found) return {};
    const int64_t id = *found;
    check(id >= 0 && size_t(id) < count(), "gguf: {} of '{}' is {}, and there are {} tokens", key, file_.path(), id,
          count());
    return size_t(id);
  }

  Json vocabulary() const {
    Json out = Json::object();
    for (size_t id = 0; id < count(); ++id) out[text(id)] = id;
    return out;
  }
  Json added() const {
    Json out = Json::array();
    for (size_t id = 0; id < count(); ++id)
      if (is_added(id))
        out.push_back({{"id", id},
                       {"content", text(id)},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", type(id) == kControl}});
    return out;
  }
  const GgufFile& file() const { return file_; }

 private:
  const GgufFile& file_;
  const std::vector<std::string>& texts_;
  const std::vector<int64_t>& types_;
};

// What is put before and behind a text.
Json template_of(const Tokens& tokens, bool begins) {
  const GgufFile& file = tokens.file();
  Json single = Json::array(), used = Json::object();
  auto add = [&](const char* key) {
    auto id = tokens.at(key);
    check(id.has_value(), "gguf: '{}' wants a token around texts, and lacks {}", file.path(), key);
    const std::string& text = tokens.text(*id);
    single.push_back({{"SpecialToken", {{"id", text}, {"type_id", 0}}}});
    used[text] = {{"id", text}, {"ids", {*id}}, {"tokens", {text}}};
  };
  if (file.boolean("tokenizer.ggml.add_bos_token", begins)) add("tokenizer.ggml.bos_token_id");
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  if (file.boolean("tokenizer.ggml.add_eos_token", false)) add("tokenizer.ggml.eos_token_id");
  if (used.empty()) return nullptr;
  Json pair = single;
  for (Json each : single) {
    for (auto& [kind, part] : each.items()) {
      part["type_id"] = 1;
      if (kind == "Sequence") part["id"] = "B";
    }
    pair.push_back(each);
  }
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", used}};
}

// Words as bytes, each written as a letter.
Json byte_pairs(const Tokens& tokens) {
  const Splitting& how = splitting_of(tokens.file());
  Json steps = Json::array();
  if (how.digits) steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  if (how.regex)
    steps.push_back(
        {{"type", "Split"}, {"pattern", {{"Regex", how.regex}}}, {"behavior", "Isolated"}, {"invert", false}});
  const Json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", !how.regex}};
  steps.push_back(bytes);
  Json out;
  out["added_tokens"] = tokens.added();
  out["normalizer"] = how.composed ? Json{{"type", "NFC"}} : Json();
  out["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
  out["post_processor"] = template_of(tokens, how.begins);
  out["decoder"] = bytes;
  out["model"] = {{"type", "BPE"},
                  {"ignore_merges", how.whole_words},
                  {"vocab", tokens.vocabulary()},
                  {"merges", tokens.file().texts("tokenizer.ggml.merges")}};
  return out;
}

// Of a SentencePiece model files have scores: of all pairs that are a token together, the one with the best score is
// merged. As merges, that is each way to cut a token into two others, the best tokens first.
Json merges_by_score(const Tokens& tokens) {
  const GgufFile& file = tokens.file();
  auto& scores = file.numbers("tokenizer.ggml.scores");
  check(scores.size() == tokens.count(), "gguf: '{}' has {} tokens and {} scores", file.path(), tokens.count(),
        scores.size());
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < tokens.count(); ++id)
    if (tokens.type(id) != kControl && tokens.type(id) != kUnknown) ids.emplace(tokens.text(id), id);
  struct Merge {
    size_t whole, left, right;
  };
  std::vector<Merge> merges;
  for (size_t id = 0; id < tokens.count(); ++id) {
    if (tokens.type(id) != kNormal && tokens.type(id) != kUserDefined) continue;
    const std::string_view text = tokens.text(id);
    constexpr size_t kLongest = 4096;  // a token of more bytes is no word
    for (size_t cut = 1; cut < text.size() && text.size() <= kLongest; ++cut) {
      auto left = ids.find(text.substr(0, cut)), right = ids.find(text.substr(cut));
      if (left != ids.end() && right != ids.end()) merges.push_back({id, left->second, right->second});
    }
  }
  std::stable_sort(merges.begin(), merges.end(), [&](auto& a, auto& b) {
    if (scores[a.whole] != scores[b.whole]) return scores[a.whole] > scores[b.whole];
    return a.whole < b.whole;
  });
  Json out = Json::array();
  for (auto& merge : merges) out.push_back({tokens.text(merge.left), tokens.text(merge.right)});
  return out;
}

Json sentence_pieces(const Tokens& tokens) {
  const GgufFile& file = tokens.file();
  const bool opens = file.boolean("tokenizer.ggml.add_space_prefix", true);
  const auto unknown = tokens.at("tokenizer.ggml.unknown_token_id");
  bool bytes = false;
  for (size_t id = 0; id < tokens.count(); ++id) bytes = bytes || tokens.type(id) == kByte;
  const Json to_pieces = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpace}};
  const Json from_pieces = {{"type", "Replace"}, {"pattern", {{"String", kSpace}}}, {"content", " "}};
  Json normalizers = Json::array(), decoders = {from_pieces, {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  if (opens) {
    normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  normalizers.push_back(to_pieces);
  Json out;
  out["added_tokens"] = tokens.added();
  out["normalizer"] = {{"type", "Sequence"}, {"normalizers", normalizers}};
  out["pre_tokenizer"] = nullptr;
  out["post_processor"] = template_of(tokens, /*begins=*/true);
  out["decoder"] = {{"type", "Sequence"}, {"decoders", decoders}};
  out["model"] = {{"type", "BPE"},
                  {"unk_token", unknown ? Json(tokens.text(*unknown)) : Json()},
                  {"fuse_unk", true},
                  {"byte_fallback", bytes},
                  {"vocab", tokens.vocabulary()},
                  {"merges", merges_by_score(tokens)}};
  return out;
}

}  // namespace

std::optional<int64_t> special_id(const GgufFile& file, std::string_view key) {
  if (file.contains(key)) return file.integer(key);
  if (file.text("tokenizer.ggml.model", "") != "llama") return {};
  constexpr std::pair<std::string_view, int64_t> kPieces[] = {
      {"tokenizer.ggml.unknown_token_id", 0}, {"tokenizer.ggml.bos_token_id", 1}, {"tokenizer.ggml.eos_token_id", 2}};
  for (auto& [name, id] : kPieces)
    if (name == key) return id;
  return {};
}

std::string tokenizer(const GgufFile& file) {
  const Tokens tokens(file);
  const std::string model = file.text("tokenizer.ggml.model");
  check(model == "gpt2" || model == "llama", "gguf: '{}' has a tokenizer of the kind '{}'; gpt2 and llama are read",
        file.path(), model);
  const Json out = model == "gpt2" ? byte_pairs(tokens) : sentence_pieces(tokens);
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string tokenizer_config(const GgufFile& file) {
  const Tokens tokens(file);
  Json out = Json::object();
  for (auto [name, key] :
       {std::pair{"bos_token", "tokenizer.ggml.bos_token_id"}, std::pair{"eos_token", "tokenizer.ggml.eos_token_id"},
        std::pair{"unk_token", "tokenizer.ggml.unknown_token_id"},
        std::pair{"pad_token", "tokenizer.ggml.padding_token_id"}})
    if (auto id = tokens.at(key)) out[name] = tokens.text(*id);
  // One template, or several with names of which one has none.
  const std::string key = "tokenizer.chat_template";
  Json templates = Json::array();
  if (file.contains(key)) templates.push_back({{"name", "default"}, {"template", file.text(key)}});
  for (auto& each : file.keys())
    if (each.starts_with(key + "."))
      templates.push_back({{"name", each.substr(key.size() + 1)}, {"template", file.text(each)}});
  if (templates.size() == 1 && file.contains(key))
    out["chat_template"] = file.text(key);
  else if (!templates.empty())
    out["chat_template"] = templates;
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sinter::gguf
