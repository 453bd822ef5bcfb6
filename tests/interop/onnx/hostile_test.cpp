// ONNX files that are damaged, or made to do harm: an Error, no crash, and no memory that the file does not justify.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>

#include "sinter/base/error.h"
#include "sinter/interop/onnx.h"
#include "sinter/ops/creation.h"
#include "tests/support/error_of.h"
#include "tests/support/own_directory.h"

namespace sinter {
namespace {

std::string contents_of(const std::string& name) {
  std::ifstream file(SINTER_TEST_DATA "/onnx/" + name, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

// --- messages, written by hand

std::string varint(uint64_t number) {
  std::string out;
  for (; number > 0x7f; number >>= 7) out += char((number & 0x7f) | 0x80);
  return out + char(number);
}
std::string field(int tag, const std::string& content) {
  return varint(uint64_t(tag) << 3 | 2) + varint(content.size()) + content;
}
std::string number(int tag, int64_t value) { return varint(uint64_t(tag) << 3) + varint(uint64_t(value)); }

std::string node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                 const std::string& more = "") {
  std::string out;
  for (auto& name : inputs) out += field(1, name);
  for (auto& name : outputs) out += field(2, name);
  return out + field(4, op) + more;
}
// float32[2] of this name, as an input or output.
std::string value(const std::string& name) {
  const std::string shape = field(1, number(1, 2));
  return field(1, name) + field(2, field(1, number(1, 1) + field(2, shape)));
}
std::string graph_attribute(const std::string& name, const std::string& graph) {
  return field(5, field(1, name) + field(6, graph) + number(20, 5));
}
std::string graph_of(const std::vector<std::string>& nodes, const std::string& more = "") {
  std::string out;
  for (auto& each : nodes) out += field(1, each);
  return out + more;
}
std::string model_of(const std::string& graph, const std::string& more = "") {
  return number(1, 10) + field(7, graph) + field(8, number(2, 20)) + more;
}
const std::string kEnds = field(11, value("x")) + field(12, value("y"));

class HostileOnnx : public ::testing::Test {
 protected:
  ~HostileOnnx() override { close(file_); }
  std::string with(std::string_view bytes) {
    EXPECT_TRUE(ftruncate(file_, 0) == 0 && pwrite(file_, bytes.data(), bytes.size(), 0) == ssize_t(bytes.size()));
    return "/proc/self/fd/" + std::to_string(file_);
  }
  // Whether loading throws an Error; anything else but a model fails the test.
  bool is_refused(std::string_view bytes) {
    try {
      load_onnx(with(bytes));
      return false;
    } catch (const OutOfMemoryError& error) {
      ADD_FAILURE() << error.message();
      return true;
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("load_onnx"), std::string::npos) << error.message();
      return true;
    }
  }
  std::string refusal_of(std::string_view bytes) {
    return message_of([&] { load_onnx(with(bytes)); });
  }
  void expect_refusal(std::string_view bytes, const std::string& part) {
    const std::string message = refusal_of(bytes);
    EXPECT_NE(message.find(part), std::string::npos) << message << "\nwithout: " << part;
  }

  const int file_ = memfd_create("x.onnx", MFD_CLOEXEC);
};

// What follows the graph and the versions is only told to people.
TEST_F(HostileOnnx, TruncatedOnesAreRefused) {
  for (std::string name : {"mlp.onnx", "branch.onnx", "block.onnx"}) {
    const std::string bytes = contents_of(name);
    ASSERT_FALSE(is_refused(bytes)) << name;
    for (size_t size = 0; size + 16 < bytes.size(); size += 5)
      EXPECT_TRUE(is_refused(bytes.substr(0, size))) << name << " " << size;
  }
}

TEST_F(HostileOnnx, DamagedBytesAreNoCrash) {
  std::mt19937 random(1);
  for (std::string name : {"mlp.onnx", "conv_net.onnx", "block.onnx", "branch.onnx", "shapes.onnx"}) {
    const std::string bytes = contents_of(name);
    int refused = 0;
    for (int i = 0; i < 1000; ++i) {
      std::string damaged = bytes;
      damaged[random() % damaged.size()] ^= char(1 + random() % 255);
      refused += is_refused(damaged);
    }
    EXPECT_GT(refused, 100) << name;  // most bytes are weights
  }
}

// What a damaged file runs is what it says, or an Error.
TEST_F(HostileOnnx, DamagedModelsRunOrThrow) {
  std::mt19937 random(2);
  const std::string bytes = contents_of("shapes.onnx");
  for (int i = 0; i < 300; ++i) {
    std::string damaged = bytes;
    damaged[random() % damaged.size()] ^= char(1 << random() % 8);
    try {
      ExportedModel model = load_onnx(with(damaged));
      model->forward(ones({4, 6}));
    } catch (const Error&) {
    }
  }
}

// --- memory

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The address space is bounded while a file of 16 MB is read that is damaged where it tells sizes and counts.
TEST_F(HostileOnnx, MemoryIsWithinTwiceTheFile) {
  constexpr size_t kWeights = 16 << 20;
  const std::string tensor =
      number(1, int64_t(kWeights / 4)) + number(2, 1) + field(8, "w") + field(9, std::string(kWeights, '\0'));
  const std::string graph = graph_of({node("Mul", {"x", "w"}, {"y"})}, kEnds + field(5, tensor));
  const std::string bytes = model_of(graph);
  ASSERT_FALSE(is_refused(bytes));
  const size_t weights = bytes.find(std::string(64, '\0'));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  std::ifstream status("/proc/self/statm");
  size_t pages = 0;
  status >> pages;
  const size_t slack = 8 << 20;
  rlimit bounded = before;
  bounded.rlim_cur = pages * 4096 + 2 * bytes.size() + slack;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &bounded), 0);
  std::mt19937 random(3);
  std::string damaged = bytes;
  for (int i = 0; i < 200; ++i) {
    const size_t tail = bytes.size() - weights - kWeights, at = random() % (weights + tail);
    const size_t place = at < weights ? at : at + kWeights;
    damaged[place] = char(damaged[place] ^ (1 + random() % 255));
    is_refused(damaged);
    damaged[place] = bytes[place];
  }
  setrlimit(RLIMIT_AS, &before);
}
#endif

