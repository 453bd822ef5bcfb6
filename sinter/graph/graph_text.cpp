#include <charconv>

#include "sinter/graph/graph.h"
#include "sinter/graph/text_scan.h"
#include "sinter/graph/verify.h"

namespace sinter {

namespace {

void append_number(std::string& out, int64_t number) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
}

void append_value(std::string& out, Value v) {
  out += '%';
  append_number(out, v.node->id);
  if (v.node->types.size() < 2) return;
  out += '.';
  append_number(out, v.index);
}

void append_values(std::string& out, const std::vector<Value>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) out += ", ";
    append_value(out, values[i]);
  }
}

void append_types(std::string& out, const std::vector<Type>& types) {
  if (types.size() != 1) out += '(';
  for (size_t i = 0; i < types.size(); ++i) {
    if (i) out += ", ";
    out += to_string(types[i]);
  }
  if (types.size() != 1) out += ')';
}

void append_marks(std::string& out, const Marks& marks) {
  if (marks == Marks()) return;
  out += " <phase ";
  append_number(out, marks.phase);
  if (marks.again) out += ", again";
  auto append = [&](std::string_view name, int number) {
    if (number == 0) return;
    out += name;
    append_number(out, number);
  };
  append(", region ", marks.region);
  append(", piece ", marks.piece);
  out += '>';
}

bool has_no_operands(const Op& op) { return op.kind == OpKind::kInput || op.kind == OpKind::kScalar; }

void append_node(std::string& out, const Node& node, bool positions) {
  out += '%';
  append_number(out, node.id);
  out += " = ";
  out += node.op->name;
  if (!has_no_operands(*node.op)) {
    out += '(';
    append_values(out, node.inputs);
    out += ')';
  }
  if (std::string attrs = node.attrs.text(); !attrs.empty()) {
    out += " {";
    out += attrs;
    out += '}';
  }
  out += " : ";
  append_types(out, node.types);
  append_marks(out, node.marks);
  if (!node.name.empty()) out += " " + quote(node.name);
  if (positions && !node.where.empty()) {
    out += "  // ";
    out += node.where;
  }
}

// Reads one graph. Values are named by the numbers the text gives them, which need not be positions.
class GraphParser {
 public:
  explicit GraphParser(const Op* (*find)(std::string_view)) : find_(find) {}

  Graph parse(std::string_view text) {
    int number = 0;
    while (!text.empty()) {
      ++number;
      size_t end = text.find('\n');
      std::string_view line = trim(text.substr(0, end));
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
      if (line.empty() || line.starts_with("//")) continue;
      try {
        check(!returned_, "a line follows 'return'");
        parse_line(line);
      } catch (const Error& error) {
        throw_error(format("graph text, line {}: {}\n  {}", number, error.message(), line.substr(0, 200)));
      }
    }
    check(returned_, "graph text: the 'return' line is missing");
    return std::move(graph_);
  }

 private:
  void parse_line(std::string_view line) {
    rest_ = line;
    where_ = take_comment();
    if (rest_ == "return" || rest_.starts_with("return ")) {
      graph_.set_outputs(parse_values(rest_.substr(6)));
      returned_ = true;
      return;
    }
    size_t equals = rest_.find(" = ");
    check(equals != std::string_view::npos, "expected '%0 = op(…) : type' or 'return …'");
    int id = parse_id(trim(rest_.substr(0, equals)));
    check(!values_.contains(id), "%{} is defined twice", id);
    rest_ = trim(rest_.substr(equals + 3));
    values_[id] = parse_node();
    check(rest_.empty(), "'{}' is not understood", rest_);
  }

