#include "sinter/graph/subgraph.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "sinter/graph/text_scan.h"

namespace sinter {

namespace {

thread_local std::unordered_map<std::string, SubGraph>* memo = nullptr;

// One line a node: `;` outside brackets and quotes ends one.
std::string split_lines(std::string_view text) {
  std::string out(text);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ';') out[i] = '\n';
    size_t end = i;
    if (text[i] == '"')
      end = closing_quote(text, i);
    else if (text[i] == '(' || text[i] == '[' || text[i] == '{')
      end = closing_bracket(text, i);
    check(end != std::string_view::npos, "'{}' is not closed in '{}'", text[i], text);
    i = end;
  }
  return out;
}

Type map_type(const detail::DimMap& map, Type type) {
  for (auto& d : type.shape) d = map(d);
  return type;
}

Graph map_graph(const detail::DimMap& map, const Graph& graph) {
  Graph out;
  std::vector<const Node*> copies(graph.nodes().size());
  auto values = [&](const std::vector<Value>& old) {
    std::vector<Value> now;
    for (auto& v : old) now.push_back(copies[size_t(v.node->id)]->result(v.index));
    return now;
  };
  for (auto& node : graph.nodes()) {
    std::vector<Type> types;
    for (auto& type : node.types) types.push_back(map_type(map, type));
    copies[size_t(node.id)] =
        node.op->kind == OpKind::kInput
            ? out.add_input(types[0], node.name).node
            : &out.add_typed(*node.op, values(node.inputs), node.attrs.map_dims(map), std::move(types), node.where);
  }
  out.set_outputs(values(graph.outputs()));
  return out;
}

}  // namespace

SubGraphMemo::SubGraphMemo() {
  SINTER_INTERNAL_ASSERT(!memo, "two memos on one thread");
  memo = new std::unordered_map<std::string, SubGraph>;
}
SubGraphMemo::~SubGraphMemo() { delete std::exchange(memo, nullptr); }

bool SubGraph::operator==(const SubGraph& other) const {
  if (shared_ == other.shared_) return true;
  return shared_ && other.shared_ && (*this)->hash() == other->hash() && line() == other.line();
}

const std::string& SubGraph::line() const {
  std::call_once(shared_->once, [this] {
    std::string text = shared_->graph.text(), &out = shared_->line;
    out.reserve(text.size() + shared_->graph.nodes().size() + 2);
    out += '{';
    for (char c : text) c == '\n' ? out += "; " : out += c;
    out.resize(out.size() - 2);  // of the last line
    out += '}';
  });
  return shared_->line;
}

std::string field_text(const SubGraph& v) { return v ? v.line() : "none"; }

void parse_field(std::string_view text, SubGraph& out) {
  if (text == "none") {
    out = {};
    return;
  }
  if (memo)
    if (auto known = memo->find(std::string(text)); known != memo->end()) {
      out = known->second;
      return;
    }
  check(text.size() >= 2 && text[0] == '{' && closing_bracket(text, 0) == text.size() - 1,
        "'{}' is not a graph: write one like {%0 = input : f32[2]; return %0}", text);
  out = SubGraph(Graph::parse(split_lines(text.substr(1, text.size() - 2))));
  if (memo) memo->emplace(text, out);
}

void map_field(const detail::DimMap& map, SubGraph& field) {
  if (field) field = SubGraph(map_graph(map, *field));
}

}  // namespace sinter
