#include "sinter/runtime/cpu/fft/fft.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/fft/memory.h"
#include "sinter/runtime/cpu/fft/run.h"
#include "sinter/runtime/cpu/flush_denormals.h"

namespace sinter::runtime {

using namespace fft_detail;

namespace {

// Tasks of fewer operations are not worth handing to another thread, and a line of fewer is not worth cutting.
constexpr double kTaskFlops = 1e5, kCutFlops = 2e6;

enum class Kind { kComplex, kRealToComplex, kComplexToReal };

// Elements of lines in T's: element k of a line has its real part at k * step and, where it is complex, its imaginary one
// `im` behind.
template <class T>
struct Side {
  T* data;
  bool is_complex;
  int64_t step, im, line, outer, lines;

  static Side complex(const FftSide<T>& s, int64_t lines) {
    return {s.data, true, 2 * s.stride, 1, 2 * s.line_stride, 2 * s.outer_stride, lines};
  }
  static Side real(const FftSide<T>& s, int64_t lines) {
    return {s.data, false, s.stride, 0, s.line_stride, s.outer_stride, lines};
  }
  // Elements 2 k and 2 k + 1 as the parts of one.
  static Side real_pairs(const FftSide<T>& s, int64_t lines) {
    return {s.data, true, 2 * s.stride, s.stride, s.line_stride, s.outer_stride, lines};
  }

  int64_t offset(int64_t index) const { return index / lines * outer + index % lines * line; }
  bool adjacent() const { return im == 1 && step == 2; }
};

// A side's lines of one block.
template <class T>
struct Lines {
  const Side<T>& side;
  int64_t count, lanes;
  std::array<int64_t, kMaxLanes> offsets;

  Lines(const Side<T>& s, int64_t first, int64_t count_, int64_t lanes_) : side(s), count(count_), lanes(lanes_) {
    for (int64_t i = 0; i < count; ++i) offsets[size_t(i)] = s.offset(first + i);
  }
  // Where the lanes lie side by side: as vectors without moving them, else without memory.
  Vectors<T> vectors() const {
    const int64_t gap = count == lanes ? offsets[1] - offsets[0] : 0;
    for (int64_t i = 2; i < count; ++i)
      if (offsets[size_t(i)] - offsets[size_t(i - 1)] != gap) return {};
    T* data = side.data + offsets[0];
    if (gap == 2 && side.im == 1) return {data, nullptr, side.step};
    if (gap == 1 && side.is_complex) return {data, data + side.im, side.step};
    return {};
  }
  bool are_rows(int64_t n) const {
    return side.adjacent() ? 2 * n >= lanes : !side.is_complex && side.step == 1 && n >= lanes;
  }
};

template <class T>
void load_block(const FftCore<T>& core, const Lines<const T>& in, int64_t n, Factors<T> factors, T* block) {
  const int64_t lanes = core.lanes;
  if (const auto vectors = in.vectors(); vectors.re) {
    core.move({vectors, {block, block + lanes, 2 * lanes}, n, factors});
  } else if (in.are_rows(n)) {
    const RowArgs<T> args{const_cast<T*>(in.side.data), in.offsets.data(), in.count, n, block, factors};
    in.side.is_complex ? core.load_rows(args) : core.load_real_rows(args);
  } else {
    for (int64_t k = 0; k < n; ++k, block += 2 * lanes) {
      std::fill(block, block + 2 * lanes, T(0));
      for (int64_t i = 0; i < in.count; ++i) {
        const T* at = in.side.data + in.offsets[size_t(i)] + k * in.side.step;
        block[i] = at[0] * factors.re;
        if (in.side.is_complex) block[lanes + i] = at[in.side.im] * factors.im;
      }
    }
  }
}

template <class T>
void store_block(const FftCore<T>& core, T* block, int64_t n, Factors<T> factors, const Lines<T>& out) {
  const int64_t lanes = core.lanes;
  if (const auto vectors = out.vectors(); vectors.re) {
    core.move({{block, block + lanes, 2 * lanes}, vectors, n, factors});
  } else if (out.are_rows(n)) {
    const RowArgs<T> args{out.side.data, out.offsets.data(), out.count, n, block, factors};
    out.side.is_complex ? core.store_rows(args) : core.store_real_rows(args);
  } else {
    for (int64_t k = 0; k < n; ++k, block += 2 * lanes)
      for (int64_t i = 0; i < out.count; ++i) {
        T* at = out.side.data + out.offsets[size_t(i)] + k * out.side.step;
        at[0] = block[i] * factors.re;
        if (out.side.is_complex) at[out.side.im] = block[lanes + i] * factors.im;
      }
  }
}

// Lines in memory of our own, element by element: neighbours share their cache lines.
template <class T>
struct Buffers {
  T* memory;
  int64_t n;

