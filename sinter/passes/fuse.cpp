#include "sinter/passes/fuse.h"

#include <algorithm>
#include <map>
#include <set>

#include "sinter/base/error.h"
#include "sinter/graph/verify.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/fused.h"
#include "sinter/passes/fuse_groups.h"
#include "sinter/passes/target_kernels.h"
#include "sinter/ops/known_ops.h"

namespace sinter {

namespace {

class Fuser : Groups {
 public:
  Fuser(const Graph& graph, const FuseOptions& options)
      : Groups(graph, options), options_(options), only_reduced_(graph.nodes().size(), true) {
    for (auto& node : graph.nodes())
      if (node.op->kind != OpKind::kView && node.op->kind != OpKind::kReduce)
        for (auto& v : node.inputs) only_reduced_[size_t(source(v.node)->id)] = false;
    for (auto& v : graph.outputs()) only_reduced_[size_t(source(v.node)->id)] = false;
  }

  Graph run() {
    for (auto& node : graph_.nodes()) visit(node);
    if (options_.siblings) merge_siblings();
    return rebuild();
  }

 private:
  // --- who works with whom

  void visit(const Node& node) {
    if (inlining_.inlined(node)) return;
    if (is_sink(node, options_) && has_inlined(node)) return join(node, domain_of(node), 0);
    switch (node.op->kind) {
      case OpKind::kInput:
      case OpKind::kScalar:
      case OpKind::kView: return;
      case OpKind::kPointwise:
        if (node.op->random || (node.types[0].rank() == 0 && !follows_whole_reduction(node))) break;
        return join(node, node.types[0].shape, 0);
      case OpKind::kReduce:
        if (is_row_reduction(node, options_)) return join(node, node.inputs[0].type().shape, reduced_tail(node));
        break;
      default:
        if (is_map(node) && joins_by_map(node)) return join(node, node.types[0].shape, 0);
        if (scattered_operand(node)) return join(node, domain_of(node), 0);
        if (is_attention(*node.op) && takes_whole(options_.target, OpCall{*node.op, types_of(node.inputs), node.attrs}))
          return stand_alone(node);
        if (!takes_contraction(options_.target, node)) break;
        return begin_with(node);
    }
    if (!node.inputs.empty()) order_[size_t(node.id)] = ++orders_;  // what reads nothing is there from the beginning
    note_readings(node);
  }

  // A number made of what a group reduces everything to: the end of a mean, of a loss.
  bool follows_whole_reduction(const Node& node) const {
    int latest = 0;
    for (auto& v : inlining_.operands(node)) latest = std::max(latest, order_of(v.node));
    for (auto& v : inlining_.operands(node))
      if (auto* g = group_of_[size_t(source(v.node)->id)]; g && g->order == latest && g->inner == g->domain.size())
        return g->inner > 0 && fits(*g, node, node.types[0].shape, 0);
    return false;
  }

  Group& begin_group(const Node& first) {
    Group& group = groups_.emplace_back();
    group.order = ++orders_;
    group.phase = first.marks.phase;
    group.piece = first.marks.piece;
    return group;
  }

  // What is computed for gradients waits until these flow: from an earlier kernel on it would have to be kept. So does what an
  // optimiser makes of them, which takes the place of what it was before; and so does the next piece of rows.
  static bool comes_later(const Node& node, const Group& group) {
    return node.marks.phase > group.phase || node.marks.piece != group.piece;
  }

  void stand_alone(const Node& node) {
    Group& group = begin_group(node);
    group.domain = node.types[0].shape;
    group.closed = group.alone = true;
    group.members.push_back(&node);
    group_of_[size_t(node.id)] = &group;
    note_readings(node);
  }

  void begin_with(const Node& contraction) {
    Group* group = siblings_of(contraction);
    if (!group) {
      group = &begin_group(contraction);
      group->domain = contraction.types[0].shape;
      by_left_operand_[{contraction.inputs[0].node, contraction.inputs[0].index}] = group;
    }
    bool alike = contraction.types[0].shape.same_as(group->domain) ||
                 (!group->products.empty() && contraction.types[0].shape.same_as(group->products[0].node->types[0].shape));
    product_of_[size_t(contraction.id)] = int(group->products.size());
    group->products.push_back({&contraction, alike ? group->domain : contraction.types[0].shape});
    group->members.push_back(&contraction);
    group_of_[size_t(contraction.id)] = group;
    note_readings(contraction);
  }

