// Random programs of views, writes, kernels and changed inputs, whose inputs lie in every way and may share memory:
// plans that reuse and overwrite memory give what the interpreter gives, which does neither.
#include <gtest/gtest.h>

#include <random>

#include "sinter/ops/define.h"
#include "sinter/ops/view_path.h"
#include "tests/engine/programs.h"

namespace sinter {
namespace {

using testing::is_close;
using testing::values;

constexpr int64_t kSide = 4;

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  int draw(int below) { return int(random_() % uint32_t(below)); }

  Program program() {
    Program out;
    Graph& graph = out.graph;
    Type square{kFloat32, {kSide, kSide}, {}};
    int inputs = 1 + draw(3), steps = 3 + draw(12);
    for (int i = 0; i < inputs; ++i) squares_.push_back(graph.add_input(square));
    for (int i = 0; i < steps; ++i) squares_.push_back(step(graph));
    std::vector<Value> outputs;
    out.writes.clear();
    for (int i = 0; i < inputs; ++i)
      if (draw(3) != 0) {
        outputs.push_back(recent());
        out.writes.push_back(i);
      }
    for (int i = 1 + draw(3); i > 0; --i) {
      outputs.push_back(any());
      out.writes.push_back(-1);
    }
    graph.set_outputs(outputs);
    return out;
  }

  // Row-major, transposed or spread out; now and then a look at the memory of an earlier one.
  TensorList inputs(size_t count) {
    TensorList out;
    for (size_t i = 0; i < count; ++i) {
      Tensor memory = values({2 * kSide, 2 * kSide}, double(draw(100)));
      if (i > 0 && draw(5) == 0) memory = memories_[size_t(draw(int(i)))];
      memories_.push_back(memory);
      int64_t offset = draw(3);
      switch (draw(4)) {
        case 0:
          out.push_back(make_view(memory, {kSide, kSide}, {1, kSide}, offset));
          break;
        case 1:
          out.push_back(make_view(memory, {kSide, kSide}, {2 * kSide, 2}, offset));
          break;
        default:
          out.push_back(make_view(memory, {kSide, kSide}, {kSide, 1}, offset));
          break;
      }
    }
    return out;
  }

  // The same tensors over copies of the same memory.
  TensorList twins(const TensorList& inputs) const {
    TensorList copies, out;
    for (size_t i = 0; i < memories_.size(); ++i) {
      size_t first = 0;
      while (!memories_[first].is_same(memories_[i])) ++first;
      copies.push_back(first < i ? copies[first] : memories_[i].clone());
      auto& impl = inputs[i].impl();
      out.push_back(make_view(copies[i], impl.sizes, impl.strides, impl.offset));
    }
    return out;
  }

  const TensorList& memories() const { return memories_; }

 private:
  Value any() { return squares_[size_t(draw(int(squares_.size())))]; }
  Value recent() { return squares_[squares_.size() - 1 - size_t(draw(int(std::min<size_t>(squares_.size(), 3))))]; }

  static const Node& node(Graph& graph, const char* name, std::vector<Value> inputs, const FieldTexts& fields = {}) {
    const Op& op = *find_op(name);
    return graph.add(op, std::move(inputs), op.parse ? op.parse(fields) : Attrs());
  }

  Value row(Graph& graph) {
    std::string index = std::to_string(draw(kSide));
    return node(graph, "select", {any()}, {{"index", index}, {"dim", std::to_string(draw(2))}}).result();
  }

  Value step(Graph& graph) {
    switch (draw(11)) {
      case 0:
        return node(graph, "tanh", {recent()}).result();
      case 1:
        return node(graph, "sub", {recent(), any()}).result();
      case 2:
        return node(graph, "permute", {any()}, {{"dims", "[1, 0]"}}).result();
      case 3:
        return node(graph, "neg", {recent()}).result();
      case 4:
        return tame(graph, node(graph, "mm", {recent(), any()}).result());
      case 5:
        return tame(graph, node(graph, "cumsum", {recent()}, {{"dim", std::to_string(draw(2))}}).result());
      case 6: {
        Value flat = node(graph, "view", {any()}, {{"size", "[16]"}}).result();
        return node(graph, "view", {node(graph, "sin", {flat}).result()}, {{"size", "[4, 4]"}}).result();
      }
      case 7:
        return node(graph, "select_scatter", {recent(), row(graph)}, {{"index", "2"}}).result();
      case 8: {
        Value sorted = node(graph, "sort", {any()}).result(1);
        return tame(graph, node(graph, "scatter_add", {recent(), sorted, any()}, {{"dim", "1"}}).result());
      }
      default:
        return write(graph);
    }
  }

  Value tame(Graph& graph, Value v) { return node(graph, "tanh", {v}).result(); }

  Value write(Graph& graph) {
    Value base = draw(4) == 0 ? any() : recent();
    switch (draw(4)) {
      case 0:
        return node(graph, "write", {base, row(graph)},
                    {{"path", "[select{index=" + std::to_string(draw(kSide)) + "}]"}})
            .result();
      case 1:
        return node(graph, "write", {base, row(graph)}, {{"path", "[permute{dims=[1, 0]}, select{index=1}]"}}).result();
      case 2:
        return node(graph, "write", {base, row(graph)}, {{"path", "[diagonal]"}}).result();
      default: {
        Value part = node(graph, "slice", {any()}, {{"dim", "0"}, {"end", "2"}}).result();
        return node(graph, "write", {base, part}, {{"path", "[slice{start=1, end=3}]"}}).result();
      }
    }
  }

  std::mt19937 random_;
  std::vector<Value> squares_;
  TensorList memories_;
};

// By the first of their seeds.
class RandomPrograms : public ::testing::TestWithParam<uint32_t> {};

TEST_P(RandomPrograms, PlansAgreeWithTheInterpreter) {
  for (uint32_t seed = GetParam(); seed < GetParam() + 25; ++seed) {
    Generator one(seed), same(seed);
    Program program = one.program();
    std::string text = program.graph.text(), writes;
    for (int w : program.writes) writes += " " + std::to_string(w);
    size_t inputs = program.graph.inputs().size(), outputs = program.writes.size();
    auto planned = compile_program(std::move(program)), referee = compile_program(same.program(), "interpreter");
    for (int round = 0; round < 2; ++round) {
      Generator layouts(seed * 2 + uint32_t(round));
      TensorList given = layouts.inputs(inputs), twins = layouts.twins(given), got(outputs), want(outputs);
      std::vector<TensorArg> args(given.begin(), given.end()), twin_args(twins.begin(), twins.end());
      planned->run(args, {}, got);
      referee->run(twin_args, {}, want);
      bool right = true;
      for (size_t j = 0; j < outputs; ++j) right = right && is_close(got[j], want[j], 1e-3);
      for (size_t i = 0; i < inputs; ++i) right = right && is_close(given[i], twins[i], 1e-3);
      ASSERT_TRUE(right) << "seed " << seed << "\n" << text << "writes" << writes << "\n" << planned->text();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, ::testing::Range(0u, 250u, 25u));

}  // namespace
}  // namespace sinter
