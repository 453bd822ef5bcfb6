#include "sinter/passes/stream_rows.h"

#include <algorithm>
#include <map>

#include "sinter/base/error.h"
#include "sinter/graph/extract.h"
#include "sinter/graph/nodes.h"
#include "sinter/graph/rewrite.h"
#include "sinter/ops/attributes.h"
#include "sinter/ops/fused.h"
#include "sinter/ops/known_ops.h"
#include "sinter/passes/keep.h"
#include "sinter/passes/row_axes.h"

namespace sinter {

namespace {

// Pieces are multiples of so many rows, which products like.
constexpr int64_t kRowUnit = 64;

bool is_known(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](auto& d) { return d.is_number(); });
}

bool is_large_product(const Node& node, const StreamOptions& options) {
  if (node.op != &known_ops().mm || node.marks.piece != 0 || !is_known(node.types[0].shape)) return false;
  return node.types[0].shape.numel().number() * item_size(node.types[0].dtype) >= options.least_bytes;
}

// What is computed piece by piece.
struct Member {
  const Node* node;
  int axis;          // the dimension of rows in its result; kWhole: a sum over rows
  RowAxes operands;  // theirs
};

class Region {
 public:
  Region(const Graph& graph, const Node& product) : graph_(graph), product_(product), axes_(graph.nodes().size(), kOutside) {}

  // The members in order; empty where the product, or something of its size, is needed whole.
  std::vector<Member> find() {
    auto rows = rows_of_result(product_, 0);
    if (!rows) return {};
    add({&product_, 0, *rows});
    for (auto& node : graph_.nodes())
      if (node.id > product_.id && std::ranges::any_of(node.inputs, [&](auto& v) { return is_inside(v); })) classify(node);
    drop_useless();
    take_in();
    return is_closed() ? std::move(members_) : std::vector<Member>();
  }

 private:
  static constexpr int kOutside = -2;

  bool is_inside(Value v) const { return axes_[size_t(v.node->id)] >= 0; }
  const Dim& rows() const { return product_.types[0].shape[0]; }
  bool is_large(const Node& node) const {
    return node.types[0].shape.numel().number() * 2 >= product_.types[0].shape.numel().number();
  }
  void add(Member member) {
    axes_[size_t(member.node->id)] = member.axis;
    members_.push_back(std::move(member));
  }

  bool agrees(const Node& node, const RowAxes& operands) const {
    for (size_t i = 0; i < operands.size(); ++i)
      if (is_inside(node.inputs[i]) && operands[i] != axes_[size_t(node.inputs[i].node->id)]) return false;
    return true;
  }