  // A group of products with the same left operand that this one can still run with; convolutions run alone.
  Group* siblings_of(const Node& contraction) const {
    if (contraction.op == &convolution_op()) return nullptr;
    auto it = by_left_operand_.find({contraction.inputs[0].node, contraction.inputs[0].index});
    if (it == by_left_operand_.end() || it->second->products.size() >= options_.most_products) return nullptr;
    Group& group = *it->second;
    if (comes_later(contraction, group)) return nullptr;
    const Node& first = *group.products[0].node;
    for (auto& v : inlining_.operands(contraction))
      if (order_of(v.node) >= group.order) return nullptr;
    // Encoded weights are read in a way of their own.
    if (inlining_.transparent(*contraction.inputs[1].node) != inlining_.transparent(*first.inputs[1].node)) return nullptr;
    if (first.op != contraction.op || !(first.attrs == contraction.attrs)) return nullptr;
    if (first.types[0].dtype != contraction.types[0].dtype || operands_with(group, contraction) > options_.most_operands)
      return nullptr;
    if (first.types[0].shape.same_as(contraction.types[0].shape)) return &group;
    // Apart from now on: every member must follow from one product.
    for (auto* member : group.members)
      if (product_of_[size_t(member->id)] < 0) return nullptr;
    return &group;
  }

  // Which product the values come from that a node reads of the group.
  int product_read(const Group& group, const Node& node) const {
    int read = kNoProduct;
    for (auto& v : inlining_.operands(node)) {
      const Node* from = source(v.node);
      if (group_of_[size_t(from->id)] != &group) continue;
      int product = product_of_[size_t(from->id)];
      if (product != kNoProduct) read = read == kNoProduct || read == product ? product : kSeveral;
    }
    return read;
  }

  // The domain of the members that work on this product.
  static Shape& domain_of_product(Group& group, int product) {
    return group.apart() ? group.products[size_t(product)].domain : group.domain;
  }

  // The first reader of a product decides how rows are counted.
  void count_rows(Group& group, int product, const Shape& domain) {
    bool read_before = false;
    for (auto* member : group.members)
      if (!product_in(group, member) && (!group.apart() || product_of_[size_t(member->id)] == product)) read_before = true;
    const Node& node = *group.products[size_t(product)].node;
    if (read_before || !keeps_columns(node, domain_of_product(group, product), domain)) return;
    for (auto& p : group.products)
      if (!group.apart() || p.node == group.products[size_t(product)].node) p.domain = domain;
    if (!group.apart()) group.domain = domain;
  }

  // The result of a product may be looked at with its rows split or joined: columns stay. A convolution's is planes.
  static bool keeps_columns(const Node& contraction, const Shape& a, const Shape& b) {
    if (contraction.op == &convolution_op()) return a.same_as(b);
    return a.size() >= 1 && b.size() >= 1 && a[a.size() - 1].same_as(b[b.size() - 1]) && a.numel().same_as(b.numel());
  }

  // A copy belongs to a kernel where that keeps to its lanes.
  bool joins_by_map(const Node& node) const {
    for (auto& v : node.inputs)
      if (inlining_.transparent(*v.node)) return true;
    auto found = inlining_.readings(node);
    return found.bounded && (found.in_lanes || found.pairs);
  }

  void note_readings(const Node& node) {
    for (auto& v : inlining_.operands(node))
      if (auto* group = group_of_[size_t(source(v.node)->id)]; group && group != group_of_[size_t(node.id)])
        group->readers.push_back(&node);
  }

  void join(const Node& node, const Shape& domain, size_t tail) {
    int latest = 0;
    for (auto& v : inlining_.operands(node)) latest = std::max(latest, order_of(v.node));
    Group* group = nullptr;
    for (auto& v : inlining_.operands(node))
      if (auto* g = group_of_[size_t(source(v.node)->id)]; g && g->order == latest) group = g;
    int product = group ? product_read(*group, node) : kNoProduct;
    const bool counts = product >= 0 || (product == kSeveral && !group->apart());
    if (counts && is_finished_by(*group, node)) count_rows(*group, std::max(product, 0), domain);
    if (group && fits(*group, node, domain, tail)) {
      if (tail) group->inner = tail;
      product_of_[size_t(node.id)] = product;
      group->reads_several = group->reads_several || product == kSeveral;
    } else {
      group = &begin_group(node);
      group->domain = domain;
      group->inner = tail;
    }
    group->closed = is_sink(node, options_);
    group->pairs = group->pairs || needs_pairs(node);
    group->members.push_back(&node);
    group_of_[size_t(node.id)] = group;
    note_readings(node);
    // Earlier groups that it reads come along where nothing in between waits for them.
    for (auto& v : inlining_.operands(node))
      if (auto* other = group_of_[size_t(source(v.node)->id)]; other && other != group) try_merge(*other, *group);
  }

  bool waits_between(const Group& earlier, const Group& later) const {
    for (auto* reader : earlier.readers)
      if (group_of_[size_t(reader->id)] != &earlier && order_of(reader) < later.order) return true;
    return false;
  }

