#pragma once
// Every operator of ONNX that Sinter has. An operator is one line of one of the lists below: its name, the version of the set of
// operators since which it means this, its inputs, its attributes, and a C++ function of them. An input and an attribute of the
// same meaning, as axes were before and after a version, are one parameter.
//
// The types of parameters say how tensors of the file are handed over: Tensor, and Tensor[] for all inputs that remain; State, what
// training would not change by a gradient; and numbers (int[], float, …) that the host has to know.
#include <optional>
#include <span>
#include <string_view>

#include "sinter/interop/aten/table.h"

namespace sinter::interop::onnx {

// The lists, by family. Each is one file.
std::span<const Function> elementwise_operators();
std::span<const Function> activation_operators();
std::span<const Function> size_operators();
std::span<const Function> shape_operators();
std::span<const Function> indexing_operators();
std::span<const Function> creation_operators();
std::span<const Function> reduction_operators();
std::span<const Function> matrix_operators();
std::span<const Function> convolution_operators();
std::span<const Function> pool_operators();
std::span<const Function> normalization_operators();
std::span<const Function> attention_operators();
std::span<const Function> recurrent_operators();
std::span<const Function> quantization_operators();
std::span<const Function> loss_operators();
std::span<const Function> image_operators();
std::span<const Function> signal_operators();

// The newest set of operators that the lists were compared with.
constexpr int64_t kNewestOpset = 28;

// The line that holds in this version of the operators, and its schema; null where there is none.
const Schema* find_schema(std::string_view domain, std::string_view op, int64_t version);
// A line by its full name: "onnx.Softmax.13".
std::optional<Callee> find_operator(std::string_view name);
// All lines, in the order of the lists.
std::vector<const Function*> all_operators();

}  // namespace sinter::interop::onnx
