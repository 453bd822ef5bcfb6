// Files that are damaged, or made to do harm: an Error, no crash, and no memory that the file does not justify.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>

#include "sinter/base/error.h"
#include "sinter/interop/archive.h"
#include "sinter/interop/exported.h"
#include "sinter/interop/expression.h"
#include "sinter/interop/program.h"
#include "sinter/interop/runner.h"
#include "sinter/io/zip.h"
#include "sinter/ops/creation.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

std::string contents_of(const std::string& name) {
  std::ifstream file(SINTER_TEST_DATA "/pt2/" + name, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

class HostileFiles : public ::testing::Test {
 protected:
  ~HostileFiles() override { close(file_); }
  // The name of a file with these bytes, until the next one.
  std::string with(std::string_view bytes) {
    EXPECT_TRUE(ftruncate(file_, 0) == 0 && pwrite(file_, bytes.data(), bytes.size(), 0) == ssize_t(bytes.size()));
    return "/proc/self/fd/" + std::to_string(file_);
  }
  // Whether loading throws an Error; anything else but a model fails the test.
  bool is_refused(std::string_view bytes) {
    try {
      load_exported(with(bytes));
      return false;
    } catch (const Error& error) {
      EXPECT_FALSE(error.message().empty());
      return true;
    }
  }

  const int file_ = memfd_create("x.pt2", MFD_CLOEXEC);
};

TEST_F(HostileFiles, TruncatedOnesAreRefused) {
  const std::string bytes = contents_of("tied.pt2");
  ASSERT_FALSE(is_refused(bytes));
  for (size_t size = 0; size < bytes.size(); size += 7) EXPECT_TRUE(is_refused(bytes.substr(0, size))) << size;
}

// Damage of weights is not seen, everything else is.
TEST_F(HostileFiles, DamagedBytesAreNoCrash) {
  const std::string bytes = contents_of("branch.pt2");
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string damaged = bytes;
    damaged[random() % damaged.size()] ^= char(1 + random() % 255);
    refused += is_refused(damaged);
  }
  EXPECT_GT(refused, 300);
}

// The text of a program, damaged behind the checksum's back.
TEST_F(HostileFiles, DamagedProgramsAreNoCrash) {
  for (const char* name : {"branch.pt2", "sizes.pt2", "writes_decomposed.pt2"}) {
    const std::string bytes = contents_of(name);
    const ZipReader zip(bytes, name);
    std::string text;
    for (auto& entry : zip.entries())
      if (entry.name.ends_with("model.json")) text = zip.contents(entry);
    ASSERT_FALSE(text.empty());
    ASSERT_NO_THROW(interop::read_program(text, name));
    std::mt19937 random(2);
    for (int i = 0; i < 400; ++i) {
      std::string damaged = text;
      damaged[random() % damaged.size()] = "0123456789{}[]\",:ae-tfn"[random() % 23];
      try {
        interop::read_program(damaged, name);
      } catch (const Error&) {
      }
    }
  }
}

// --- programs that lie, given to the reader of programs alone, since archives have checksums

std::string program_of(const std::string& inputs, const std::string& nodes, const std::string& outputs,
                       const std::string& values, const std::string& specs = "", const std::string& output_specs = "") {
  return R"({"graph_module": {"graph": {"inputs": [)" + inputs + R"(], "outputs": [)" + outputs + R"(], "nodes": [)" +
         nodes + R"(], "tensor_values": {)" + values + R"(}}, "signature": {"input_specs": [)" + specs +
         R"(], "output_specs": [)" + output_specs +
         R"(]}}, "range_constraints": {}, "schema_version": {"major": 8, "minor": 20}})";
}
const std::string kInput = R"({"as_tensor": {"name": "x"}})";
const std::string kValue = R"("x": {"dtype": 7, "sizes": [{"as_int": 2}]})";
const std::string kSpec = R"({"user_input": {"arg": {"as_tensor": {"name": "x"}}}})";
const std::string kOutputSpec = R"({"user_output": {"arg": {"as_tensor": {"name": "y"}}}})";

std::string relu(const std::string& from, const std::string& to) {
  return R"({"target": "torch.ops.aten.relu.default", "name": ")" + to +
         R"(", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": ")" + from +
         R"("}}}], "outputs": [{"as_tensor": {"name": ")" + to + R"("}}]})";
}

