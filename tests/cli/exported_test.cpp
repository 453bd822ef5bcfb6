// Programs of torch.export.save on the command line.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sinter/io/safetensors.h"
#include "sinter/ops/pointwise.h"
#include "tests/cli/command.h"
#include "tests/support/own_directory.h"

namespace sinter {
namespace {

using testing::run_command;

std::string program(const std::string& name) { return std::string(SINTER_TEST_DATA) + "/pt2/" + name; }
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(CliExported, InfoNamesInputsAndFunctions) {
  auto result = run_command("info " + program("mlp.pt2"));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "parameters     67")) << result.out;
  EXPECT_TRUE(contains(result.out, "input          x: float32[s77, 4], s77 from 2 to 64")) << result.out;
  EXPECT_TRUE(contains(result.out, "aten.linear.default      2")) << result.out;
  auto report = nlohmann::json::parse(run_command("info --json " + program("branch.pt2")).out);
  EXPECT_EQ(report["functions"]["higher_order.cond"], 1);
  EXPECT_EQ(report["functions"]["aten.sin.default"], 1) << "of a nested graph";
  EXPECT_TRUE(report["missing_functions"].empty());
}

TEST(CliExported, ForwardRunsThem) {
  OwnDirectory own;
  SafeTensorsFile recorded(program("mlp.safetensors"));
  save_safetensors(own.file("in.safetensors"), {{"x", recorded.tensor("input.0")}});
  for (std::string mode : {"eager", "default"}) {
    auto result = run_command("forward --model " + program("mlp.pt2") + " --inputs " + own.file("in.safetensors") +
                              " --outputs " + own.file("out.safetensors") + " --mode " + mode);
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.out, "output.0 f32[5, 3]\n");
    EXPECT_TRUE(allclose(SafeTensorsFile(own.file("out.safetensors")).tensor("output.0"), recorded.tensor("output.0"),
                         1e-4, 1e-5));
  }
  save_safetensors(own.file("in.safetensors"), {{"y", recorded.tensor("input.0")}});
  auto result =
      run_command("forward --model " + program("mlp.pt2") + " --inputs " + own.file("in.safetensors") + " --outputs o");
  EXPECT_NE(result.code, 0);
  EXPECT_TRUE(contains(result.err, "no tensor 'x'; the model takes x: float32[s77, 4]")) << result.err;
}

TEST(CliExported, OnnxModelsAreTakenAsWell) {
  OwnDirectory own;
  const std::string folder = std::string(SINTER_TEST_DATA) + "/onnx/", model = folder + "mlp.onnx";
  auto report = nlohmann::json::parse(run_command("info --json " + model).out);
  EXPECT_EQ(report["functions"]["onnx.Gemm.7"], 2) << report;
  EXPECT_EQ(report["parameters"], 67);
  EXPECT_EQ(report["inputs"][0], "x: float[batch, 4]");
  SafeTensorsFile recorded(folder + "mlp.safetensors");
  save_safetensors(own.file("in.safetensors"), {{"x", recorded.tensor("input.0")}});
  auto result = run_command("forward --model " + model + " --inputs " + own.file("in.safetensors") + " --outputs " +
                            own.file("out.safetensors"));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(allclose(SafeTensorsFile(own.file("out.safetensors")).tensor("output.0"), recorded.tensor("output.0"), 1e-4, 1e-5));
  EXPECT_EQ(run_command("explain --json --model " + model).code, 0);
}

TEST(CliExported, BenchTimesThemInEveryMode) {
  for (std::string name : {"/pt2/conv_net.pt2", "/onnx/conv_net.onnx"}) {
    auto result = run_command("bench --json --repeats 3 --modes eager,default --model " + std::string(SINTER_TEST_DATA) + name);
    ASSERT_EQ(result.code, 0) << result.err;
    auto report = nlohmann::json::parse(result.out);
    auto& rows = report.is_array() ? report : report["rows"];
    ASSERT_EQ(rows.size(), 2u) << result.out;
    for (auto& row : rows) EXPECT_EQ(row["repeats"], 3) << row;
  }
}

TEST(CliExported, ExplainShowsWhatTheyBecome) {
  auto result = run_command("explain --json --model " + program("mlp.pt2"));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out).size(), 1u);
}

}  // namespace
}  // namespace sinter
