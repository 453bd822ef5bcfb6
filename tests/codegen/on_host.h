#pragma once
// GPU kernels of an op's samples on the CPU (tests/support/gpu_on_host.h) against the referee.
#include "tests/codegen/nests.h"
#include "tests/support/gpu_on_host.h"

namespace sinter::testing {

// One application of an op with everything that its kernel is launched with.
struct OnHostCase {
  std::string what;
  Sample sample;
  std::vector<Tensor> operands;  // undefined for a number
  Tensor result;
  codegen::GpuKernelText kernel;
};

// The kernel of a sample whose operands lie like this; nothing where there are no elements.
std::optional<OnHostCase> on_host_case(Sample sample, MemoryLayout layout, const GpuFacts& facts,
                                       const std::string& name);

// What is wrong with the result; empty when nothing is.
std::string run_on_host(const OnHostCase& one, const KernelsOnHost& kernels);

// One of so many of the cases of an op with so many lanes: every dtype and layout of its samples, and where it joins elements,
// some that are long enough for several warps. Gives how many there were.
int expect_right_on_host(const Op& op, int lanes, uint64_t one_of);

// The ops that have kernels by their loops.
std::vector<const Op*> ops_with_loops();

}  // namespace sinter::testing