std::string refusal_of(const std::string& program) {
  return message_of([&] { interop::read_program(program, "the program"); });
}

TEST(HostilePrograms, ValuesAreThereBeforeTheyAreUsed) {
  const std::string output = R"({"as_tensor": {"name": "y"}})";
  EXPECT_NO_THROW(interop::read_program(program_of(kInput, relu("x", "y"), output, kValue, kSpec, kOutputSpec), "p"));
  const std::string cycle = relu("y", "z") + "," + relu("z", "y");
  EXPECT_NE(
      refusal_of(program_of(kInput, cycle, output, kValue, kSpec, kOutputSpec)).find("'y' is used before it is there"),
      std::string::npos);
  const std::string twice = relu("x", "y") + "," + relu("x", "y");
  EXPECT_NE(refusal_of(program_of(kInput, twice, output, kValue, kSpec, kOutputSpec)).find("two values are named 'y'"),
            std::string::npos);
  EXPECT_NE(refusal_of(program_of(kInput, relu("x", "x"), kInput, kValue, kSpec, kOutputSpec))
                .find("two values are named 'x'"),
            std::string::npos);
  EXPECT_NE(refusal_of(program_of(kInput, "", output, kValue, kSpec, kOutputSpec)).find("'y' is used before"),
            std::string::npos);
  EXPECT_NE(refusal_of(program_of(kInput, "", kInput, "", kSpec, kOutputSpec)).find("nothing is told"),
            std::string::npos);
}

TEST(HostilePrograms, SignaturesFitTheirGraphs) {
  EXPECT_NE(refusal_of(program_of(kInput, "", kInput, kValue, "", kOutputSpec)).find("not as many inputs"),
            std::string::npos);
  EXPECT_NE(refusal_of(program_of(kInput, "", kInput, kValue, kSpec, "")).find("not as many outputs"),
            std::string::npos);
  const std::string object = R"({"custom_obj": {"custom_obj_name": "o"}})";
  EXPECT_NE(refusal_of(program_of(kInput, "", kInput, kValue, object, kOutputSpec)).find("'custom_obj'"),
            std::string::npos);
}

