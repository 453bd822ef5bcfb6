// Eigenvalues of matrices that need not be symmetric. Complex numbers are pairs in the last dimension. The order of the
// eigenvalues and the phases of the eigenvectors, which have length 1, are open; they are fixed here, so that every
// implementation gives the same: of each vector the first large element is real and positive.
#include <cmath>
#include <numeric>

#include "sinter/ops/complex_call.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/dense.h"
#include "sinter/ops/factorizations.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/matrices.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

struct EigAttrs {
  bool vectors = true;
  bool pairs = false;  // the matrix is complex
  SINTER_FIELDS(vectors, pairs)
};

// An element is large from this part of the largest on: where several are as large, rounding does not choose.
constexpr double kLarge = 0.6;

// The vector turned so that its first large element is real and positive.
template <class T>
void fix_phase(T* vector, int64_t n) {
  T largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::hypot(vector[2 * i], vector[2 * i + 1]));
  int64_t at = 0;
  while (at + 1 < n && !(std::hypot(vector[2 * at], vector[2 * at + 1]) > T(kLarge) * largest)) ++at;
  const T size = std::hypot(vector[2 * at], vector[2 * at + 1]);
  if (!(size > 0)) return;
  const T re = vector[2 * at] / size, im = vector[2 * at + 1] / size;
  for (int64_t i = 0; i < n; ++i) {
    const T a = vector[2 * i], b = vector[2 * i + 1];
    vector[2 * i] = a * re + b * im;
    vector[2 * i + 1] = b * re - a * im;
  }
  vector[2 * at + 1] = 0;
}

// Eigenvalues in ascending order along a direction in which few matrices have equal ones; those of a real matrix in
// conjugate pairs, which `values` has side by side.
template <class T>
std::vector<int64_t> order_of(const T* values, int64_t n, bool pairs) {
  auto key = [&](int64_t j) {
    const T im = values[2 * j + 1];
    return values[2 * j] + T(0.37) * (pairs ? im : std::abs(im));
  };
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t(0));
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return key(a) < key(b); });
  return order;
}

