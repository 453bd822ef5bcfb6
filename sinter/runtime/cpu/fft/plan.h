#pragma once
// What is known of a length before its transforms: the radices, and tables of factors. Internal to fft/.
#include <array>
#include <complex>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "sinter/runtime/cpu/fft/core.h"

namespace sinter::runtime::fft_detail {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// exp(-2 pi i k / n) for 0 <= k < n, each part to less than one unit in the last place.
class UnitRoots {
 public:
  explicit UnitRoots(int64_t n);
  std::complex<double> operator()(int64_t k) const;

 private:
  int64_t n_;
  double step_, step_low_;  // an eighth of a turn divided by n, in two parts
};

// Numbers that begin at a cache line.
template <class T>
class Table {
 public:
  Table() = default;
  explicit Table(int64_t size)
      : data_(static_cast<T*>(::operator new(size_t(size) * sizeof(T), std::align_val_t(kCacheLine)))), size_(size) {}
  T* data() const { return data_.get(); }
  int64_t size() const { return size_; }

 private:
  static constexpr size_t kCacheLine = 64;
  struct Free {
    void operator()(T* data) const { ::operator delete(data, std::align_val_t(kCacheLine)); }
  };
  std::unique_ptr<T, Free> data_;
  int64_t size_ = 0;
};

// Complex numbers, the imaginary parts behind the real ones; whole vectors of them may be read.
template <class T>
struct Coefficients {
  Table<T> table;
  const T *re = nullptr, *im = nullptr;
};

// A transform of a block.
template <class T>
struct BlockPlan {
  struct Step {
    int64_t radix, span, groups;
    int64_t twiddles, matrix;  // where they begin in `tables`
    std::array<Stage<T>, kVariants> variants;
  };
  int64_t n = 0;
  std::vector<Step> steps;
  std::vector<T> tables;
};

// How the lanes are used: for the same element of several lines, or for several elements of one line, which is a matrix in
// the memory's order: first its columns are transformed, then its rows.
enum class Way { kSideBySide, kAlone };

// A complex transform of n elements, or (with `half`) a real one of 2 * half->n.
template <class T>
struct Plan {
  const FftCore<T>* core = nullptr;
  int64_t n = 0;
  Way way = Way::kSideBySide;

  BlockPlan<T> block;          // kSideBySide
  BlockPlan<T> columns, rows;  // kAlone: columns of columns.n elements, rows of rows.n
  Table<T> turn, turn_steps;   // as TurnArgs has them

  // Bluestein: n has a large prime factor, and its transform is a convolution by transforms of this one's length.
  std::shared_ptr<const Plan> padded;
  Coefficients<T> chirp, filter;

  std::shared_ptr<const Plan> half;
  Coefficients<T> unpack;  // as CombineArgs has them

  int64_t bytes() const;
};

// The plan of a complex transform, or of a real one of even length. Kept for others to find.
template <class T>
std::shared_ptr<const Plan<T>> find_plan(const FftCore<T>& core, int64_t n, Way way, bool real);

// About how many vector instructions a transform takes: of as many lines as there are lanes, or of one.
double cost_side_by_side(int64_t lanes, int64_t n, int64_t bytes_per_number);
double cost_alone(int64_t lanes, int64_t n);

}  // namespace sinter::runtime::fft_detail