  void classify(const Node& node) {
    if (!std::ranges::all_of(node.types, [](auto& type) { return is_known(type.shape); })) return;
    const Shape& shape = node.types[0].shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (!shape[axis].same_as(rows())) continue;
      if (auto operands = rows_of_result(node, int(axis)); operands && agrees(node, *operands))
        return add({&node, int(axis), *operands});
    }
    for (auto& operands : rows_summed(node))
      if (agrees(node, operands)) return add({&node, kWhole, operands});
  }

  // What reads nothing large, and leads to nothing that does, can as well read whole results.
  void drop_useless() {
    std::vector<bool> keeps(graph_.nodes().size(), false);
    std::vector<Member> kept;
    for (auto it = members_.rbegin(); it != members_.rend(); ++it) {
      const Node& node = *it->node;
      auto reads_large = [&](Value v) { return is_inside(v) && is_large(*v.node); };
      const bool wanted = keeps[size_t(node.id)] || &node == &product_ || (it->axis >= 0 && is_large(node)) ||
                          std::ranges::any_of(node.inputs, reads_large);
      if (!wanted) {
        axes_[size_t(node.id)] = kOutside;
        continue;
      }
      for (auto& v : node.inputs)
        if (is_inside(v)) keeps[size_t(v.node->id)] = true;
      kept.push_back(std::move(*it));
    }
    std::reverse(kept.begin(), kept.end());
    members_ = std::move(kept);
  }

  // Large values that are made for members alone, and not from them, are made in pieces too, and what comes of these.
  void take_in() {
    std::vector<std::optional<int>> wanted(graph_.nodes().size());  // by node: the dimension of rows that all readers want
    std::vector<bool> elsewhere(graph_.nodes().size(), false);
    for (auto& v : graph_.outputs()) elsewhere[size_t(v.node->id)] = true;
    std::map<const Node*, Member> members;
    for (auto& m : members_) members.emplace(m.node, m);
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it) {
      const size_t id = size_t(it->id);
      if (!members.contains(&*it) && wanted[id] && !elsewhere[id] && may_take_in(*it)) {
        if (auto rows = rows_of_result(*it, *wanted[id])) {
          members.emplace(&*it, Member{&*it, *wanted[id], *rows});
          axes_[id] = *wanted[id];
        }
      }
      auto member = members.find(&*it);
      for (size_t i = 0; i < it->inputs.size(); ++i) {
        const size_t from = size_t(it->inputs[i].node->id);
        const int axis = member == members.end() ? kWhole : member->second.operands[i];
        if (axis == kWhole || (wanted[from] && *wanted[from] != axis)) elsewhere[from] = true;
        wanted[from] = axis;
      }
    }
    members_.clear();
    for (auto& node : graph_.nodes())
      if (auto member = members.find(&node); member != members.end()) members_.push_back(member->second);
  }

  bool may_take_in(const Node& node) const {
    auto is_computed = [&](const Node& from) {
      return from.op->kind != OpKind::kInput && from.types.size() == 1 && is_known(from.types[0].shape);
    };
    if (!is_computed(node) || node.op == &known_ops().mm) return false;
    auto is_large_one = [&](Value v) { return is_computed(*v.node) && is_large(*v.node); };
    return is_large(node) || std::ranges::any_of(node.inputs, is_large_one);
  }

  bool is_closed() const {
    std::vector<bool> member(graph_.nodes().size(), false);
    std::vector<Value> results;
    for (auto& m : members_) {
      member[size_t(m.node->id)] = true;
      results.push_back(m.node->result());
    }
    auto is_needed_whole = [&](Value v) { return is_inside(v) && is_large(*v.node); };
    if (std::ranges::any_of(graph_.outputs(), is_needed_whole)) return false;
    auto behind = descendants(graph_, results);
    for (auto& node : graph_.nodes())
      for (auto& v : node.inputs) {
        const bool inside = member[size_t(node.id)];
        if (!inside && is_needed_whole(v)) return false;
        // A piece would wait for all pieces.
        if (inside && !is_inside(v) && behind[size_t(v.node->id)]) return false;
      }
    return true;
  }

  const Graph& graph_;
  const Node& product_;
  std::vector<int> axes_;  // by node: the dimension of rows in its result, kWhole for sums, kOutside
  std::vector<Member> members_;
};

class Streamer {
 public:
  Streamer(const Graph& graph, const std::vector<Member>& members, int64_t rows, int64_t piece)
      : graph_(graph), members_(members), rows_(rows), piece_(piece), out_(begin_copy(graph)) {
    for (size_t m = 0; m < members.size(); ++m) member_at_[members[m].node] = m;
  }

  // Whether ops give what is expected of fewer rows: some hold sizes that nobody here knows of.
  bool fits() const {
    std::map<const Node*, Type> types;
    for (auto& m : members_) {
      std::vector<Type> inputs;
      for (size_t i = 0; i < m.operands.size(); ++i) {
        Value v = m.node->inputs[i];
        inputs.push_back(is_member(v) ? types.at(v.node) : resized(v.type(), m.operands[i], kRowUnit));
      }
      const Type expected = resized(m.node->types[0], m.axis, kRowUnit);
      try {
        auto inferred = infer_types(*m.node->op, inputs, resized_attrs(*m.node, m.axis, kRowUnit));
        if (!(inferred[0] == expected)) return false;
      } catch (const Error&) {
        return false;
      }
      types.emplace(m.node, expected);
    }
    return true;
  }

  Graph run() {
    bool streamed = false;
    for (auto& node : graph_.nodes()) {
      if (!member_at_.contains(&node)) {
        if (!is_free(node) || node.op->kind == OpKind::kView) out_(node.result());
      } else if (!std::exchange(streamed, true)) {
        stream();
      }
    }
    Graph made = out_.finish(graph_.outputs());
    return drop_dead_nodes(made);
  }

 private:
  bool is_member(Value v) const { return member_at_.contains(v.node); }

  static Type resized(Type type, int axis, int64_t rows) {
    if (axis >= 0) type.shape[size_t(axis)] = rows;
    return type;
  }
  static Attrs resized_attrs(const Node& node, int axis, int64_t rows) {
    auto& ops = known_ops();
    const Shape shape = resized(node.types[0], axis, rows).shape;
    if (node.op == &ops.view) return ViewAttrs{shape};
    if (node.op == &ops.expand) return ExpandAttrs{shape};
    if (node.op == &ops.full) {
      auto attrs = node.attrs.as<CreationAttrs>();
      attrs.size = shape;
      return attrs;
    }
    return node.attrs;
  }

