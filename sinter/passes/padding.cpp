#include "sinter/passes/padding.h"

#include <algorithm>

#include "sinter/base/format.h"
#include "sinter/graph/trace.h"
#include "sinter/passes/padding_probe.h"

namespace sinter {

namespace {

using namespace padding;

// A node with numbers for the symbols of its sizes.
struct SizedCall {
  std::vector<Type> types;
  Attrs attrs;
  OpCall call;

  SizedCall(const Node& node, const Dim& symbol, int64_t size)
      : types(sized_types(node, symbol, size)),
        attrs(node.attrs.map_dims([&](const Dim& d) { return Dim(size_at(d, symbol, size)); })),
        call{*node.op, types, attrs} {}
  SizedCall(const SizedCall&) = delete;

 private:
  static std::vector<Type> sized_types(const Node& node, const Dim& symbol, int64_t size) {
    std::vector<Type> out;
    for (auto& v : node.inputs) {
      auto& type = out.emplace_back(v.type());
      for (auto& d : type.shape) d = size_at(d, symbol, size);
    }
    return out;
  }
};

// Traces the body of a composite op. A size that it takes for a plain number may be the padded one.
class BodyTracer final : public GraphTracer {
 public:
  explicit BodyTracer(const Dim& symbol) : symbol_(symbol) {}
  int64_t specialize(const Dim& d, const std::source_location* where, const void* return_address) override {
    uses_size = uses_size || d.depends_on(symbol_);
    return GraphTracer::specialize(d, where, return_address);
  }

  bool uses_size = false;

 private:
  Dim symbol_;
};

// What the samples of one node showed.
struct Evaluation {
  std::string fault;                           // how the true and the padded run differ, where both have the element
  std::vector<std::vector<Content>> contents;  // per region of the result and of the reduction
  std::vector<bool> hits_real;                 // kScatter, per region of what is iterated over: writes into region 0
};

class Analysis {
 public:
  explicit Analysis(const Dim& symbol) : symbol_(symbol) {}

  // The facts of the outputs. Faults name `outer`, when given, in place of the node of this graph.
  std::vector<Fact> run(const Graph& graph, std::vector<Fact> inputs, const Node* outer = nullptr);

  size_t region_count(const Layout& layout) const {
    auto axes = layout.axes();
    return size_t(1) << std::count_if(axes.begin(), axes.end(), [&](const Dim& d) { return d.depends_on(symbol_); });
  }
  Fact uniform(const Layout& layout, const Content& content) const {
    return {layout, std::vector<Content>(region_count(layout), content)};
  }

  std::vector<PaddingFault> faults;

 private:
  using Facts = std::vector<const Fact*>;

  std::vector<Fact> visit(const Node& node, const Facts& operands);
  std::vector<Fact> visit_composite(const Node& node, const Facts& operands);
  Fact visit_scatter(const Node& node, const Facts& operands);
  Fact visit_loop(const Node& node, const Facts& operands);
  void reduce(const Node& node, Evaluation& found);
  void scan(const Node& node, Fact& fact);

  // Finds layouts of the result and of the reduction under which the node reads as the unpadded one does. Where none do
  // they stay plain, and the fault is given.
  Evaluation find_layouts(const Node& node, const Facts& operands, Layout& result, Layout& reduction);
  std::vector<std::vector<Dim>> ways_to_split(const Dim& extent, const Facts& operands) const;
  Evaluation evaluate(const Node& node, const Facts& operands, const Layout& result, const Layout& reduction) const;
  std::vector<int64_t> samples(const Dim& extent, const Sizes& sizes, bool in_padding) const;
  template <class F>
  void for_each_sample(const std::vector<Dim>& axes, const Sizes& sizes, size_t region, F&& sample) const;

  bool shrinks(const Dim& size) const {
    return size_at(size, symbol_, kLargeSizes.padded) < size_at(size, symbol_, kLargeSizes.truth);
  }
  void fault(const Node& node, const std::string& what) {
    const Node& named = outer_ ? *outer_ : node;
    std::string prefix = named.where.empty() ? "" : named.where + ": ";
    std::string inner = outer_ ? format("its {}: ", node.op->name) : "";
    faults.push_back({&named, format("{}{}: {}{}", prefix, named.op->name, inner, what)});
  }

