// The C interface: files and graphs, tensors in and out by DLPack, and what is said where something is wrong.
#include "sinter/c/sinter.h"

#include <gtest/gtest.h>

#include <thread>

#include "sinter/io/safetensors.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/tensor/dlpack_exchange.h"

namespace sinter {
namespace {

using dlpack::DLManagedTensorVersioned;
using dlpack::DLTensor;

std::string file_of(const std::string& name) { return SINTER_TEST_DATA "/pt2/" + name; }

// A tensor lent by its owner.
struct Lent {
  explicit Lent(const Tensor& tensor) : managed(dlpack::to_versioned(tensor)) {}
  ~Lent() { managed->deleter(managed); }
  Lent(const Lent&) = delete;
  SinterValue value() const { return {SINTER_TENSOR, -1, &managed->dl_tensor, 0, 0}; }
  DLManagedTensorVersioned* managed;
};

// A result as a tensor of its own.
Tensor taken(SinterValue& value) {
  auto* managed = static_cast<DLManagedTensorVersioned*>(value.tensor);
  Tensor out = dlpack::borrow(managed->dl_tensor).clone();
  managed->deleter(managed);
  return out;
}

// y = 2 * x of [n, 3], n, x: a number as an input and as a result, and an input that is a result.
const char kGraph[] = R"json({"schema_version": {"major": 8}, "range_constraints": {}, "graph_module": {
  "graph": {
    "inputs": [{"as_sym_int": {"as_name": "s0"}}, {"as_tensor": {"name": "x"}}],
    "tensor_values": {"x": {"dtype": 7, "sizes": [
      {"as_expr": {"expr_str": "Symbol('s0', positive=True, integer=True)", "hint": {"as_int": 4}}}, {"as_int": 3}]}},
    "sym_int_values": {"s0": {"as_expr": {"expr_str": "Symbol('s0', positive=True, integer=True)", "hint": {"as_int": 4}}}},
    "nodes": [{"target": "torch.ops.FUNCTION", "name": "y",
      "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}}, {"name": "other", "arg": {"as_float": 2.0}}],
      "outputs": [{"as_tensor": {"name": "y"}}]}],
    "outputs": [{"as_tensor": {"name": "y"}}, {"as_sym_int": {"as_name": "s0"}}, {"as_tensor": {"name": "x"}}, {"as_none": true}]},
  "signature": {
    "input_specs": [{"user_input": {"arg": {"as_sym_int": {"as_name": "s0"}}}}, {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
    "output_specs": [{"user_output": {"arg": {}}}, {"user_output": {"arg": {}}}, {"user_output": {"arg": {}}}, {"user_output": {"arg": {}}}]}
}})json";

std::string graph_of(const std::string& function) {
  std::string out = kGraph;
  out.replace(out.find("FUNCTION"), 8, function);
  return out;
}

struct Program {
  ~Program() { sinter_free(handle); }
  SinterProgram* handle = nullptr;
};

TEST(CInterface, RunsAFile) {
  SafeTensorsFile recorded(file_of("mlp.safetensors"));
  Program program;
  const SinterOption options[] = {{"mode", "reduce-overhead"}, {"fullgraph", "true"}};
  ASSERT_EQ(sinter_load(file_of("mlp.pt2").c_str(), options, 2, &program.handle), SINTER_OK) << sinter_error();
  ASSERT_EQ(sinter_input_count(program.handle), 1u);
  ASSERT_EQ(sinter_result_count(program.handle), 1u);
  EXPECT_STRNE(sinter_input_name(program.handle, 0), "");
  Lent x(recorded.tensor("input.0").clone());
  SinterValue input = x.value(), result;
  ASSERT_EQ(sinter_prepare(program.handle, &input, 1), SINTER_OK) << sinter_error();
  ASSERT_EQ(sinter_run(program.handle, &input, 1, nullptr, &result, 1), SINTER_OK) << sinter_error();
  EXPECT_EQ(result.input, -1);
  EXPECT_TRUE(allclose(taken(result), recorded.tensor("output.0"), 2e-5, 2e-5));
}

TEST(CInterface, RunsAGraphOfAnySize) {
  const std::string text = graph_of("aten.mul.Tensor");
  Program program;
  ASSERT_EQ(sinter_read(text.data(), text.size(), nullptr, 0, &program.handle), SINTER_OK) << sinter_error();
  for (int64_t n : {4, 7, 9}) {
    Tensor x = randn({n, 3});
    Lent lent(x);
    SinterValue inputs[] = {{SINTER_INTEGER, -1, nullptr, n, 0}, lent.value()}, results[4];
    ASSERT_EQ(sinter_run(program.handle, inputs, 2, nullptr, results, 4), SINTER_OK) << sinter_error();
    EXPECT_TRUE(equal(taken(results[0]), x * 2));
    EXPECT_EQ(results[1].kind, SINTER_INTEGER);
    EXPECT_EQ(results[1].integer, n);
    EXPECT_EQ(results[2].input, 1);
    EXPECT_EQ(results[2].tensor, nullptr);
    EXPECT_EQ(results[3].kind, SINTER_NOTHING);
  }
}

TEST(CInterface, SaysOnWhoseMemoryAResultIs) {
  std::string text = graph_of("aten.view.default");
  text.replace(text.find("\"other\", \"arg\": {\"as_float\": 2.0}"), 33, "\"size\", \"arg\": {\"as_ints\": [3, 4]}");
  Program program;
  ASSERT_EQ(sinter_read(text.data(), text.size(), nullptr, 0, &program.handle), SINTER_OK) << sinter_error();
  Lent x(randn({4, 3}));
  SinterValue inputs[] = {{SINTER_INTEGER, -1, nullptr, 4, 0}, x.value()}, results[4];
  ASSERT_EQ(sinter_run(program.handle, inputs, 2, nullptr, results, 4), SINTER_OK) << sinter_error();
  auto* managed = static_cast<DLManagedTensorVersioned*>(results[0].tensor);
  if (results[0].input >= 0) {
    EXPECT_EQ(results[0].input, 1);
    EXPECT_EQ(managed->dl_tensor.data, x.managed->dl_tensor.data);
  } else {
    EXPECT_NE(managed->dl_tensor.data, x.managed->dl_tensor.data);
  }
  managed->deleter(managed);
}

TEST(CInterface, ManyThreadsRunOneProgram) {
  const std::string text = graph_of("aten.mul.Tensor");
  Program program;
  ASSERT_EQ(sinter_read(text.data(), text.size(), nullptr, 0, &program.handle), SINTER_OK) << sinter_error();
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        Tensor x = full({2 + i % 5, 3}, t + i);
        Lent lent(x);
        SinterValue inputs[] = {{SINTER_INTEGER, -1, nullptr, 2 + i % 5, 0}, lent.value()}, results[4];
        if (sinter_run(program.handle, inputs, 2, nullptr, results, 4) == SINTER_OK) right += equal(taken(results[0]), x * 2);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
}

TEST(CInterface, SaysWhatIsWrong) {
  Program program;
  EXPECT_EQ(sinter_load("nowhere.pt2", nullptr, 0, &program.handle), SINTER_ERROR);
  EXPECT_NE(std::string(sinter_error()).find("nowhere.pt2"), std::string::npos);
  std::string text = graph_of("aten.no_such_function.default");
  EXPECT_EQ(sinter_read(text.data(), text.size(), nullptr, 0, &program.handle), SINTER_ERROR);
  EXPECT_NE(std::string(sinter_error()).find("aten.no_such_function.default"), std::string::npos);
  const SinterOption option{"mode", "fastest"};
  text = graph_of("aten.mul.Tensor");
  EXPECT_EQ(sinter_read(text.data(), text.size(), &option, 1, &program.handle), SINTER_ERROR);
  EXPECT_NE(std::string(sinter_error()).find("fastest"), std::string::npos);
  EXPECT_EQ(program.handle, nullptr);

  // A node that cannot be run is named.
  text = graph_of("aten.mm.default");
  text.replace(text.find("\"other\", \"arg\": {\"as_float\": 2.0}"), 33, "\"mat2\", \"arg\": {\"as_tensor\": {\"name\": \"x\"}}");
  ASSERT_EQ(sinter_read(text.data(), text.size(), nullptr, 0, &program.handle), SINTER_OK) << sinter_error();
  Lent x(randn({4, 3}));
  SinterValue inputs[] = {{SINTER_INTEGER, -1, nullptr, 4, 0}, x.value()};
  EXPECT_EQ(sinter_prepare(program.handle, inputs, 2), SINTER_ERROR);
  EXPECT_STREQ(sinter_error_node(), "y");
  SinterValue results[4];
  EXPECT_EQ(sinter_run(program.handle, inputs, 1, nullptr, results, 4), SINTER_ERROR);
  EXPECT_EQ(sinter_run(program.handle, inputs, 2, nullptr, results, 3), SINTER_ERROR);
}

TEST(CInterface, KnowsWhatItTakes) {
  EXPECT_TRUE(sinter_takes("aten.add.Tensor"));
  EXPECT_TRUE(sinter_takes("aten.add_.Tensor"));
  EXPECT_FALSE(sinter_takes("aten.no_such_function.default"));
  EXPECT_TRUE(sinter_takes_dtype(7));
  EXPECT_FALSE(sinter_takes_dtype(9));
}

}  // namespace
}  // namespace sinter
