#include "sinter/ops/dense_plain.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

namespace sinter::plain {

namespace {

using Complex = std::complex<double>;

constexpr double kEps = std::numeric_limits<double>::epsilon();

// A square matrix, column after column.
template <class T>
struct Square {
  int64_t n;
  T* data;
  T& operator()(int64_t i, int64_t j) const { return data[j * n + i]; }
};

// --- symmetric matrices, by Bunch and Kaufman's choice of pivots

struct Pivot {
  int64_t row;   // comes to the place of the last row of the block
  int64_t size;  // of the block: 1 or 2; 0 for a column of zeros
};

Pivot choose_pivot(Square<double> a, int64_t k) {
  const double alpha = (1 + std::sqrt(17.0)) / 8;
  double head = std::abs(a(k, k)), below = 0;
  int64_t at = k;
  for (int64_t i = k + 1; i < a.n; ++i)
    if (std::abs(a(i, k)) > below) below = std::abs(a(i, k)), at = i;
  if (std::max(head, below) == 0 || std::isnan(head)) return {k, 0};
  if (head >= alpha * below) return {k, 1};
  double beside = 0;  // the largest of that row's other elements
  for (int64_t j = k; j < at; ++j) beside = std::max(beside, std::abs(a(at, j)));
  for (int64_t i = at + 1; i < a.n; ++i) beside = std::max(beside, std::abs(a(i, at)));
  if (head >= alpha * below * (below / beside)) return {k, 1};
  return {at, std::abs(a(at, at)) >= alpha * beside ? 1 : 2};
}

// Rows and columns p < q of the symmetric matrix that is left exchanged, in its lower triangle.
void exchange(Square<double> a, int64_t p, int64_t q) {
  for (int64_t i = q + 1; i < a.n; ++i) std::swap(a(i, p), a(i, q));
  for (int64_t j = p + 1; j < q; ++j) std::swap(a(j, p), a(q, j));
  std::swap(a(p, p), a(q, q));
}

void eliminate_one(Square<double> a, int64_t k) {
  const double inverse = 1 / a(k, k);
  for (int64_t j = k + 1; j < a.n; ++j)
    for (int64_t i = j; i < a.n; ++i) a(i, j) -= a(i, k) * inverse * a(j, k);
  for (int64_t i = k + 1; i < a.n; ++i) a(i, k) *= inverse;
}

void eliminate_two(Square<double> a, int64_t k) {
  // The inverse of the block, all of it over its element off the diagonal.
  const double off = a(k + 1, k), first = a(k + 1, k + 1) / off, second = a(k, k) / off;
  const double scale = 1 / (first * second - 1) / off;
  for (int64_t j = k + 2; j < a.n; ++j) {
    const double left = scale * (first * a(j, k) - a(j, k + 1)), right = scale * (second * a(j, k + 1) - a(j, k));
    for (int64_t i = j; i < a.n; ++i) a(i, j) -= a(i, k) * left + a(i, k + 1) * right;
    a(j, k) = left;
    a(j, k + 1) = right;
  }
}

// --- any matrices, by a unitary similarity that makes them triangular

// The rotation of two coordinates that takes (f, g) to (r, 0).
struct Rotation {
  Complex f, g;
  Rotation(Complex first, Complex second) : f(1), g(0) {
    const double r = std::hypot(std::abs(first), std::abs(second));
    if (r > 0) f = first / r, g = second / r;
  }
  void of_rows(Square<Complex> a, int64_t p, int64_t first_column) const {
    for (int64_t j = first_column; j < a.n; ++j) {
      const Complex x = a(p, j), y = a(p + 1, j);
      a(p, j) = std::conj(f) * x + std::conj(g) * y;
      a(p + 1, j) = f * y - g * x;
    }
  }
  void of_columns(Square<Complex> a, int64_t p, int64_t rows) const {
    for (int64_t i = 0; i < rows; ++i) {
      const Complex x = a(i, p), y = a(i, p + 1);
      a(i, p) = f * x + g * y;
      a(i, p + 1) = std::conj(f) * y - std::conj(g) * x;
    }
  }
};

// Zeros below the first subdiagonal of t; q is multiplied by what that takes.
void make_hessenberg(Square<Complex> t, Square<Complex> q) {
  for (int64_t k = 0; k + 2 < t.n; ++k)
    for (int64_t i = t.n - 1; i >= k + 2; --i) {
      if (t(i, k) == 0.0) continue;
      const Rotation turn(t(i - 1, k), t(i, k));
      turn.of_rows(t, i - 1, k);
      turn.of_columns(t, i - 1, t.n);
      turn.of_columns(q, i - 1, t.n);
      t(i, k) = 0;
    }
}

// The eigenvalue of the last 2×2 block up to `last` that is nearer to its last element.
Complex shift_of(Square<Complex> t, int64_t last) {
  const Complex a = t(last - 1, last - 1), d = t(last, last), half = (a - d) / 2.0;
  const Complex root = std::sqrt(half * half + t(last - 1, last) * t(last, last - 1));
  const Complex far = std::abs(half + root) > std::abs(half - root) ? half + root : half - root;
  return far == 0.0 ? d : d - t(last - 1, last) * t(last, last - 1) / far;
}

// QR steps until t is triangular; false where too many would be needed.
bool make_triangular(Square<Complex> t, Square<Complex> q) {
  constexpr int kMostSteps = 300;
  make_hessenberg(t, q);
  int steps = 0;
  for (int64_t last = t.n - 1; last > 0;) {
    int64_t first = last;
    while (first > 0 &&
           std::abs(t(first, first - 1)) > kEps * (std::abs(t(first, first)) + std::abs(t(first - 1, first - 1))))
      --first;
    if (first > 0) t(first, first - 1) = 0;
    if (first == last) {
      --last;
      steps = 0;
      continue;
    }
    if (++steps > kMostSteps) return false;
    // Now and then another shift, for matrices that the usual one turns in circles.
    const Complex shift = steps % 10 == 0 ? t(last, last) + std::abs(t(last, last - 1)) : shift_of(t, last);
    Complex head = t(first, first) - shift, below = t(first + 1, first);
    for (int64_t k = first; k < last; ++k) {
      const Rotation turn(head, below);
      turn.of_rows(t, k, std::max(first, k - 1));
      turn.of_columns(t, k, std::min(last, k + 2) + 1);
      turn.of_columns(q, k, t.n);
      if (k > first) t(k + 1, k - 1) = 0;
      if (k + 1 < last) head = t(k + 1, k), below = t(k + 2, k);
    }
  }
  return true;
}

// The eigenvector of t's element k, by substitution.
std::vector<Complex> vector_of(Square<Complex> t, int64_t k, double smallest) {
  constexpr double kLarge = 1e100;
  std::vector<Complex> x(size_t(t.n), Complex(0));
  x[size_t(k)] = 1;
  for (int64_t i = k - 1; i >= 0; --i) {
    Complex sum = 0, gap = t(k, k) - t(i, i);
    for (int64_t j = i + 1; j <= k; ++j) sum += t(i, j) * x[size_t(j)];
    if (std::abs(gap) < smallest) gap = smallest;
    x[size_t(i)] = sum / gap;
    if (std::abs(x[size_t(i)]) > kLarge)
      for (Complex& v : x) v /= kLarge;
  }
  return x;
}

void normalize(Complex* vector, int64_t n) {
  double largest = 0, sum = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(vector[i]));
  if (largest == 0) return;
  for (int64_t i = 0; i < n; ++i) sum += std::norm(vector[i] / largest);
  for (int64_t i = 0; i < n; ++i) vector[i] /= largest * std::sqrt(sum);
}

int eigen(Square<Complex> a, Complex* values, Complex* vectors) {
  const int64_t n = a.n;
  std::vector<Complex> turned(size_t(n * n), Complex(0));
  Square<Complex> q{n, turned.data()};
  for (int64_t i = 0; i < n; ++i) q(i, i) = 1;
  if (!make_triangular(a, q)) return 1;
  double largest = 0;
  for (int64_t j = 0; j < n; ++j) {
    values[j] = a(j, j);
    for (int64_t i = 0; i <= j; ++i) largest = std::max(largest, std::abs(a(i, j)));
  }
  if (!vectors) return 0;
  for (int64_t k = 0; k < n; ++k) {
    const auto x = vector_of(a, k, std::max(kEps * largest, std::numeric_limits<double>::min()));
    Complex* out = vectors + k * n;
    std::fill(out, out + n, Complex(0));
    for (int64_t j = 0; j <= k; ++j)
      for (int64_t i = 0; i < n; ++i) out[i] += q(i, j) * x[size_t(j)];
    normalize(out, n);
  }
  return 0;
}

// What rounding has made of a vector of real numbers times a complex one.
void make_real(Complex* vector, int64_t n) {
  const Complex* largest =
      std::max_element(vector, vector + n, [](Complex a, Complex b) { return std::norm(a) < std::norm(b); });
  const Complex turn = std::abs(*largest) > 0 ? std::conj(*largest) / std::abs(*largest) : 1;
  for (int64_t i = 0; i < n; ++i) vector[i] = (vector[i] * turn).real();
}

// Of a real matrix: eigenvalues in conjugate pairs side by side, the others without an imaginary part.
void pair_up(int64_t n, Complex* values, Complex* vectors) {
  for (int64_t k = 0; k < n; ++k) {
    int64_t nearest = k;
    for (int64_t j = k + 1; j < n; ++j)
      if (std::abs(values[j] - std::conj(values[k])) < std::abs(values[nearest] - std::conj(values[k]))) nearest = j;
    if (nearest == k) {
      values[k] = values[k].real();
      if (vectors) make_real(vectors + k * n, n);
      continue;
    }
    for (int64_t j = nearest; j > k + 1; --j) {
      std::swap(values[j], values[j - 1]);
      if (vectors) std::swap_ranges(vectors + j * n, vectors + (j + 1) * n, vectors + (j - 1) * n);
    }
    const bool turned = values[k].imag() < 0;
    if (turned) values[k] = std::conj(values[k]);
    values[k + 1] = std::conj(values[k]);
    for (int64_t i = 0; vectors && i < n; ++i) {
      Complex &first = vectors[k * n + i], &second = vectors[(k + 1) * n + i];
      if (turned) first = std::conj(first);
      second = std::conj(first);
    }
    ++k;
  }
}

}  // namespace