  Vectors<T> operator[](int64_t i) const { return line_at(memory + i * line_numbers(n), n); }
  void load(const Lines<const T>& in, int64_t count, Factors<T> factors) const {
    for (int64_t k = 0; k < count; ++k)
      for (int64_t i = 0; i < in.count; ++i) {
        const T* at = in.side.data + in.offsets[size_t(i)] + k * in.side.step;
        (*this)[i].re[k] = at[0] * factors.re;
        (*this)[i].im[k] = in.side.is_complex ? at[in.side.im] * factors.im : T(0);
      }
  }
  void store(const Lines<T>& out, int64_t count, Factors<T> factors) const {
    for (int64_t k = 0; k < count; ++k)
      for (int64_t i = 0; i < out.count; ++i) {
        T* at = out.side.data + out.offsets[size_t(i)] + k * out.side.step;
        at[0] = (*this)[i].re[k] * factors.re;
        if (out.side.is_complex) at[out.side.im] = (*this)[i].im[k] * factors.im;
      }
  }
};

struct Costs {
  double side_by_side, alone;
};
// Remembered, since small transforms take less time than to find them.
template <class T>
Costs costs_of(int64_t lanes, int64_t n) {
  struct Known {
    int64_t n = 0, lanes = 0;
    Costs costs;
  };
  thread_local std::array<Known, 32> known;
  Known& entry = known[size_t(n) % known.size()];
  if (entry.n != n || entry.lanes != lanes)
    entry = {n, lanes, {cost_side_by_side(lanes, n, sizeof(T)), cost_alone(lanes, n)}};
  return entry.costs;
}

template <class T>
class Transform {
 public:
  Transform(Kind kind, const FftShape& shape, const FftSide<const T>& in, const FftSide<T>& out,
            const FftOptions& options)
      : kind_(kind), core_(fft_core<T>(options.isa)), n_(shape.n), count_(shape.lines * shape.outer) {
    const bool even = n_ % 2 == 0, to_real = kind == Kind::kComplexToReal, real = kind != Kind::kComplex;
    const auto side_of = [&]<class S>(const FftSide<S>& side, bool is_real) {
      return !is_real ? Side<S>::complex(side, shape.lines)
             : even   ? Side<S>::real_pairs(side, shape.lines)
                      : Side<S>::real(side, shape.lines);
    };
    in_ = side_of(in, kind == Kind::kRealToComplex);
    out_ = side_of(out, to_real);
    halved_ = real && even;
    length_ = halved_ ? n_ / 2 : n_;
    read_ = to_real ? n_ / 2 + 1 : length_;
    written_ = kind == Kind::kRealToComplex ? n_ / 2 + 1 : length_;

    // All is done with the sign -1. Where it is another, input and output are conjugated. A complex line of half the length
    // gives a real one by the same combination of its elements before the way back as behind the way there, but for a factor.
    const T factor = T(kind == Kind::kRealToComplex && even ? options.factor / 2 : options.factor);
    const T sign = T(-options.sign);
    of_input_ = {1, kind == Kind::kRealToComplex ? 1 : sign};
    of_output_ = {factor, to_real ? -factor : sign * factor};
    plan_ = find_plan(core_, halved_ ? n_ : length_, way(), halved_);
  }

