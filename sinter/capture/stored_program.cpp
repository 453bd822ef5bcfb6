#include "sinter/capture/stored_program.h"

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "sinter/base/build_id.h"
#include "sinter/base/debug_files.h"
#include "sinter/base/hash.h"
#include "sinter/base/log.h"
#include "sinter/base/stage_times.h"
#include "sinter/capture/build.h"
#include "sinter/engine/executable/ready_graph.h"
#include "sinter/ops/creation.h"
#include "sinter/runtime/code_store.h"

namespace sinter::capture {

namespace {

using Json = nlohmann::json;

// Tensors that a program makes of the host's numbers are kept up to this size.
constexpr int64_t kMaxConstantBytes = 1 << 16;

// Why a program is not stored.
struct NotStorable {
  std::string reason;
};

std::string tensors_text(const Fingerprint& fingerprint) {
  std::string text;
  std::unordered_map<const Buffer*, size_t> first;
  for (size_t i = 0; i < fingerprint.tensors.size(); ++i) {
    auto& [name, tensor] = fingerprint.tensors[i];
    auto& impl = tensor.impl();
    size_t shared = first.try_emplace(impl.buffer.get(), i).first->second;
    text += format("{} {}{} {} +{} {} {} {}\n", name, impl.dtype, impl.sizes, impl.strides, impl.offset, impl.device,
                   impl.requires_grad, shared);
  }
  return text;
}

// --- writing

Json to_json(const IntList& list) { return std::vector<int64_t>(list.begin(), list.end()); }

std::string hex_of(const Tensor& tensor) {
  constexpr char kDigits[] = "0123456789abcdef";
  auto* bytes = static_cast<const unsigned char*>(tensor.data_ptr());
  std::string out;
  for (int64_t i = 0; i < tensor.numel() * item_size(tensor.dtype()); ++i) {
    out += kDigits[bytes[i] >> 4];
    out += kDigits[bytes[i] & 15];
  }
  return out;
}

// The name that a tensor has in every process; `called` is for people.
const std::string& name_of(const Tensor& tensor, const std::string& called, const Fingerprint& fingerprint) {
  for (auto& [name, known] : fingerprint.tensors)
    if (known.is_same(tensor)) return name;
  throw NotStorable{format("the tensor '{}' has no name", called)};
}

Json source_json(const CellSource& source, const Fingerprint& fingerprint) {
  Json out{{"kind", int(source.kind)}, {"index", source.index}, {"name", source.name}, {"operand", source.only_operand}};
  if (source.kind == CellSource::Kind::kGrad) throw NotStorable{"it reads gradients"};
  if (source.kind == CellSource::Kind::kCaptured) {
    out["tensor"] = name_of(source.tensor, source.name, fingerprint);
  }
  if (source.kind == CellSource::Kind::kConstant) {
    auto& impl = source.tensor.impl();
    bool plain = impl.device.is_cpu() && impl.contiguous && impl.numel * item_size(impl.dtype) <= kMaxConstantBytes;
    if (!plain) throw NotStorable{format("the constant '{}' is large or not on the host", source.name)};
    out["constant"] = {{"dtype", to_string(impl.dtype)}, {"sizes", to_json(impl.sizes)}, {"bytes", hex_of(source.tensor)}};
  }
  return out;
}

Json sizes_json(const SizeTable& sizes) {
  Json symbols = Json::array(), facts = Json::array();
  for (auto& s : sizes.symbols())
    symbols.push_back({{"name", s.name}, {"source", s.source}, {"low", s.low}, {"high", s.high}, {"word", s.word},
                       {"same", s.same}});
  for (auto& f : sizes.facts())
    facts.push_back({{"op", int(f.op)}, {"a", to_string(f.a)}, {"b", to_string(f.b)}, {"holds", f.holds},
                     {"where", f.where}});
  return {{"symbols", symbols}, {"facts", facts}};
}

// The leaves of a result, but for tensors.
class ResultShape final : public LeafVisitor {
 public:
  void tensor(Tensor&) override { text += "t"; }
  void size(Dim&) override { text += "s"; }
  void number(Scalar& s) override { text += format("n{}", s); }
  void exact(LeafKind, size_t, const std::string& value) override { text += "=" + value; }
  void enter(const std::string& part) override { text += "(" + part; }
  void leave() override { text += ")"; }
  std::string text;
};

std::string shape_of(ResultBox* box) {
  ResultShape shape;
  if (box) box->visit(shape);
  return shape.text;
}

Json segment_json(const Segment& segment, const Fingerprint& fingerprint) {
  if (segment.question.kind != Question::Kind::kReturn) throw NotStorable{"it breaks"};
  if (segment.backward || !segment.grads.empty() || !segment.grad_reads.empty())
    throw NotStorable{"it has to do with gradients"};
  if (!segment.data_sizes.empty()) throw NotStorable{"its sizes depend on data"};
  if (!segment.actions.empty()) throw NotStorable{"it changes state of the host"};
  if (!segment.run) throw NotStorable{"it computes nothing"};
  if (segment.stored.key.empty()) throw NotStorable{"its graph is not stored"};
  Json bound = Json::array(), inputs = Json::array(), outputs = Json::array(), results = Json::array();
  for (auto& [cell, source] : segment.bound) {
    bound.push_back(source_json(source, fingerprint));
    bound.back()["cell"] = cell;
  }
  for (auto& input : segment.inputs) {
    if (input.kind == InputSource::Kind::kHost || input.kind == InputSource::Kind::kRead)
      throw NotStorable{"it reads numbers of the host"};
    if (input.kind == InputSource::Kind::kTensor) throw NotStorable{"it reads a tensor that has no name"};
    inputs.push_back({{"kind", int(input.kind)}, {"index", input.index}, {"size", to_string(input.size)},
                      {"dtype", to_string(input.dtype)}, {"argument", input.argument}});
  }
  for (auto& output : segment.outputs)
    outputs.push_back({{"cell", output.cell}, {"written", output.written}, {"order", to_json(output.order)},
                       {"forgets", output.forgets}, {"complex", output.complex}});
  for (auto& result : segment.results)
    results.push_back({{"cell", result.cell}, {"path", field_text(result.path)}, {"detached", result.detached},
                       {"same_as", result.same_as}});
  Json sizes = Json::array();
  for (auto& size : segment.result_sizes) sizes.push_back(to_string(size));
  return {{"text", segment.text},       {"ops", segment.ops},         {"hash", segment.hash},
          {"bound", bound},             {"inputs", inputs},           {"outputs", outputs},
          {"draws", segment.draws},     {"takes", segment.takes},     {"results", results},
          {"result_sizes", sizes},      {"numbers", segment.result_numbers},
          {"graph", segment.stored.key}, {"lines", segment.stored.lines}};
}

// --- reading

IntList ints_of(const Json& json) {
  IntList out;
  for (auto& value : json) out.push_back(value.get<int64_t>());
  return out;
}

template <class T>
T field_of(const Json& json) {
  T out;
  parse_field(json.get<std::string>(), out);
  return out;
}

Tensor constant_of(const Json& json) {
  auto text = json.at("bytes").get<std::string>();
  Shape shape;
  for (auto& size : json.at("sizes")) shape.push_back(size.get<int64_t>());
  Tensor out = empty(shape, field_of<DType>(json.at("dtype")));
  auto* bytes = static_cast<unsigned char*>(out.data_ptr());
  check(text.size() == size_t(out.numel() * item_size(out.dtype())) * 2, "a constant of another size");
  auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (size_t i = 0; i < text.size() / 2; ++i)
    bytes[i] = static_cast<unsigned char>(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
  return out;
}

SizeTable sizes_of(const Json& json, const Signature& signature) {
  std::vector<SizeSymbol> symbols;
  for (auto& s : json.at("symbols")) {
    int word = s.at("word").get<int>();
    check(word >= 0 && size_t(word) < signature.size(), "a symbol of word {}", word);
    symbols.push_back({s.at("name"), s.at("source"), signature[size_t(word)], s.at("low"), s.at("high"), word,
                       s.at("same").get<std::vector<int>>()});
  }
  std::vector<SizeFact> facts;
  for (auto& f : json.at("facts"))
    facts.push_back({DimCompare(f.at("op").get<int>()), parse_dim(f.at("a").get<std::string>()),
                     parse_dim(f.at("b").get<std::string>()), f.at("holds"), f.at("where")});
  return {std::move(symbols), std::move(facts)};
}

std::shared_ptr<Segment> segment_of(const Json& json, const std::unordered_map<std::string, Tensor>& named) {
  auto segment = std::make_shared<Segment>();
  segment->text = json.at("text");
  segment->ops = json.at("ops");
  segment->hash = json.at("hash");
  for (auto& m : json.at("bound")) {
    CellSource source{CellSource::Kind(m.at("kind").get<int>()), m.at("index"), {}, m.at("name"), m.at("operand")};
    if (m.contains("tensor")) source.tensor = named.at(m.at("tensor").get<std::string>());
    if (m.contains("constant")) source.tensor = constant_of(m.at("constant"));
    segment->bound.emplace_back(m.at("cell").get<int>(), std::move(source));
  }
  for (auto& i : json.at("inputs"))
    segment->inputs.push_back({InputSource::Kind(i.at("kind").get<int>()), i.at("index"),
                               parse_dim(i.at("size").get<std::string>()), field_of<DType>(i.at("dtype")), {},
                               i.at("argument")});
  for (auto& o : json.at("outputs"))
    segment->outputs.push_back({.cell = o.at("cell"), .written = o.at("written"), .order = ints_of(o.at("order")),
                                .differentiable = false, .forgets = o.at("forgets"), .complex = o.at("complex")});
  segment->draws = json.at("draws");
  segment->takes = json.at("takes").get<std::vector<int>>();
  for (auto& r : json.at("results"))
    segment->results.push_back({r.at("cell"), field_of<ViewPath>(r.at("path")), r.at("detached"), r.at("same_as")});
  for (auto& size : json.at("result_sizes")) segment->result_sizes.push_back(parse_dim(size.get<std::string>()));
  segment->result_numbers = json.at("numbers").get<std::vector<int>>();
  segment->stored = {json.at("graph"), json.at("lines").get<std::vector<std::string>>()};
  return segment;
}

std::shared_ptr<CacheEntry> entry_of(const Json& json, const Fingerprint& fingerprint, const CompileOptions& options,
                                const std::string& name, const Signature& signature, const std::vector<Word>& words,
                                const Invocation& invocation) {
  SizeTable sizes = sizes_of(json.at("sizes"), signature);
  auto entry = std::make_shared<CacheEntry>(signature, words, sizes);
  std::unordered_map<std::string, Tensor> named(fingerprint.tensors.begin(), fingerprint.tensors.end());
  auto segment = segment_of(json.at("segment"), named);
  auto result = invocation.blank_result();
  check(shape_of(result.get()) == json.at("shape").get<std::string>(), "another result");
  segment->prototype = result;
  segment->places = sizes.places();
  for (auto& [cell, source] : segment->bound)
    if (source.kind == CellSource::Kind::kCaptured) entry->guards.add_captured(source.tensor, source.name);
  for (auto& state : fingerprint.states) entry->guards.add_state(state, state->fingerprint().value_or(0));
  for (auto& written : json.at("written")) entry->written_captured.push_back(named.at(written.get<std::string>()));
  entry->writes_arguments = json.at("writes_arguments");
  entry->guards.keep_apart(entry->written_captured, entry->writes_arguments);
  SmallVector<int64_t, 8> values;
  if (!entry->guards.match(signature, invocation, values)) return nullptr;
  segment->run = load_executable(*segment, sizes, options, name + ".0");
  if (!segment->run) return nullptr;
  entry->root = segment;
  entry->segments = {segment};
  entry->is_stored = true;
  return entry;
}

}  // namespace

std::string stored_key(const Fingerprint& fingerprint, const CompileOptions& options, const Signature& signature,
                     const std::vector<Word>& words, const SizeTable& sizes, const Invocation& invocation) {
  std::vector<int> symbol(words.size(), -1);
  for (size_t place = 0; place < sizes.symbols().size(); ++place) {
    symbol[size_t(sizes.symbols()[place].word)] = int(place);
    for (int word : sizes.symbols()[place].same) symbol[size_t(word)] = int(place);
  }
  std::string arguments;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i == kTypesWord || i == kStateWord) continue;  // the fingerprint stands for them
    if (symbol[i] >= 0)
      arguments += format("s{} ", symbol[i]);
    else
      arguments += words[i].kind == Word::Kind::kNumber ? "* " : format("{} ", signature[i]);
  }
  std::string chosen;
  for (auto& s : sizes.symbols()) chosen += format("{}..{} ", s.low, s.high);
  return runtime::make_key({{"kind", "program"},
                            {"function", fingerprint.text},
                            {"arguments", runtime::text_part(arguments + chosen)},
                            {"types", runtime::text_part(invocation.type_name())},
                            {"tensors", runtime::text_part(tensors_text(fingerprint))},
                            {"freeze", format("{}", int_option(options, "freeze"))},
                            {"backend", options.backend},
                            {"skipped", skipped_passes()},
                            {"sinter", build_id()}});
}