  void stream() {
    for (auto& m : members_)
      for (auto& v : m.node->inputs)
        if (!is_member(v)) out_(v);
    std::vector<std::vector<Value>> pieces(members_.size());
    for (begin_ = 0; begin_ < rows_; begin_ += piece_) {
      end_ = std::min(begin_ + piece_, rows_);
      for (size_t m = 0; m < members_.size(); ++m) {
        Value made = copy(members_[m], pieces);
        if (members_[m].axis == kWhole && !pieces[m].empty())
          pieces[m] = {out_.graph().add(known_ops().add, {pieces[m][0], made}, {}, members_[m].node->where).result()};
        else
          pieces[m].push_back(made);
      }
    }
    for (size_t m = 0; m < members_.size(); ++m) out_.set(members_[m].node->result(), joined(members_[m], pieces[m]));
  }

  Value copy(const Member& m, const std::vector<std::vector<Value>>& pieces) {
    const Node& node = *m.node;
    std::vector<Value> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Value v = node.inputs[i];
      inputs.push_back(is_member(v) ? pieces[member_at_.at(v.node)].back() : piece_of(v, m.operands[i]));
    }
    Graph& graph = out_.graph();
    Marks marks = node.marks;
    marks.piece = 1 + int(begin_ / piece_);
    graph.set_marks(marks);
    Value made = graph.add(*node.op, inputs, resized_attrs(node, m.axis, end_ - begin_), node.where).result();
    return m.axis == kWhole && rounds_when_stored(made.type().dtype) ? cast(made, kFloat32) : made;
  }

  // The rows of this piece of a value from outside.
  Value piece_of(Value v, int axis) {
    if (axis == kWhole) return out_(v);
    Graph& graph = out_.graph();
    Value whole = out_(v);
    graph.set_marks(v.node->marks);
    return graph.add(known_ops().slice, {whole}, SliceAttrs{axis, begin_, Dim(end_), 1}, v.node->where).result();
  }

  Value joined(const Member& m, const std::vector<Value>& pieces) {
    const Node& node = *m.node;
    out_.graph().set_marks(node.marks);
    if (m.axis == kWhole) return pieces[0].type().dtype == node.types[0].dtype ? pieces[0] : cast(pieces[0], node.types[0].dtype);
    Attrs along = known_ops().cat.parse({{"dim", std::to_string(m.axis)}});
    return out_.graph().add(known_ops().cat, pieces, along, node.where).result();
  }

  Value cast(Value v, DType dtype) {
    const Op& op = known_ops().cast;
    return out_.graph().add(op, {v}, op.parse({{"dtype", to_string(dtype)}}), v.node->where).result();
  }

  const Graph& graph_;
  const std::vector<Member>& members_;
  const int64_t rows_, piece_;
  int64_t begin_ = 0, end_ = 0;  // of the piece under way
  Extraction out_;
  std::map<const Node*, size_t> member_at_;
};

std::optional<Graph> stream_one(const Graph& graph, const StreamOptions& options) {
  for (auto& node : graph.nodes()) {
    if (!is_large_product(node, options)) continue;
    const int64_t rows = node.types[0].shape[0].number();
    const int64_t bytes = node.types[0].shape.numel().number() * item_size(node.types[0].dtype);
    const int64_t pieces = std::min(options.most_pieces, bytes / options.piece_bytes);
    const int64_t units = (rows + pieces * kRowUnit - 1) / (pieces * kRowUnit);
    if (pieces < 2 || units * kRowUnit >= rows) continue;
    auto members = Region(graph, node).find();
    if (members.empty()) continue;
    Streamer streamer(graph, members, rows, units * kRowUnit);
    if (streamer.fits()) return streamer.run();
  }
  return std::nullopt;
}

}  // namespace

bool has_large_products(const Graph& graph, const StreamOptions& options) {
  return std::ranges::any_of(graph.nodes(), [&](auto& node) { return is_large_product(node, options); });
}

Graph stream_rows(const Graph& graph, const StreamOptions& options) {
  Graph out = drop_dead_nodes(graph);
  while (auto less = stream_one(out, options)) out = std::move(*less);
  return out;
}

}  // namespace sinter
