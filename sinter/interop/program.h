#pragma once
// An exported program as its file tells it, checked: every value is defined once and before it is used, every name of the
// signature has its memory. What the functions it calls mean is not known here.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sinter/interop/expression.h"
#include "sinter/interop/value.h"

namespace sinter::interop {

struct TensorInfo {
  std::optional<DType> dtype;  // none when Sinter has no such type
  std::string dtype_text;
  std::vector<Expression> sizes = {};
  std::vector<int64_t> seen = {};  // the sizes it had when the program was exported; 1 where the file does not tell
  bool has_rank = true;            // else the file tells no sizes at all
};

// A value of a graph by its number: inputs first, then results in the order of the nodes.
struct Slot {
  size_t number = 0;
};

struct ProgramGraph;
struct Operand;
using OperandList = std::vector<Operand>;
struct Operand {
  std::variant<Value, Slot, OperandList, std::shared_ptr<const ProgramGraph>> held;
};

struct NamedOperand {
  std::string name;  // of the parameter; empty for those of control flow
  Operand operand;
};

// What a node gives: a value, or a list of them that comes as one result. Values that nobody names have no slot.
struct NodeResult {
  bool is_list = false;
  std::vector<std::optional<Slot>> slots = {};
};

struct ProgramNode {
  std::string name, target;  // "add_1", "aten.add.Tensor"
  std::vector<NamedOperand> inputs;
  std::vector<NodeResult> results;
};

struct ProgramGraph {
  std::vector<std::string> names;                  // of its values
  size_t input_count = 0;                          // the first of them
  std::vector<std::optional<TensorInfo>> tensors;  // of the inputs, where they are tensors
  std::vector<ProgramNode> nodes;
  OperandList outputs;
};

struct ProgramInput {
  enum class Kind : uint8_t { kParameter, kBuffer, kConstant, kUser, kNumber, kPlain };
  Kind kind = Kind::kUser;
  std::string name = {};  // of the parameter, buffer, constant or input
  bool persistent = true;
  Value plain = {};  // of an input that is no tensor: what the program was exported with
  bool is_real = false;  // of a number that may change
  std::optional<Expression> number = {};  // the same: what is known of it, if anything
};

struct ProgramOutput {
  enum class Kind : uint8_t { kUser, kState, kInput };
  enum class Holds : uint8_t { kTensor, kInteger, kReal, kNothing };
  Kind kind = Kind::kUser;
  std::string target = {};  // the parameter or buffer, or the user's input, that takes the value
  Holds holds = Holds::kTensor;
  // Of a dense tensor: its dimensions in the order in which they lie in memory, the outermost first; empty where it is not known.
  std::vector<int64_t> order = {};
};

struct SymbolRange {
  std::optional<int64_t> low, high;
};

struct ExportedProgram {
  ProgramGraph graph;
  std::vector<ProgramInput> inputs;    // one for each input of the graph
  std::vector<ProgramOutput> outputs;  // one for each output
  std::map<std::string, SymbolRange> ranges;
  std::string exporter;  // "PyTorch 2.9.0"
};

// The inputs of its user as text: "x: float32[s77, 16], s77 from 2 to 64".
std::vector<std::string> describe_inputs(const ExportedProgram& program);
// "float32[s77, 16]".
std::string describe(const TensorInfo& info);

// Reads models/*.json. `name` stands for the file in errors.
ExportedProgram read_program(std::string_view json, const std::string& name);

}  // namespace sinter::interop