  // The position after `//` outside quotes.
  std::string take_comment() {
    for (size_t i = 0; i + 1 < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        i = closing_quote(rest_, i);
        check(i != std::string_view::npos, "a quote is not closed");
      } else if (rest_[i] == '/' && rest_[i + 1] == '/') {
        std::string comment(trim(rest_.substr(i + 2)));
        rest_ = trim(rest_.substr(0, i));
        return comment;
      }
    }
    return {};
  }

  // The inside of the bracket that `rest_` starts with, or nothing.
  std::optional<std::string_view> take_bracket(char open) {
    if (rest_.empty() || rest_[0] != open) return std::nullopt;
    size_t close = closing_bracket(rest_, 0);
    check(close != std::string_view::npos, "'{}' is not closed", open);
    std::string_view inside = rest_.substr(1, close - 1);
    rest_ = trim(rest_.substr(close + 1));
    return inside;
  }

  // "tanh", "mylib::swish".
  std::string_view take_name() {
    size_t end = rest_.find_first_of(" ({:");
    while (end < rest_.size() && rest_.substr(end).starts_with("::")) end = rest_.find_first_of(" ({:", end + 2);
    std::string_view name = rest_.substr(0, end);
    rest_ = trim(rest_.substr(std::min(end, rest_.size())));
    return name;
  }

  const Node* parse_node() {
    std::string_view name = take_name();
    const Op* op = name == kInputOp.name ? &kInputOp : name == kScalarOp.name ? &kScalarOp : find_(name);
    std::string_view reason = op ? std::string_view() : unavailable_reason(name);
    check(reason.empty(), "the op '{}' of Core ATen is not available: {}", name, reason);
    check(op != nullptr, "no op is called '{}'", name);
    std::vector<Value> inputs;
    if (auto operands = take_bracket('(')) inputs = parse_values(*operands);
    check(op->inputs < 0 || size_t(op->inputs) == inputs.size(), "{}: takes {} operands, not {}", name, op->inputs,
          inputs.size());
    Attrs attrs = op->parse(split_fields(take_bracket('{').value_or("")));
    check(rest_.starts_with(":"), "the type is missing: expected ' : f32[…]'");
    rest_ = trim(rest_.substr(1));
    auto types = parse_types();
    if (op->kind == OpKind::kInput) {
      check(types.size() == 1, "an input has one type");
      std::string label;
      if (!rest_.empty()) label = unquote(std::exchange(rest_, {}));
      return graph_.add_input(types[0], label).node;
    }
    check_fits(*op, infer_types(*op, types_of(inputs), attrs), types);
    graph_.set_marks(parse_marks());
    return &graph_.add_typed(*op, std::move(inputs), attrs, std::move(types), where_);
  }

  // Up to the quoted name, if one follows.
  std::vector<Type> parse_types() {
    if (auto list = take_bracket('(')) {
      std::vector<Type> types;
      for (auto item : split_list(*list)) types.push_back(parse_type(item));
      return types;
    }
    size_t end = std::min(rest_.find_first_of("\"<"), rest_.size());
    Type type = parse_type(rest_.substr(0, end));
    rest_ = rest_.substr(end);
    return {type};
  }

  // "<phase 1, again>".
  Marks parse_marks() {
    Marks marks;
    if (!rest_.starts_with("<")) return marks;
    size_t close = rest_.find('>');
    check(close != std::string_view::npos, "'<' is not closed");
    std::string_view words = rest_.substr(1, close - 1);
    rest_ = trim(rest_.substr(close + 1));
    for (auto word : split_list(words)) {
      if (word == "again") {
        marks.again = true;
        continue;
      }
      size_t space = std::min(word.find(' '), word.size());
      std::string_view name = word.substr(0, space);
      int* mark = name == "phase" ? &marks.phase : name == "region" ? &marks.region : name == "piece" ? &marks.piece : nullptr;
      check(mark, "'{}' is no mark: there are phase, again, region and piece", word);
      int64_t number = 0;
      parse_field(trim(word.substr(space)), number);
      *mark = int(number);
    }
    return marks;
  }

  static int parse_id(std::string_view text) {
    int id = -1;
    bool fine = text.starts_with("%");
    if (fine) {
      auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), id);
      fine = error == std::errc() && end == text.data() + text.size() && id >= 0;
    }
    check(fine, "'{}' is not a value: write one like %3", text);
    return id;
  }

  std::vector<Value> parse_values(std::string_view text) {
    std::vector<Value> out;
    for (auto item : split_list(text)) {
      size_t dot = std::min(item.find('.'), item.size());
      int id = parse_id(item.substr(0, dot));
      auto it = values_.find(id);
      check(it != values_.end(), "%{} is not defined before", id);
      int64_t index = 0;
      if (dot < item.size()) parse_field(item.substr(dot + 1), index);
      check(index >= 0 && size_t(index) < it->second->types.size(), "%{} has no result {}", id, index);
      out.push_back(it->second->result(int(index)));
    }
    return out;
  }

  const Op* (*find_)(std::string_view);
  Graph graph_;
  std::unordered_map<int, const Node*> values_;
  std::string_view rest_;  // of the line being read
  std::string where_;
  bool returned_ = false;
};

}  // namespace

std::string Graph::text(bool positions) const {
  std::string out;
  out.reserve(64 * nodes_.size());
  for (auto& node : nodes_) {
    append_node(out, node, positions);
    out += '\n';
  }
  out += outputs_.empty() ? "return" : "return ";
  append_values(out, outputs_);
  out += '\n';
  return out;
}

Graph Graph::parse(std::string_view text, const Op* (*find)(std::string_view)) { return GraphParser(find).parse(text); }

}  // namespace sinter