  // Moves the members of an earlier group into a later one, if what they compute and read still is in its place.
  bool try_merge(Group& earlier, Group& later) {
    bool alike = earlier.domain.same_as(later.domain) && (!earlier.inner || !later.inner || earlier.inner == later.inner);
    if (!earlier.products.empty()) alike = false;
    for (auto* member : earlier.members) alike = alike && is_finished_by(later, *member);
    if (!later.products.empty() && (earlier.inner || earlier.pairs || later.apart())) alike = false;
    if ((earlier.pairs && later.inner) || (later.pairs && earlier.inner)) alike = false;
    if (earlier.closed || later.closed) alike = false;
    if (earlier.piece != 0 && earlier.piece != later.piece) alike = false;  // it would wait for the next
    if (!alike || earlier.order > later.order || waits_between(earlier, later)) return false;
    if (earlier.members.size() + later.members.size() > options_.most_members) return false;
    for (auto* member : earlier.members) group_of_[size_t(member->id)] = &later;
    size_t inner_before = std::exchange(later.inner, std::max(later.inner, earlier.inner));
    size_t count = later.members.size();
    later.members.insert(later.members.begin(), earlier.members.begin(), earlier.members.end());
    bool fine = operands_with(later, *later.members.front()) <= options_.most_operands;
    for (auto* member : later.members) {
      if (!product_in(later, member)) fine = fine && reads_well(later, *member, domain_of(*member));
      for (auto& v : member->inputs)
        fine = fine && (!product_in(later, member) || group_of_[size_t(source(v.node)->id)] != &later);
    }
    if (fine) {
      // Operands before results.
      std::sort(later.members.begin(), later.members.end(), [](auto* a, auto* b) { return a->id < b->id; });
      later.readers.insert(later.readers.end(), earlier.readers.begin(), earlier.readers.end());
      later.pairs = later.pairs || earlier.pairs;
      earlier.members.clear();
      return true;
    }
    later.members.erase(later.members.begin(), later.members.end() - int64_t(count));
    for (auto* member : earlier.members) group_of_[size_t(member->id)] = &earlier;
    later.inner = inner_before;
    return false;
  }

  // Groups that read the same values over the same domain read them once.
  void merge_siblings() {
    // By what they read, or by the group that makes it, in their order.
    std::map<std::pair<int, int>, std::vector<Group*>> readers;
    for (auto& group : groups_)
      for (auto* member : group.members)
        for (auto& v : inlining_.operands(*member)) {
          if (v.type().rank() == 0 || group.alone) continue;
          const Node* from = source(v.node);
          const Group* made_by = group_of_[size_t(from->id)];
          auto& list = readers[made_by && made_by != &group ? std::pair(made_by->order, -1) : std::pair(-1, from->id)];
          if (list.empty() || list.back() != &group) list.push_back(&group);
        }
    for (auto& [read, list] : readers) merge_neighbours(list);
    // A launch costs more than a small kernel.
    std::map<std::string, std::vector<Group*>> small;
    for (auto& group : groups_)
      if (Dim numel = group.domain.numel(); numel.is_number() && numel.number() <= options_.small)
        if (!group.members.empty() && !group.alone) small[to_string(group.domain)].push_back(&group);
    for (auto& [domain, list] : small) merge_neighbours(list);
  }

  void merge_neighbours(const std::vector<Group*>& list) {
    for (size_t i = 0; i + 1 < list.size(); ++i)
      if (!list[i]->members.empty() && !list[i + 1]->members.empty()) try_merge(*list[i], *list[i + 1]);
  }

  bool fits(const Group& group, const Node& node, const Shape& domain, size_t tail) const {
    if (group.closed || is_sink(node, options_) || comes_later(node, group)) return false;
    if (group.members.size() >= options_.most_members || operands_with(group, node) > options_.most_operands) return false;
    if (!group.products.empty() && group.apart()) {
      int product = product_read(group, node);
      if (tail || product < 0 || !domain.same_as(group.products[size_t(product)].domain)) return false;
    } else if (tail) {
      if (!group.products.empty() || !domain.same_as(group.domain) || (group.inner && group.inner != tail)) return false;
    } else if (!domain.same_as(group.domain) && !is_row_shape(group, domain)) {
      return false;
    }
    // A scatter puts each element of the domain in its place: what a row came to is not one.
    if (node.op->kind == OpKind::kScatter && !domain.same_as(group.domain)) return false;
    // A sum of squares squares what it reads: products store what the squares are of, which others read as well.
    if (!group.products.empty() && (node.op->kind == OpKind::kScatter || only_reduced_[size_t(node.id)])) return false;
    if (!is_finished_by(group, node)) return false;
    if (needs_pairs(node) && (group.inner || !group.products.empty())) return false;
    if (group.pairs && tail) return false;
    return reads_well(group, node, domain);
  }

