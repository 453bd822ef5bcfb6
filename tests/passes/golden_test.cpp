// Every tests/ir/<pass>/<case>.ir through its pass: text in, text out, and both graphs run by the interpreter; what is grouped
// into kernels also by these.
// SINTER_UPDATE_GOLDEN=1 writes what the passes give into the files; read the difference before keeping it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sinter/engine/cpu/engine.h"
#include "sinter/engine/executable/ready_graph.h"
#include "sinter/graph/rewrite.h"
#include "tests/support/random_inputs.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

const std::string kSeparator = "----\n";
const fs::path kFolder = fs::path(SINTER_SOURCE_DIR) / "tests" / "ir";

std::vector<fs::path> all_cases() {
  std::vector<fs::path> out;
  for (auto& entry : fs::recursive_directory_iterator(kFolder))
    if (entry.path().extension() == ".ir") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

// Contractions take epilogues as they do on this machine, 64 KiB are a large product, and rows want whole vectors and columns many blocks, as on a GPU; composites are spelled out.
std::vector<Pass> tested_passes() {
  PipelineOptions options = planning_pipeline(cpu_engine().target());
  options.fuse.target.product_alignment = 16;
  options.fuse.target.gpu = true;
  options.fuse.least_aligned = 0;
  options.stream = {.least_bytes = 64 << 10, .piece_bytes = 32 << 10};
  options.decompose = {};
  return all_passes(options);
}

const Pass& pass_named(const std::string& name) {
  static const auto passes = tested_passes();
  for (auto& pass : passes)
    if (pass.name == name) return pass;
  throw_error(format("the folder {} is not named after a pass", name));
}

std::string read_text(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

// The interpreter rounds nothing, folding rounds to each dtype on the way: the narrowest one tells what may differ.
Tolerance rounding_of(const Graph& graph) {
  for (auto& node : graph.nodes())
    for (auto& type : node.types)
      if (type.dtype == kBFloat16 || type.dtype == kFloat16) return {.ulp = 0x1p15, .absolute = 0x1p-7};
  return {.ulp = 2, .absolute = 0x1p-22};
}

// Bodies of composites are C++ expressions, whose operands a compiler may evaluate in either order.
bool is_reordered(const Pass& pass, const Graph& output, const std::string& expected) {
  Graph wanted = Graph::parse(expected);
  return pass.name == "decompose" && wanted.hash() == output.hash() && wanted.nodes().size() == output.nodes().size();
}

// The graph that the file begins with.
Graph given_graph(const fs::path& path) {
  std::string text = read_text(path);
  return Graph::parse(text.substr(0, text.find("\n" + kSeparator) + 1));
}

class Golden : public ::testing::TestWithParam<fs::path> {};

TEST_P(Golden, GivesTheTextAndTheValues) {
  std::string text = read_text(GetParam());
  size_t at = text.find("\n" + kSeparator);
  ASSERT_NE(at, std::string::npos) << "the line ---- between input and output is missing";
  std::string given = text.substr(0, at + 1), expected = text.substr(at + 1 + kSeparator.size());
  const Pass& pass = pass_named(GetParam().parent_path().filename().string());

  Graph input = Graph::parse(given);
  Graph output = pass.run(input);
  output.verify();
  if (std::getenv("SINTER_UPDATE_GOLDEN")) {
    std::ofstream(GetParam()) << given << kSeparator << output.text();
  } else if (!is_reordered(pass, output, expected)) {
    EXPECT_EQ(output.text(), expected);
  }
  EXPECT_EQ(pass.run(output).text(), output.text()) << "a second run changes the graph again";

  auto inputs = testing::random_inputs(input);
  auto want = interpret(input, inputs), got = interpret(output, inputs);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_EQ(testing::difference(to_tensor(got[i]), want[i], rounding_of(input)), "") << "output " << i;
}

// Of every pass on every graph: it is left out only where running it would change nothing.
TEST_P(Golden, HasWorkWhereItChangesSomething) {
  Graph input = given_graph(GetParam());
  if (has_dead_nodes(input)) input = drop_dead_nodes(input);
  for (auto& pass : tested_passes())
    if (pass.has_work && !pass.has_work(input)) {
      EXPECT_EQ(pass.run(input).text(), input.text()) << pass.name;
    }
}

INSTANTIATE_TEST_SUITE_P(Ir, Golden, ::testing::ValuesIn(all_cases()), [](const auto& info) {
  return info.param.parent_path().filename().string() + "_" + info.param.stem().string();
});

bool groups(const fs::path& path) {
  auto pass = path.parent_path().filename();
  return pass == "fuse" || pass == "nest";
}

std::vector<fs::path> grouping_cases() {
  std::vector<fs::path> out = all_cases();
  std::erase_if(out, [](auto& path) { return !groups(path); });
  return out;
}

class GoldenKernels : public ::testing::TestWithParam<fs::path> {};

// The groups as the kernels of a plan, and the graph without the pass: op by op, or kernel by kernel.
TEST_P(GoldenKernels, ComputeWhatTheGraphMeans) {
  Graph input = given_graph(GetParam());
  std::map<std::string, int64_t> sizes;
  auto inputs = testing::random_inputs(input, &sizes);
  auto want = interpret(input, inputs);
  Tolerance tolerance = rounding_of(input);
  if (tolerance.ulp == 2) tolerance = {.ulp = 256, .absolute = 2e-5};
  std::vector<TensorArg> operands;
  for (auto& array : inputs) operands.push_back(to_tensor(array));
  for (bool grouped : {true, false}) {
    Program program{
        .graph = grouped ? pass_named(GetParam().parent_path().filename().string()).run(input) : std::move(input),
        .symbols = {},
        .writes = {},
        .name = "golden",
        .grouped = true};
    IntList values;
    for (auto& [name, size] : sizes) {
      program.symbols.push_back(name);
      values.push_back(size);
    }
    TensorList got(want.size());
    compile_program(std::move(program))->run(operands, values, got);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(testing::difference(got[i], want[i], tolerance), "")
          << "output " << i << (grouped ? "" : ", without the pass");
  }
}

INSTANTIATE_TEST_SUITE_P(Ir, GoldenKernels, ::testing::ValuesIn(grouping_cases()), [](const auto& info) {
  return info.param.parent_path().filename().string() + "_" + info.param.stem().string();
});

TEST(GoldenFiles, CoverEveryPass) {
  for (auto& pass : all_passes()) {
    int cases = 0;
    for (auto& path : all_cases()) cases += path.parent_path().filename() == pass.name;
    EXPECT_GE(cases, 6) << pass.name;
  }
}

}  // namespace
}  // namespace sinter