  void run() const {
    const double flops = 5 * double(length_) * std::log2(double(length_) + 1);
    if (plan_->way == Way::kSideBySide) {
      const int64_t lanes = core_.lanes, grain = std::max<int64_t>(1, int64_t(kTaskFlops / (flops * double(lanes))));
      parallel_for(0, ceil_div(count_, lanes), grain, [&](int64_t begin, int64_t end) {
        const FlushDenormals flush;
        const int64_t size = 2 * lanes * block_elements(*plan_);
        const Memory<T> memory(2 * size);
        for (int64_t i = begin; i < end; ++i)
          block(i * lanes, std::min(lanes, count_ - i * lanes), memory.data(), memory.data() + size);
      });
      return;
    }
    // Few long lines are cut among the threads, one after the other.
    const int64_t group = adjacent() ? 1 : kGroup, groups = ceil_div(count_, group);
    const bool cut = groups < num_threads() && flops >= kCutFlops;
    const int64_t grain = cut ? groups : std::max<int64_t>(1, int64_t(kTaskFlops / (flops * double(group))));
    parallel_for(0, groups, grain, [&](int64_t begin, int64_t end) {
      const FlushDenormals flush;
      const int64_t most = std::max(read_, std::max(length_, written_)), lines = (group + 1) * line_numbers(most);
      const Memory<T> memory(lines + line_scratch(*plan_));
      for (int64_t i = begin; i < end; ++i)
        alone(i * group, std::min(group, count_ - i * group), {memory.data(), most}, group, memory.data() + lines, cut);
    });
  }

 private:
  static constexpr int64_t kGroup = 8;

  bool adjacent() const { return in_.adjacent() && out_.adjacent(); }
  const Plan<T>& complex_plan() const { return halved_ ? *plan_->half : *plan_; }

  Way way() const {
    const Costs costs = costs_of<T>(core_.lanes, length_);
    // What is not adjacent is moved number by number, unless it is so across the lines.
    const bool across = std::abs(in_.line) <= 2 && std::abs(out_.line) <= 2;
    const double blocks = double(ceil_div(count_, core_.lanes)), n = double(length_);
    const double side_by_side = blocks * (costs.side_by_side + (adjacent() || across ? 0 : 40 * n));
    const double alone = double(count_) * (costs.alone + (adjacent() ? 0 : 6 * n));
    return side_by_side <= alone ? Way::kSideBySide : Way::kAlone;
  }

  // Elements of a line from those of the pairs of a real one, or the reverse; see CombineArgs. Reads in[length_], too.
  void combine(Vectors<const T> in, Vectors<T> out, bool along) const {
    const int64_t count = kind_ == Kind::kRealToComplex ? written_ : length_;
    core_.combine({in, out, count, length_, along, plan_->unpack.re, plan_->unpack.im});
  }

  // As many lines as there are lanes, or fewer.
  void block(int64_t first, int64_t count, T* a, T* b) const {
    const int64_t lanes = core_.lanes;
    const Lines<const T> in(in_, first, count, lanes);
    const Lines<T> out(out_, first, count, lanes);
    const Plan<T>& plan = complex_plan();
    const auto at = [&](T* block) { return Vectors<T>{block, block + lanes, 2 * lanes}; };
    Vectors<const T> x{};
    if (kind_ == Kind::kComplexToReal) {
      load_block(core_, in, read_, of_input_, a);
      std::fill(a + lanes, a + 2 * lanes, T(0));
      if (halved_) {
        T* last = a + 2 * lanes * length_;
        std::fill(last + lanes, last + 2 * lanes, T(0));
        combine(at(a), at(b), false);
      } else {
        for (int64_t k = 1; k < read_; ++k) {
          const T* from = a + 2 * lanes * k;
          T* to = a + 2 * lanes * (n_ - k);
          for (int64_t i = 0; i < lanes; ++i) to[i] = from[i], to[lanes + i] = -from[lanes + i];
        }
      }
      x = at(halved_ ? b : a);
    } else {
      x = in.vectors();
      if (!x.re || (!x.im && plan.padded)) {
        load_block(core_, in, length_, of_input_, a);
        x = at(a);
      }
    }
    const bool direct = kind_ == Kind::kComplex && !plan.padded;
    T* result =
        transform_block(plan, x, of_input_, direct ? pairs_only(out.vectors()) : Vectors<T>{}, of_output_, a, b);
    if (!result) return;
    if (kind_ == Kind::kRealToComplex && halved_) {
      std::copy(result, result + 2 * lanes, result + 2 * lanes * length_);
      T* other = result == a ? b : a;
      combine(at(result), at(other), false);
      result = other;
    }
    store_block(core_, result, written_, of_output_, out);
  }
  static Vectors<T> pairs_only(Vectors<T> vectors) { return vectors.im ? Vectors<T>{} : vectors; }

