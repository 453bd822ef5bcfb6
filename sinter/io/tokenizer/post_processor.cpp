#include "sinter/io/tokenizer/post_processor.h"

#include "sinter/base/error.h"

namespace sinter::tokenizers {

namespace {

constexpr int kMaxDepth = 16;
constexpr size_t kMaxIds = size_t(1) << 28;

Id read_pair_id(JsonRef json) {  // ["[SEP]", 102]
  if (!json.is_array() || json.size() != 2) json.fail("must be a pair of a token and its id");
  Id id = 0;
  int field = 0;
  json.each([&](JsonRef value) {
    if (field++ == 1) id = value.id();
  });
  return id;
}

}  // namespace

void PostProcessor::read(JsonRef json, int depth) {
  if (json.is_null()) return;
  if (depth > kMaxDepth) json.fail("is nested too deeply");
  const std::string& type = json["type"].text();
  if (type == "Sequence") {
    json["processors"].each([&](JsonRef each) { read(each, depth + 1); });
  } else if (type == "TemplateProcessing") {
    read_template(json);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    steps_.push_back(
        {Part{false, {read_pair_id(json["cls"])}}, Part{true, {}}, Part{false, {read_pair_id(json["sep"])}}});
  } else if (type != "ByteLevel") {  // which moves offsets, not ids
    json.fail(format("is a post-processor of the unknown type '{}'", type));
  }
}

void PostProcessor::read_template(JsonRef json) {
  std::vector<Part> parts;
  json["single"].each([&](JsonRef piece) {
    Part part;
    JsonRef special = piece["SpecialToken"];
    if (special.is_null()) {
      part.text = true;
      if (piece["Sequence"]["id"].text() != "A") piece.fail("has a second text in the template of a single one");
    } else {
      const std::string& name = special["id"].text();
      json["special_tokens"][name.c_str()]["ids"].each([&](JsonRef id) { part.ids.push_back(id.id()); });
    }
    parts.push_back(std::move(part));
  });
  steps_.push_back(std::move(parts));
}

std::vector<int64_t> PostProcessor::apply(std::vector<int64_t> ids, bool add_special_tokens) const {
  for (auto& parts : steps_) {
    std::vector<int64_t> result;
    for (auto& part : parts) {
      if (part.text) {
        result.insert(result.end(), ids.begin(), ids.end());
      } else if (add_special_tokens) {
        result.insert(result.end(), part.ids.begin(), part.ids.end());
      }
      check(result.size() <= kMaxIds, "tokenizer: the post-processor makes too many ids");
    }
    ids = std::move(result);
  }
  return ids;
}

}  // namespace sinter::tokenizers