int ldl(int64_t n, double* data, int32_t* pivots) {
  Square<double> a{n, data};
  int failed = 0;
  for (int64_t k = 0; k < n;) {
    const Pivot pivot = choose_pivot(a, k);
    const int64_t last = k + std::max<int64_t>(pivot.size, 1) - 1;
    if (pivot.size == 0 && !failed) failed = int(k) + 1;
    if (pivot.row != last) {
      exchange(a, last, pivot.row);
      if (pivot.size == 2) std::swap(a(last, k), a(pivot.row, k));
    }
    if (pivot.size == 1) eliminate_one(a, k);
    if (pivot.size == 2) eliminate_two(a, k);
    for (int64_t row = k; row <= last; ++row) pivots[row] = int32_t(pivot.size == 2 ? -(pivot.row + 1) : pivot.row + 1);
    k = last + 1;
  }
  return failed;
}

int eig(int64_t n, double* data, double* values, double* vectors) {
  std::vector<Complex> a(data, data + n * n);
  auto *found = reinterpret_cast<Complex*>(values), *columns = reinterpret_cast<Complex*>(vectors);
  if (int failed = eigen({n, a.data()}, found, columns)) return failed;
  pair_up(n, found, columns);
  return 0;
}

int eig_of_pairs(int64_t n, double* data, double* values, double* vectors) {
  return eigen({n, reinterpret_cast<Complex*>(data)}, reinterpret_cast<Complex*>(values),
               reinterpret_cast<Complex*>(vectors));
}

}  // namespace sinter::plain