TEST_F(HostileOnnx, SizesThatLieAreRefused) {
  auto with_tensor = [&](const std::string& tensor) {
    return model_of(graph_of({node("Mul", {"x", "w"}, {"y"})}, kEnds + field(5, tensor + field(8, "w"))));
  };
  const std::string data = field(9, std::string(8, '\0')), floats = number(2, 1);
  EXPECT_FALSE(is_refused(with_tensor(number(1, 2) + floats + data)));
  expect_refusal(with_tensor(number(1, 3) + floats + data), "want 3 elements of 4 bytes, and there are 8 bytes");
  expect_refusal(with_tensor(number(1, int64_t(1) << 40) + floats + data),
                 "elements of 4 bytes, and there are 8 bytes");
  expect_refusal(with_tensor(number(1, int64_t(1) << 40) + number(1, int64_t(1) << 40) + floats + data),
                 "the tensor 'w'");
  expect_refusal(with_tensor(number(1, -2) + floats + data), "the tensor 'w'");
  expect_refusal(with_tensor(number(1, 2) + floats), "there are 0 bytes");
  expect_refusal(with_tensor(number(1, 2) + number(2, 8) + data), "it is string, a type that Sinter has not");
  expect_refusal(with_tensor(number(1, 2) + number(2, 99) + data), "of an unknown type");
  expect_refusal(with_tensor(number(1, 8) + number(2, 9) + field(9, std::string(8, '\2'))), "neither true nor false");
  std::string ranks;
  for (int i = 0; i < 100; ++i) ranks += number(1, 1);
  expect_refusal(with_tensor(ranks + floats + data), "too many dimensions");
  // Lengths beyond the end, and counts without anything behind them.
  expect_refusal(number(1, 10) + varint(7 << 3 | 2) + varint(uint64_t(1) << 31), "end of buffer");
  expect_refusal(number(1, 10) + varint(7 << 3 | 2) + std::string(20, '\xff'), "is damaged");
  expect_refusal(varint(7 << 3) + varint(1), "of the wrong kind");
}

