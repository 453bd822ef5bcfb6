#pragma once
// A line search for a point with the strong Wolfe conditions: the loss has fallen, and its slope is much flatter. As PyTorch's.
#include <functional>

#include "sinter/tensor/tensor.h"

namespace sinter::optim {

// A point of the line: how far along, the loss there, its gradient, and that along the line.
struct LinePoint {
  double at = 0, loss = 0;
  Tensor gradient = {};
  double slope = 0;
};

// From the point at 0, whose slope is negative, with `first` tried first; `reach` is the largest element of the direction.
LinePoint strong_wolfe(const std::function<LinePoint(double)>& evaluate, const LinePoint& start, double first, double reach);

}  // namespace sinter::optim