struct Eig : Opaque {
  static constexpr auto name = "linalg_eig";
  static constexpr auto autocast = Autocast::kWide;
  using Attributes = EigAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& attrs = call.as<EigAttrs>();
    const Type& a = call.inputs[0];
    Shape s = a.shape;
    if (attrs.pairs) {
      check(s.rank() >= 1 && s.back() == 2, "{}: the last dimension of {} must hold pairs", call.name(), a.shape);
      s.pop_back();
    }
    check(a.dtype == kFloat32 || a.dtype == kFloat64, "{}: takes f32 or f64, not {}; convert with .to(kFloat32)",
          call.name(), a.dtype);
    check(s.rank() >= 2 && s[s.size() - 2] == s.back(), "{}: the matrices must be square, got shape {}", call.name(),
          s);
    std::vector<Type> out{Type{a.dtype, batch_with(s, {s.back(), 2}), a.device}};
    if (attrs.vectors) out.push_back(Type{a.dtype, with_pairs(s), a.device});
    return out;
  }
  static Shape with_pairs(Shape s) {
    s.push_back(2);
    return s;
  }
  // Of `sizes` without those of pairs.
  template <class T>
  static void compute(const Dense<T>& dense, const MatrixSizes& s, bool pairs, const T* a, T* values, T* vectors) {
    const int64_t n = s.rows, width = pairs ? 2 : 1;
    if (n == 0) return;
    std::vector<int64_t> failed(size_t(s.count), 0);
    for_each_matrix(s.count, 25 * n * n * n, [&](int64_t at) {
      const T* from = a + at * n * n * width;
      std::vector<T> matrix(size_t(n * n * width)), numbers(size_t(2 * n)), found(size_t(vectors ? 2 * n * n : 0));
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
          for (int64_t part = 0; part < width; ++part)
            matrix[size_t((j * n + i) * width + part)] = from[(i * n + j) * width + part];
      // The search would never end.
      if (!std::all_of(matrix.begin(), matrix.end(), [](T v) { return std::isfinite(v); })) {
        failed[size_t(at)] = -1;
        return;
      }
      failed[size_t(at)] =
          (pairs ? dense.eig_of_pairs : dense.eig)(n, matrix.data(), numbers.data(), vectors ? found.data() : nullptr);
      const auto order = order_of(numbers.data(), n, pairs);
      for (int64_t j = 0; j < n; ++j) {
        const int64_t from = order[size_t(j)];
        for (int64_t part = 0; part < 2; ++part) values[(at * n + j) * 2 + part] = numbers[size_t(2 * from + part)];
        if (!vectors) continue;
        fix_phase(found.data() + 2 * from * n, n);
        for (int64_t i = 0; i < n; ++i)
          for (int64_t part = 0; part < 2; ++part)
            vectors[((at * n + i) * n + j) * 2 + part] = found[size_t((from * n + i) * 2 + part)];
      }
    });
    factor::check_eig(failed);
  }
  static MatrixSizes sizes_of(std::span<const int64_t> sizes, bool pairs) {
    return MatrixSizes(pairs ? sizes.first(sizes.size() - 1) : sizes);
  }
  static constexpr bool reads_host_memory = true;
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs& attrs) {
    auto& given = attrs.as<EigAttrs>();
    Tensor a = inputs[0].contiguous(), vectors;
    Shape s = a.sizes();
    if (given.pairs) s.pop_back();
    Tensor values = empty(batch_with(s, {s.back(), 2}), a.dtype());
    if (given.vectors) vectors = empty(with_pairs(s), a.dtype());
    visit_real(a.dtype(), [&]<class T>(T) {
      compute(dense<T>(), sizes_of(a.impl().sizes, given.pairs), given.pairs, a.data_ptr<T>(), values.data_ptr<T>(),
              vectors.defined() ? vectors.data_ptr<T>() : nullptr);
    });
    return vectors.defined() ? TensorList{values, vectors} : TensorList{values};
  }
  static void interpret(InterpretCall& c) {
    const bool pairs = c.call.as<EigAttrs>().pairs;
    compute(textbook<double>(), sizes_of(c.inputs[0]->sizes, pairs), pairs, c.inputs[0]->f.data(),
            c.outputs[0].f.data(), c.outputs.size() > 1 ? c.outputs[1].f.data() : nullptr);
  }
  // V⁻ᴴ [Vᴴ gV / conj(gaps) off the diagonal, gλ on it] Vᴴ.
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      auto& attrs = c.as<EigAttrs>();
      if (c.out(0).size(-2) == 0) return zeros_like(c[0]);
      Tensor values, vectors;
      if (attrs.vectors) {
        values = look_at_pairs(c.out(0)), vectors = look_at_pairs(c.out(1));
      } else {
        auto all = call_many<Eig>({c[0]}, EigAttrs{true, attrs.pairs});
        values = look_at_pairs(all[0]), vectors = look_at_pairs(all[1]);
      }
      Tensor adjoint = conj(factor::transposed(vectors));
      Tensor one = eye(values.size(-1), real(values).options()), middle;
      if (c.grad(0).defined()) middle = one * look_at_pairs(c.grad(0)).unsqueeze(-1);
      if (attrs.vectors && c.grad(1).defined()) {
        Tensor gaps = conj(values.unsqueeze(-2) - values.unsqueeze(-1)) + one;
        Tensor moved = (1 - one) * matmul(adjoint, free_part(vectors, look_at_pairs(c.grad(1)))) / gaps;
        middle = middle.defined() ? middle + moved : moved;
      }
      Tensor out = linalg::solve(adjoint, matmul(middle, adjoint));
      return attrs.pairs ? view_as_real(out) : real(out);
    });
  }
  // The gradient of vectors as of such that may have any length and phase. They keep their length, and one element
  // stays real: a function that asks for neither has the gradient it has by itself.
  static Tensor free_part(const Tensor& vectors, const Tensor& g) {
    Tensor along = (conj(vectors) * g).sum({-2}, true), sizes = abs(vectors).detach();
    Tensor at = argmax((sizes > kLarge * sizes.amax({-2}, true)).to(kInt64), -2, true);
    Tensor phase = imag(along) / gather(real(vectors), -2, at);
    Tensor turned = scatter(zeros_like(real(vectors)), -2, at, phase);
    return g - vectors * real(along) - complex(zeros_like(turned), turned);
  }
  static constexpr Tolerance tolerance{.ulp = 64, .absolute = 2e-3};
  // The batch is the longest dimension: matrices of equal rows have an eigenvalue of 0 many times.
  SINTER_SAMPLES("x[4, 2, 2] |", "x[5, 3, 3] |", "x[5, 3, 3] | vectors=false", "x[3, 2, 2, 2] | pairs=true",
                 "x[5, 3, 3, 2] | pairs=true, vectors=false", "x[1, 1] |", "x[0, 0] |", "x[0, 2, 2] | vectors=false")
};

}  // namespace

namespace factor {

std::tuple<Tensor, Tensor> eig(const Tensor& a) {
  const bool pairs = is_complex(a.dtype());
  auto out = call_many<Eig>({pairs ? view_as_real(a) : a}, EigAttrs{true, pairs});
  return {look_at_pairs(out[0]), look_at_pairs(out[1])};
}
Tensor eigvals(const Tensor& a) {
  const bool pairs = is_complex(a.dtype());
  return look_at_pairs(call<Eig>({pairs ? view_as_real(a) : a}, EigAttrs{false, pairs}));
}

}  // namespace factor

OpFamily eig_ops() {
  static const Op* const ops[] = {&op_of<Eig>};
  return ops;
}

}  // namespace sinter
