#pragma once
// What lets a program be found without tracing the function: a text that stands for what the function is.
//
// It is sound only where the function does the same whenever this text, its arguments, the options and the
// properties of these tensors are the same: a model's is the text of its configuration, as long
// as nobody has changed its structure. The library's own code is part of every key.
#include <memory>
#include <string>
#include <vector>

#include "sinter/capture/function.h"
#include "sinter/tensor/tensor.h"

namespace sinter::capture {

struct Fingerprint {
  std::string text;
  // All that the function reaches by itself, by names that are the same in every process.
  std::vector<std::pair<std::string, Tensor>> tensors;
  // A program found this way is dropped when one of these changes, as a traced one would be.
  std::vector<IntrusivePtr<HostState>> states;
};

}  // namespace sinter::capture