void save_program(const std::string& key, const Fingerprint& fingerprint, const CacheEntry& entry, const Invocation& invocation,
                  const std::string& name) {
  StageTimer timer(CompileStage::kCapture);
  try {
    if (build_id().empty()) throw NotStorable{"the library has no build id"};
    if (entry.segments.size() != 1 || entry.branches || entry.follow || !entry.eager_reason.empty()) throw NotStorable{"it breaks"};
    if (entry.guards.watches_memory()) throw NotStorable{"it rests on gradients or on memory that arguments share"};
    size_t known = 0;
    for (auto& state : fingerprint.states) known += entry.guards.watches(state);
    if (known != entry.guards.state_count()) throw NotStorable{"it rests on a state that the fingerprint does not have"};
    auto& segment = *entry.root;
    auto* result = static_cast<ResultBox*>(const_cast<void*>(segment.prototype.get()));
    std::string shape = shape_of(result);
    if (shape != shape_of(invocation.blank_result().get())) throw NotStorable{"its result holds more than tensors"};
    Json written = Json::array();
    for (auto& tensor : entry.written_captured) written.push_back(name_of(tensor, "written to", fingerprint));
    Json json{{"segment", segment_json(segment, fingerprint)}, {"sizes", sizes_json(entry.sizes)}, {"shape", shape},
              {"written", written}, {"writes_arguments", entry.writes_arguments}};
    runtime::process_store().note_miss(key, name);
    runtime::process_store().save(key, json.dump(), name);
  } catch (const NotStorable& why) {
    log(LogTopic::kCache, "the program of {} is not stored: {}", name, why.reason);
  }
}

std::shared_ptr<CacheEntry> load_program(const std::string& key, const Fingerprint& fingerprint, const CompileOptions& options,
                                    const std::string& name, const Signature& signature, const std::vector<Word>& words,
                                    const Invocation& invocation) {
  StageTimer timer(CompileStage::kCapture);
  // Who looks at a capture or at the passes wants to see them.
  if (passes_are_watched() || is_debugged()) return nullptr;
  auto text = runtime::process_store().load(key);
  if (!text) return nullptr;
  try {
    return entry_of(Json::parse(*text), fingerprint, options, name, signature, words, invocation);
  } catch (const std::exception& error) {
    warn_once("stored program", "the stored program of {} is not understood and captured anew: {}", name, error.what());
    return nullptr;
  }
}

}  // namespace sinter::capture