  bool is_finished_by(const Group& group, const Node& node) const {
    return std::all_of(group.products.begin(), group.products.end(),
                       [&](auto& product) { return finishes(options_.target, *product.node, node); });
  }

  bool needs_pairs(const Node& node) const {
    return inlining_.reads_by_map(node) && inlining_.readings(node).pairs;
  }

  // What is inlined into a member reads the group itself only at the element, or the row, that is being computed.
  bool reads_well(const Group& group, const Node& node, const Shape& domain) const {
    auto scattered = scattered_operand(node);
    for (size_t i = 0; scattered && i < node.inputs.size(); ++i)
      if (i != *scattered && group_of_[size_t(source(node.inputs[i].node)->id)] == &group) return false;
    for (auto& v : node.inputs)
      if (!inlining_.transparent(*v.node) && !is_map(node) && !reads_well(group, v, domain)) return false;
    if (!inlining_.reads_by_map(node)) return true;
    size_t rows = group.domain.size() - group.inner;
    for (auto& reading : inlining_.readings(node, false).all) {
      if (group_of_[size_t(reading.root->id)] != &group) continue;
      if (group.apart() || reading.root->op->kind == OpKind::kScatter) return false;
      auto& shape = reading.root->types[0].shape;
      bool whole = shape.same_as(group.domain) && reading.root->op->kind != OpKind::kReduce;
      if (product_in(group, reading.root) || (!whole && shape.size() < rows)) return false;
      for (size_t d = 0; d < (whole ? shape.size() : rows); ++d)
        if (!reading.at[d].same_as(shape[d].same_as(1) ? Dim(0) : Dim::symbol("i" + std::to_string(d)))) return false;
      // A row value has one place along the inner dimensions; a pad, say, asks for others and gives zero there.
      for (size_t d = rows; !whole && d < shape.size(); ++d)
        if (!reading.at[d].same_as(0)) return false;
    }
    return true;
  }

  static bool is_row_shape(const Group& group, const Shape& shape) {
    if (!group.inner) return false;
    size_t rows = group.domain.size() - group.inner;
    for (size_t d = 0; d < shape.size(); ++d) {
      bool fits = d < rows ? shape[d].same_as(group.domain[d]) : shape[d].same_as(1);
      if (!fits) return false;
    }
    return shape.size() >= rows;
  }

  // What is read of the group itself must be the element, or the row, that is being computed.
  bool reads_well(const Group& group, Value v, const Shape& reader) const {
    const Node* from = source(v.node);
    if (group_of_[size_t(from->id)] != &group) return true;
    if (from->op->kind == OpKind::kScatter) return false;  // it is complete only when all rows are
    if (auto* product = product_in(group, from)) {
      const Shape& domain = group.apart() ? product->domain : group.domain;
      for (const Node* view = v.node; view != from; view = view->inputs[0].node)
        if (!known_ops().keeps_order(*view) ||
            !keeps_columns(*from, view->types[0].shape, view->inputs[0].type().shape))
          return false;
      return v.type().shape.same_as(domain) && reader.same_as(domain);
    }
    if (!group.products.empty() && group.apart()) return v.node == from && v.type().shape.same_as(reader);
    bool whole = from->types[0].shape.same_as(group.domain);
    // Views that only add or drop dimensions of size 1, or repeat a row value along them.
    for (const Node* view = v.node; view != from; view = view->inputs[0].node) {
      auto &to = view->types[0].shape, &of = view->inputs[0].type().shape;
      bool same = known_ops().keeps_order(*view) && without_ones(to).same_as(without_ones(of));
      bool spread = view->op == &known_ops().expand && !whole && of.size() == to.size() && to.same_as(group.domain);
      if (!same && !spread) return false;
    }
    auto& seen = v.type().shape;
    if (whole) return seen.same_as(group.domain) && reader.same_as(group.domain);
    // A row value is read in its row: its dimensions line up with those of the reader from the front.
    if (reader.same_as(group.domain))
      return seen.same_as(group.domain) || (seen.size() == group.domain.size() && is_row_shape(group, seen));
    return seen.size() == reader.size() && is_row_shape(group, seen);
  }

  size_t operands_with(const Group& group, const Node& node) const {
    std::set<std::pair<const Node*, int>> outside;
    auto add = [&](const Node& n) {
      for (auto& v : inlining_.operands(n))
        if (group_of_[size_t(source(v.node)->id)] != &group) outside.insert({v.node, v.index});
    };
    for (auto* member : group.members) add(*member);
    add(node);
    return outside.size();
  }

  const FuseOptions& options_;
  std::vector<bool> only_reduced_;  // by node: reductions alone read it
  std::map<std::pair<const Node*, int>, Group*> by_left_operand_;
  int orders_ = 0;
};

}  // namespace

Graph fuse(const Graph& graph, const FuseOptions& options) { return Fuser(graph, options).run(); }

}  // namespace sinter