TEST_F(HostileOnnx, DataOutsideStaysInTheFolder) {
  OwnDirectory own;
  auto text = [](const std::string& key, const std::string& content) {
    return field(13, field(1, key) + field(2, content));
  };
  auto refusal = [&](const std::string& outside) {
    const std::string tensor = number(1, 2) + number(2, 1) + field(8, "w") + number(14, 1) + outside;
    std::ofstream(own.file("m.onnx"), std::ios::binary)
        << model_of(graph_of({node("Mul", {"x", "w"}, {"y"})}, kEnds + field(5, tensor)));
    try {
      load_onnx(own.file("m.onnx"));
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  std::ofstream(own.file("w.bin"), std::ios::binary) << std::string(8, '\0');
  EXPECT_EQ(refusal(text("location", "w.bin")), "");
  EXPECT_EQ(refusal(text("location", "w.bin") + text("offset", "0") + text("length", "8")), "");
  EXPECT_NE(refusal(text("location", "/etc/passwd")).find("no file beside the model"), std::string::npos);
  EXPECT_NE(refusal(text("location", "../w.bin")).find("leaves the folder"), std::string::npos);
  EXPECT_NE(refusal("").find("no file beside the model"), std::string::npos);
  EXPECT_NE(refusal(text("location", "none.bin")).find("none.bin"), std::string::npos);
  EXPECT_NE(refusal(text("location", "w.bin") + text("offset", "9")).find("begins behind the end"), std::string::npos);
  EXPECT_NE(refusal(text("location", "w.bin") + text("offset", "4")).find("there are 4 bytes"), std::string::npos);
  EXPECT_NE(refusal(text("location", "w.bin") + text("length", "99999999999999999999")).find("is no number"),
            std::string::npos);
  EXPECT_NE(refusal(text("location", "w.bin") + text("length", "18446744073709551615")).find("behind the end"),
            std::string::npos);
}

// --- names

TEST_F(HostileOnnx, ValuesAreThereBeforeTheyAreUsed) {
  auto refused = [&](const std::vector<std::string>& nodes, const std::string& part) {
    expect_refusal(model_of(graph_of(nodes, kEnds)), part);
  };
  EXPECT_FALSE(is_refused(model_of(graph_of({node("Relu", {"x"}, {"y"})}, kEnds))));
  refused({node("Relu", {"z"}, {"y"}), node("Relu", {"y"}, {"z"})}, "'z' is used before it is there");
  refused({node("Relu", {"y"}, {"y"})}, "'y' is used before it is there");
  refused({node("Relu", {"x"}, {"y"}), node("Relu", {"x"}, {"y"})}, "two values are named 'y'");
  refused({node("Relu", {"x"}, {"x"})}, "two values are named 'x'");
  refused({}, "'y' is used before it is there");
  expect_refusal(model_of(graph_of({node("Relu", {"x"}, {"y"})}, field(12, value("y")))),
                 "'x' is used before it is there");
  expect_refusal(model_of(graph_of({}, field(11, value("x")))), "it gives no results");
  refused({node("Relu", {}, {"y"})}, "lacks 'X'");
  refused({node("", {"x"}, {"y"})}, "a node has no operator");
  refused({node("Relu", {"x"}, {"y"}, field(5, field(1, "slope") + number(3, 1) + number(20, 2)))},
          "has no parameter 'slope'");
}

TEST_F(HostileOnnx, NestingEnds) {
  std::string graph = graph_of({}, field(12, value("x")));
  for (int i = 0; i < 2000; ++i)
    graph = graph_of({node("If", {"x"}, {"y"}, graph_attribute("then_branch", graph))}, field(12, value("y")));
  expect_refusal(model_of(graph), "nested too deeply");
}

std::string function_of(const std::string& name, const std::vector<std::string>& nodes) {
  std::string out = field(1, name) + field(4, "x") + field(5, "y") + field(10, "own") + field(9, number(2, 20)) +
                    field(9, field(1, "own") + number(2, 1));
  for (auto& each : nodes) out += field(7, each);
  return field(25, out);
}

TEST_F(HostileOnnx, FunctionsEnd) {
  const std::string own = field(7, "own"), calls = graph_of({node("f0", {"x"}, {"y"}, own)}, kEnds);
  EXPECT_FALSE(is_refused(model_of(calls, function_of("f0", {node("Relu", {"x"}, {"y"})}))));
  expect_refusal(model_of(calls, function_of("f0", {node("f0", {"x"}, {"y"}, own)})), "the function 'f0' calls itself");
  // Each calls the next one twice: what a file of two kilobytes comes to.
  std::string functions;
  for (int i = 0; i < 30; ++i) {
    const std::string next = "f" + std::to_string(i + 1);
    functions += function_of("f" + std::to_string(i), {node(next, {"x"}, {"z"}, own), node(next, {"z"}, {"y"}, own)});
  }
  functions += function_of("f30", {node("Relu", {"x"}, {"y"})});
  expect_refusal(model_of(calls, functions), "come to more than");
  expect_refusal(model_of(calls, function_of("f0", {node("Relu", {"x"}, {"z"})})), "'y' is used before it is there");
}

TEST_F(HostileOnnx, MissingOperatorsAreCounted) {
  const std::string nodes =
      graph_of({node("Nope", {"x"}, {"a"}), node("Nope", {"a"}, {"b"}), node("Relu", {"b"}, {"y"})}, kEnds);
  expect_refusal(model_of(nodes), "calls 1 function that Sinter has not:\n  onnx.Nope (2 times)");
  expect_refusal(number(1, 10) + field(7, nodes), "names no version of the operators");
  expect_refusal(number(1, 10) + field(7, nodes) + field(8, number(2, 99)), "written with version 99 of the operators");
  expect_refusal(number(1, 10) + field(7, graph_of({node("Softmax", {"x"}, {"y"})}, kEnds)) + field(8, number(2, 11)),
                 "onnx.Softmax (1 time)");
}

}  // namespace
}  // namespace sinter