  Dim symbol_;
  const Node* outer_ = nullptr;
};

// --- samples

std::vector<int64_t> Analysis::samples(const Dim& extent, const Sizes& sizes, bool in_padding) const {
  int64_t end = size_at(extent, symbol_, sizes.truth), begin = 0;
  if (in_padding) begin = std::exchange(end, size_at(extent, symbol_, sizes.padded));
  std::vector<int64_t> out{begin, (begin + end) / 2, end - 1};
  if (extent.depends_on(symbol_)) out.insert(out.end(), {begin + 1, begin + (end - begin) * 4 / 11, end - 2});
  std::erase_if(out, [&](int64_t x) { return x < begin || x >= end; });
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Calls sample(coordinates along the axes) for samples of a region.
template <class F>
void Analysis::for_each_sample(const std::vector<Dim>& axes, const Sizes& sizes, size_t region, F&& sample) const {
  std::vector<std::vector<int64_t>> choices;
  for (auto& extent : axes) {
    bool is_padded = extent.depends_on(symbol_);
    choices.push_back(samples(extent, sizes, is_padded && (region & 1)));
    if (is_padded) region >>= 1;
    if (choices.back().empty()) return;
  }
  std::vector<size_t> turn(axes.size(), 0);
  std::vector<int64_t> at(axes.size());
  for (size_t a = 0;;) {
    for (size_t j = 0; j < axes.size(); ++j) at[j] = choices[j][turn[j]];
    sample(at);
    for (a = 0; a < axes.size() && ++turn[a] == choices[a].size(); ++a) turn[a] = 0;
    if (a == axes.size()) return;
  }
}

// The coordinates of a value whose coordinates along the axes are `*axis…`.
Index merge_axes(const Layout& layout, const int64_t*& axis, const Dim& symbol, int64_t size) {
  Index out;
  for (auto& factors : layout.factors) {
    int64_t at = 0;
    for (auto& f : factors) at = at * size_at(f, symbol, size) + *axis++;
    out.push_back(at);
  }
  return out;
}

Evaluation Analysis::evaluate(const Node& node, const Facts& operands, const Layout& result,
                              const Layout& reduction) const {
  const Op& op = *node.op;
  auto axes = result.axes();
  for (auto& d : reduction.axes()) axes.push_back(d);
  size_t regions = region_count(result), reduced_regions = region_count(reduction);
  Evaluation out{{}, std::vector(regions, std::vector<Content>(reduced_regions)), std::vector<bool>(regions)};
  std::vector<bool> was_read(operands.size(), false);
  if (op.kind == OpKind::kScatter) was_read[0] = true;
  std::vector<size_t> first_equal;
  for (auto& v : node.inputs)
    first_equal.push_back(size_t(std::find(node.inputs.begin(), node.inputs.end(), v) - node.inputs.begin()));
  ApplyCache cache;

  auto run = [&](Probe& probe, const std::vector<int64_t>& at, int64_t size) {
    const int64_t* axis = at.data();
    probe.i = merge_axes(result, axis, symbol_, size);
    probe.k = merge_axes(reduction, axis, symbol_, size);
    for (size_t a = 0; a < axes.size(); ++a)
      if (axes[a].same_as(symbol_)) probe.positions.push_back(at[a]);
    if (op.kind == OpKind::kPointwise) return probe.apply_call(node.types[0], first_equal);
    if (op.kind == OpKind::kScatter) probe.record_target(op.target(probe), operands[0]->layout);
    Elem element = op.element(probe);
    if (op.payload) probe.number(op.payload(probe));
    return element;
  };
  for (const Sizes& sizes : {kLargeSizes, kSmallSizes}) {
    bool large = sizes.truth == kLargeSizes.truth;
    SizedCall truth(node, symbol_, sizes.truth), padded(node, symbol_, sizes.padded);
    auto probe = [&](const std::vector<int64_t>& at, size_t bits, bool last_index) {
      Probe expected(truth.call, operands, symbol_, sizes.truth, sizes.truth, {}, last_index, cache);
      if (bits == 0) run(expected, at, sizes.truth);
      Probe probe(padded.call, operands, symbol_, sizes.padded, sizes.truth, expected.indices(), last_index, cache);
      Content found = probe.content(run(probe, at, sizes.padded));
      if (bits == 0 && out.fault.empty() && !expected.outside())
        out.fault = difference(expected.events(), probe.events(), symbol_);
      // Small sizes only show what constants larger than them do.
      if (large) {
        auto& content = out.contents[bits % regions][bits / regions];
        content = join(content, found);
        for (auto& event : probe.events()) {
          if (event.operand >= 0) was_read[size_t(event.operand)] = true;
          if (event.kind == Event::kTarget && event.region == 0) out.hits_real[bits % regions] = true;
        }
      }
      return !probe.indices().empty();
    };
    for (size_t bits = 0; bits < (large ? regions * reduced_regions : 1); ++bits)
      for_each_sample(axes, sizes, bits, [&](const std::vector<int64_t>& at) {
        if (probe(at, bits, false)) probe(at, bits, true);
      });
  }
  // An operand that the samples missed may be anywhere.
  for (size_t j = 0; j < operands.size(); ++j)
    if (!was_read[j])
      for (auto& row : out.contents)
        for (auto& content : row)
          for (auto& other : operands[j]->regions) content = join(content, other);
  return out;
}

// --- layouts

// A size that depends on the symbol may be that of dimensions merged here or before: first the ways that operands
// suggest, then, for a view that splits other dimensions as well, every way to put factors around the symbol.
std::vector<std::vector<Dim>> Analysis::ways_to_split(const Dim& extent, const Facts& operands) const {
  std::vector<std::vector<Dim>> out{{extent}};
  if (!extent.depends_on(symbol_) || extent.same_as(symbol_)) return out;
  for (auto* fact : operands) {
    auto& dims = fact->layout.factors;
    for (size_t first = 0; first < dims.size(); ++first) {
      Dim product = 1;
      std::vector<Dim> factors;
      for (size_t d = first; d < dims.size(); ++d) {
        for (auto& f : dims[d]) {
          product = product * f;
          if (!f.same_as(1)) factors.push_back(f);
        }
        if (product.same_as(extent)) out.push_back(factors);
      }
    }
  }
  Dim count = extent / symbol_;
  if (!(count * symbol_).same_as(extent)) return out;
  out.push_back({count, symbol_});
  for (int64_t outer = 2; count.is_number() && outer < count.number(); ++outer)
    if (count.number() % outer == 0) out.push_back({outer, symbol_, count / outer});
  return out;
}

Evaluation Analysis::find_layouts(const Node& node, const Facts& operands, Layout& result, Layout& reduction) {
  std::vector<std::vector<std::vector<Dim>>> ways;
  for (auto* layout : {&result, &reduction})
    for (auto& factors : layout->factors) ways.push_back(ways_to_split(factors[0], operands));
  Evaluation plain = evaluate(node, operands, result, reduction);
  if (plain.fault.empty()) return plain;
  std::vector<size_t> turn(ways.size(), 0);
  for (;;) {
    size_t d = 0;
    for (; d < ways.size() && ++turn[d] == ways[d].size(); ++d) turn[d] = 0;
    if (d == ways.size()) return plain;
    Layout split_result = result, split_reduction = reduction;
    for (size_t j = 0; j < ways.size(); ++j) {
      size_t rank = result.factors.size();
      (j < rank ? split_result.factors[j] : split_reduction.factors[j - rank]) = ways[j][turn[j]];
    }
    Evaluation split = evaluate(node, operands, split_result, split_reduction);
    if (!split.fault.empty()) continue;
    result = split_result;
    reduction = split_reduction;
    return split;
  }
}

// --- nodes by kind

void Analysis::reduce(const Node& node, Evaluation& found) {
  for (size_t region = 0; region < found.contents.size(); ++region) {
    auto& row = found.contents[region];
    Content padding;
    for (size_t k = 1; k < row.size(); ++k) padding = join(padding, row[k]);
    bool harmless = neutral(node.op->combine, row[0], padding);
    if (region == 0 && !harmless)
      fault(node, format("it combines elements of the padding of {}, which are {}", symbol_, to_string(padding)));
    row[0] = fold(node.op->combine, row[0], region == 0 && harmless ? Content() : padding);
  }
}

// Padding comes after what is real, so a running combination meets it last.
void Analysis::scan(const Node& node, Fact& fact) {
  if (fact.layout.factors.empty()) return;
  SizedCall sized(node, symbol_, kLargeSizes.truth);
  size_t along = size_t(node.op->scan_dim(sized.call)), bit = 1;
  auto& factors = fact.layout.factors[along];
  if (factors.size() > 1) fault(node, format("it runs through the padding of {} between real elements", symbol_));
  bool padded = factors[0].depends_on(symbol_);
  for (size_t d = 0; d < along; ++d)
    for (auto& f : fact.layout.factors[d]) bit <<= f.depends_on(symbol_);
  auto elements = fact.regions;
  for (size_t region = 0; region < elements.size(); ++region) {
    Content met = elements[region];
    if (padded && (region & bit)) met = join(met, elements[region & ~bit]);
    fact.regions[region] = join(met, fold(node.op->combine, met));
  }
}

Fact Analysis::visit_loop(const Node& node, const Facts& operands) {
  std::vector<Type> types;
  for (auto& v : node.inputs) types.push_back(v.type());
  bool reduces = node.op->combine != Combine::kNone && node.op->kind != OpKind::kScan;
  Layout result = Layout::plain(node.types[0].shape), reduction;
  if (reduces) reduction = Layout::plain(node.op->reduction(OpCall{*node.op, types, node.attrs}));
  Evaluation found = find_layouts(node, operands, result, reduction);
  if (!found.fault.empty()) fault(node, found.fault);
  if (reduces) reduce(node, found);
  Fact fact{result, {}};
  for (auto& row : found.contents) fact.regions.push_back(row[0].empty() ? Content::anything() : row[0]);
  if (node.op->kind == OpKind::kScan) scan(node, fact);
  return fact;
}

Fact Analysis::visit_scatter(const Node& node, const Facts& operands) {
  std::vector<Type> types;
  for (auto& v : node.inputs) types.push_back(v.type());
  OpCall call{*node.op, types, node.attrs};
  Layout domain = Layout::plain(node.op->domain(call)), none;
  Combine combine = node.op->scatter_combine(call);
  Evaluation found = find_layouts(node, operands, domain, none);
  if (!found.fault.empty()) fault(node, found.fault);
  Fact fact = *operands[0];
  Content written;
  for (size_t region = 0; region < found.contents.size(); ++region) {
    const Content& source = found.contents[region][0];
    written = join(written, source);
    if (region > 0 && found.hits_real[region] && !neutral(combine, join(fact.regions[0], found.contents[0][0]), source))
      fault(node, format("it writes elements of the padding of {}, which are {}, among real ones", symbol_,
                         to_string(source)));
  }
  for (auto& content : fact.regions) content = join(content, fold(combine, join(content, written)));
  return fact;
}

// The op's body in its place.
std::vector<Fact> Analysis::visit_composite(const Node& node, const Facts& operands) {
  BodyTracer tracer(symbol_);
  std::vector<Fact> inputs;
  {
    TracerScope scope(&tracer);
    std::vector<TensorArg> args;
    for (size_t j = 0; j < operands.size(); ++j) {
      const Node& operand = *node.inputs[j].node;
      if (operand.op == &kScalarOp) {
        args.emplace_back(operand.attrs.as<ScalarAttrs>().value);
        continue;
      }
      for (auto& d : node.inputs[j].type().shape)
        for (auto& name : d.symbols()) tracer.set_hint(name, size_at(Dim::symbol(name), symbol_, kLargeSizes.truth));
      args.emplace_back(tracer.add_input(node.inputs[j].type()));
      inputs.push_back(*operands[j]);
    }
    std::vector<Value> outputs;
    for (auto& tensor : node.op->decompose(args, node.attrs)) outputs.push_back(tracer.value_of(tensor));
    tracer.graph().set_outputs(std::move(outputs));
  }
  if (tracer.uses_size) fault(node, format("it makes a value of the padded size {}", symbol_));
  for (auto& tensor : tracer.captured())
    inputs.push_back(uniform(Layout::plain(tensor.sizes()), Content::finite(tensor.dtype())));
  return run(tracer.graph(), std::move(inputs), outer_ ? outer_ : &node);
}

std::vector<Fact> Analysis::visit(const Node& node, const Facts& operands) {
  switch (node.op->kind) {
    case OpKind::kScalar:
      return {{{}, {Content::of(node.attrs.as<ScalarAttrs>().value.to_double())}}};
    case OpKind::kComposite:
      return visit_composite(node, operands);
    case OpKind::kScatter:
      return {visit_scatter(node, operands)};
    case OpKind::kOpaque:
      break;
    default:
      return {visit_loop(node, operands)};
  }
  if (std::any_of(operands.begin(), operands.end(), [](auto* fact) { return fact->regions.size() > 1; }))
    fault(node, format("it looks at all elements at once, those of the padding of {} too", symbol_));
  std::vector<Fact> out;
  for (auto& type : node.types) out.push_back(uniform(Layout::plain(type.shape), Content::anything()));
  return out;
}

std::vector<Fact> Analysis::run(const Graph& graph, std::vector<Fact> inputs, const Node* outer) {
  const Node* caller = std::exchange(outer_, outer);
  std::vector<bool> needed(graph.nodes().size(), false);
  for (auto& v : graph.outputs()) needed[size_t(v.node->id)] = true;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node)
    if (needed[size_t(node->id)])
      for (auto& v : node->inputs) needed[size_t(v.node->id)] = true;

  std::vector<std::vector<Fact>> facts(graph.nodes().size());
  for (size_t n = 0; n < inputs.size(); ++n) facts[size_t(graph.inputs()[n].node->id)] = {std::move(inputs[n])};
  auto fact_of = [&](const Value& v) -> const Fact& { return facts[size_t(v.node->id)][size_t(v.index)]; };
  for (auto& node : graph.nodes()) {
    if (!needed[size_t(node.id)] || node.op->kind == OpKind::kInput) continue;
    Facts operands;
    for (auto& v : node.inputs) operands.push_back(&fact_of(v));
    facts[size_t(node.id)] = visit(node, operands);
    for (auto& type : node.types)
      if (std::any_of(type.shape.begin(), type.shape.end(), [&](const Dim& d) { return shrinks(d); }))
        fault(node, format("its shape {} shrinks as {} grows", type.shape, symbol_));
  }
  outer_ = caller;
  std::vector<Fact> out;
  for (auto& v : graph.outputs()) out.push_back(fact_of(v));
  return out;
}

}  // namespace

PaddingReport check_padding(const Graph& graph, const std::string& symbol, const std::vector<bool>& is_mask_input) {
  SINTER_INTERNAL_ASSERT(is_mask_input.size() == graph.inputs().size(), "{} answers for {} inputs",
                         is_mask_input.size(), graph.inputs().size());
  Dim size = Dim::symbol(symbol);
  Analysis analysis(size);
  std::vector<Fact> inputs;
  for (size_t n = 0; n < graph.inputs().size(); ++n) {
    auto& type = graph.inputs()[n].type();
    bool zeros = std::all_of(type.shape.begin(), type.shape.end(),
                             [&](const Dim& d) { return d.same_as(size) || !d.depends_on(size); });
    Fact fact = analysis.uniform(Layout::plain(type.shape), zeros ? Content::of(0.0) : Content::anything());
    fact.regions[0] = Content::finite(is_mask_input[n] ? kBool : type.dtype);
    inputs.push_back(std::move(fact));
  }
  auto facts = analysis.run(graph, std::move(inputs));

  PaddingReport report{std::move(analysis.faults), {}};
  for (size_t n = 0; n < facts.size(); ++n) {
    const Value& v = graph.outputs()[n];
    auto& padded = report.output_padded.emplace_back();
    for (auto& d : v.type().shape) padded.push_back(d.depends_on(size));
    for (auto& factors : facts[n].layout.factors)
      if (factors.size() > 1)
        report.faults.push_back(
            {v.node, format("{}{}: the output has padding of {} inside a merged dimension, where it "
                            "cannot be cut off",
                            v.node->where.empty() ? "" : v.node->where + ": ", v.node->op->name, symbol)});
  }
  return report;
}

}  // namespace sinter
