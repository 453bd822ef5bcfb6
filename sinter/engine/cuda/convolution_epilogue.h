#pragma once
// What follows a convolution, where it is what libraries do while they still have the sums: a scale and a shift a channel
// (a bias, a batch norm with known statistics), a residual, a ReLU.
#include <optional>
#include <span>
#include <vector>

#include "sinter/graph/graph.h"

namespace sinter {

struct ConvolutionEpilogue {
  // Of every channel, by a number of its own.
  struct Change {
    enum class Kind : uint8_t { kAdd, kSubtract, kMultiply, kDivide };
    Kind kind;
    Value by;
  };
  std::vector<Change> changes;       // one after the other
  std::vector<int> channel_inputs;   // inputs of the body that the numbers are computed from
  int residual = -1;                 // an input of the body; -1: none
  bool relu = false;                 // the last
};

// `body`: of an epilogue, whose first input is the convolution. Nothing where it does anything else. Roundings between its ops
// are left out.
std::optional<ConvolutionEpilogue> find_epilogue(const Graph& body);

// All changes in one: scale * x + shift. In f32, one number a channel each; undefined where it would be 1 or 0.
struct ChannelNumbers {
  Tensor scale, shift;
};
// `inputs`: those of the body, of which only channel_inputs are read.
ChannelNumbers channel_numbers(const ConvolutionEpilogue& epilogue, const Graph& body, std::span<const Tensor> inputs,
                               int64_t channels, Device device);

}  // namespace sinter
