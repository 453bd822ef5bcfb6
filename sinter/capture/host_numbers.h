#pragma once
// Numbers that host code computes while a program runs, from item<double>() or from memory that it reads, and gives back to
// ops. A number is a constant of the graph while it is always the same one, and a value of it once it has been another:
// then the kernel takes it as an operand, and no new number needs a new one.
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "sinter/tensor/scalar.h"

namespace sinter::capture {

class HostNumbers {
 public:
  // A call begins; its number.
  uint64_t begin_call();
  // Whether the number that the program takes is a value. `place` tells which segment takes it, `point` where in it; a
  // mistake about either costs speed alone.
  bool is_value(uint64_t call, uint64_t place, uint64_t point, const Scalar& number);

 private:
  struct Point {
    Scalar first;
    bool varies = false;
  };
  struct Place {
    std::unordered_map<uint64_t, Point> points;
    uint64_t last_call = 0;  // in which a number varied for the first time
    int calls = 0;           // how many such there were
  };

  std::mutex mutex_;
  uint64_t calls_ = 0;
  size_t point_count_ = 0;
  std::unordered_map<uint64_t, Place> places_;
};

}  // namespace sinter::capture