TEST(HostilePrograms, NestingEnds) {
  EXPECT_NE(refusal_of(std::string(100'000, '[')).find("nested too deeply"), std::string::npos);
  std::string text = R"({"a":)";
  for (int i = 0; i < 100'000; ++i) text += R"({"a":)";
  EXPECT_NE(refusal_of(text).find("nested too deeply"), std::string::npos);
}

TEST(HostilePrograms, OtherVersionsAreRefused) {
  std::string text = program_of(kInput, "", kInput, kValue, kSpec, kOutputSpec);
  text.replace(text.find("\"major\": 8"), 10, "\"major\": 9");
  EXPECT_NE(refusal_of(text).find("version 9 of the format, this reads 8"), std::string::npos);
  EXPECT_NE(refusal_of("[]").find("it is no object"), std::string::npos);
  EXPECT_NE(refusal_of("{}").find("'schema_version' is missing"), std::string::npos);
}

TEST(HostilePrograms, NumbersAreNumbers) {
  const std::string huge = R"("x": {"dtype": 7, "sizes": [{"as_int": 99999999999999999999}]})";
  EXPECT_NE(refusal_of(program_of(kInput, "", kInput, huge, kSpec, kOutputSpec)).find("no integer"), std::string::npos);
  const std::string large = R"("x": {"dtype": 7, "sizes": [{"as_int": 18446744073709551615}]})";
  EXPECT_NE(refusal_of(program_of(kInput, "", kInput, large, kSpec, kOutputSpec)).find("too large"), std::string::npos);
  const std::string unknown = R"("x": {"dtype": 77, "sizes": []})";
  EXPECT_NE(refusal_of(program_of(kInput, "", kInput, unknown, kSpec, kOutputSpec)).find("dtype is unknown"),
            std::string::npos);
  std::string ranks = R"("x": {"dtype": 7, "sizes": [{"as_int": 1})";
  for (int i = 0; i < 100; ++i) ranks += R"(,{"as_int": 1})";
  EXPECT_NE(refusal_of(program_of(kInput, "", kInput, ranks + "]}", kSpec, kOutputSpec)).find("too many dimensions"),
            std::string::npos);
}

// --- functions

TEST(HostilePrograms, MissingFunctionsAreCounted) {
  std::string nodes = relu("x", "a") + "," + relu("a", "b") + "," + relu("b", "y");
  for (int i = 0; i < 2; ++i) nodes.replace(nodes.find("aten.relu"), 9, "aten.nope");
  const auto program = interop::read_program(
      program_of(kInput, nodes, R"({"as_tensor": {"name": "y"}})", kValue, kSpec, kOutputSpec), "p");
  EXPECT_EQ(message_of([&] { interop::GraphRunner(program.graph, "'m.pt2'"); }),
            "load_exported: 'm.pt2' calls 1 function that Sinter has not:\n  aten.nope.default (2 times)");
}

TEST(HostilePrograms, ArgumentsAreThoseOfTheFunction) {
  auto refused = [](const std::string& from, const std::string& to) {
    std::string node = relu("x", "y");
    node.replace(node.find(from), from.size(), to);
    const auto program = interop::read_program(
        program_of(kInput, node, R"({"as_tensor": {"name": "y"}})", kValue, kSpec, kOutputSpec), "p");
    return message_of([&] {
      interop::GraphRunner runner(program.graph, "p");
      runner.run({interop::Value{ones({2})}}, cpu());
    });
  };
  EXPECT_NE(refused("\"self\"", "\"other\"").find("lacks 'self'"), std::string::npos);
  EXPECT_NE(refused("aten.relu.default", "aten.add.Tensor").find("lacks 'other'"), std::string::npos);
  EXPECT_NE(refused("[{\"as_tensor\": {\"name\": \"y\"}}]",
                    "[{\"as_tensor\": {\"name\": \"y\"}}, {\"as_tensor\": {\"name\": \"z\"}}]")
                .find("2 results are expected, and there are 1\n  in node 'y' (aten.relu.default)"),
            std::string::npos);
}

// --- sizes

TEST(Expressions, AreArithmeticOnIntegers) {
  auto value = [](const char* text) {
    return interop::evaluate(interop::parse_expression(text), {{"s0", Dim(7)}, {"s1", Dim(3)}});
  };
  EXPECT_EQ(value("Integer(-4)")->number(), -4);
  EXPECT_EQ(value("Add(Symbol('s0', positive=True, integer=True), Integer(1))")->number(), 8);
  EXPECT_EQ(value("Mul(Integer(2), Symbol('s0'), Symbol('s1'))")->number(), 42);
  EXPECT_EQ(value("FloorDiv(Symbol('s0', integer=True), Integer(2))")->number(), 3);
  EXPECT_EQ(value("Mod(Symbol('s0'), Integer(4))")->number(), 3);
  EXPECT_EQ(value("Max(Symbol('s0'), Symbol('s1'))")->number(), 7);
  EXPECT_EQ(value("Pow(Symbol('s1'), Integer(2))")->number(), 9);
  EXPECT_FALSE(value("Add(Symbol('u0'), Integer(1))"));
  EXPECT_EQ(interop::to_string(interop::parse_expression("Add(Symbol('s0'), Integer(1))")), "(s0 + 1)");
}

TEST(Expressions, AreNothingElse) {
  for (const char* text :
       {"", "Integer(", "Integer(1", "Integer(99999999999999999999)", "__import__('os')", "Symbol(s0)", "Add()",
        "Add(Integer(1)) x", "Pow(Integer(1))", "Float(1.5)", "Symbol('s0', =True)"})
    EXPECT_NE(message_of([&] { interop::parse_expression(text); }).find("is not understood"), std::string::npos)
        << text;
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "Add(";
  EXPECT_NE(message_of([&] { interop::parse_expression(deep); }).find("is not understood"), std::string::npos);
  EXPECT_NE(message_of([] {
              interop::evaluate(interop::parse_expression("FloorDiv(Integer(1), Integer(0))"), {});
            }).find("divided by 0"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              interop::evaluate(interop::parse_expression("Pow(Integer(2), Integer(1000000))"), {});
            }).find("not supported"),
            std::string::npos);
}

}  // namespace
}  // namespace sinter