  // One line after the other. There is one more buffer than lines.
  void alone(int64_t first, int64_t count, const Buffers<T>& buffers, int64_t group, T* scratch, bool cut) const {
    const Lines<const T> in(in_, first, count, core_.lanes);
    const Lines<T> out(out_, first, count, core_.lanes);
    const bool to_real = kind_ == Kind::kComplexToReal, halve = kind_ == Kind::kRealToComplex && halved_;
    // Pairs that the transform itself reads and writes.
    const bool reads = in_.adjacent() && !to_real, writes = out_.adjacent() && written_ == length_;
    if (!in_.adjacent()) buffers.load(in, read_, of_input_);
    for (int64_t i = 0; i < count; ++i) {
      const T* from = in_.data + in.offsets[size_t(i)];
      T* to = out_.data + out.offsets[size_t(i)];
      const Vectors<T> own = buffers[i], other = buffers[group];
      Vectors<const T> x = own;
      if (reads) x = {from, nullptr, 2};
      if (to_real) {
        if (in_.adjacent()) load_line(core_, from, read_, of_input_, own);
        own.im[0] = 0;
        if (halved_) {
          own.im[length_] = 0;
          combine(own, other, true);
          x = other;
        } else {
          for (int64_t k = 1; k < read_; ++k) own.re[n_ - k] = own.re[k], own.im[n_ - k] = -own.im[k];
        }
      }
      const Vectors<T> y = writes ? Vectors<T>{to, nullptr, 2} : halve ? other : own;
      transform_line(complex_plan(), x, of_input_, y, of_output_, scratch, cut);
      if (halve) {
        other.re[length_] = other.re[0], other.im[length_] = other.im[0];
        combine(other, own, true);
      }
      if (out_.adjacent() && !writes) store_line<T>(core_, own, written_, of_output_, to);
    }
    if (!out_.adjacent()) buffers.store(out, written_, of_output_);
  }

  Kind kind_;
  const FftCore<T>& core_;
  int64_t n_, count_;
  Side<const T> in_;
  Side<T> out_;
  bool halved_;                      // a real line as a complex one of half the length
  int64_t length_, read_, written_;  // elements: of the complex transform, of the sides
  Factors<T> of_input_, of_output_;
  std::shared_ptr<const Plan<T>> plan_;
};

template <class T>
void transform(Kind kind, const FftShape& shape, const FftSide<const T>& in, const FftSide<T>& out,
               const FftOptions& options) {
  SINTER_INTERNAL_ASSERT(shape.n >= 1 && (options.sign == 1 || options.sign == -1));
  if (shape.lines > 0 && shape.outer > 0) Transform<T>(kind, shape, in, out, options).run();
}

}  // namespace

template <class T>
void fft_c2c(const FftShape& shape, const FftSide<const T>& in, const FftSide<T>& out, const FftOptions& options) {
  transform(Kind::kComplex, shape, in, out, options);
}
template <class T>
void fft_r2c(const FftShape& shape, const FftSide<const T>& in, const FftSide<T>& out, const FftOptions& options) {
  transform(Kind::kRealToComplex, shape, in, out, options);
}
template <class T>
void fft_c2r(const FftShape& shape, const FftSide<const T>& in, const FftSide<T>& out, const FftOptions& options) {
  transform(Kind::kComplexToReal, shape, in, out, options);
}

#define SINTER_FFT(T)                                                                                    \
  template void fft_c2c(const FftShape&, const FftSide<const T>&, const FftSide<T>&, const FftOptions&); \
  template void fft_r2c(const FftShape&, const FftSide<const T>&, const FftSide<T>&, const FftOptions&); \
  template void fft_c2r(const FftShape&, const FftSide<const T>&, const FftSide<T>&, const FftOptions&);
SINTER_FFT(float)
SINTER_FFT(double)

}  // namespace sinter::runtime
