#include "sinter/ops/dense.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <vector>

#include "sinter/ops/dense_plain.h"

namespace sinter {

namespace {

// The columns of a matrix.
struct Columns {
  int64_t rows;
  double* data;
  double& operator()(int64_t i, int64_t j) const { return data[j * rows + i]; }
  double* column(int64_t j) const { return data + j * rows; }
};

double dot(int64_t n, const double* a, const double* b) { return std::inner_product(a, a + n, b, 0.0); }

// --- elimination

int lu(int64_t m, int64_t n, double* data, int32_t* pivots) {
  Columns a{m, data};
  int failed = 0;
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < m; ++i)
      if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
    pivots[k] = int32_t(best) + 1;
    if (a(best, k) == 0) {
      if (!failed) failed = int(k) + 1;
      continue;
    }
    if (best != k)
      for (int64_t j = 0; j < n; ++j) std::swap(a(k, j), a(best, j));
    for (int64_t i = k + 1; i < m; ++i) a(i, k) /= a(k, k);
    for (int64_t j = k + 1; j < n; ++j)
      for (int64_t i = k + 1; i < m; ++i) a(i, j) -= a(i, k) * a(k, j);
  }
  return failed;
}

int cholesky(int64_t n, double* data) {
  Columns a{n, data};
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t k = 0; k < j; ++k)
      for (int64_t i = j; i < n; ++i) a(i, j) -= a(i, k) * a(j, k);
    if (!(a(j, j) > 0)) return int(j) + 1;
    double root = std::sqrt(a(j, j));
    for (int64_t i = j; i < n; ++i) a(i, j) /= root;
  }
  return 0;
}

void solve_triangular(int64_t n, int64_t columns, const double* data, double* b, bool upper, bool unit) {
  Columns a{n, const_cast<double*>(data)}, x{n, b};
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t step = 0; step < n; ++step) {
      int64_t k = upper ? n - 1 - step : step;
      if (!unit) x(k, c) /= a(k, k);
      for (int64_t i = upper ? 0 : k + 1; i < (upper ? k : n); ++i) x(i, c) -= a(i, k) * x(k, c);
    }
}

void multiply(int64_t n, const double* a, const double* b, double* c) {
  std::fill(c, c + n * n, 0.0);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t k = 0; k < n; ++k)
      for (int64_t i = 0; i < n; ++i) c[j * n + i] += a[k * n + i] * b[j * n + k];
}

// --- reflections

// Applies 1 - tau v vᵀ, v being 1 and then what is below (k, k), to the columns of x from `first` on.
void reflect(Columns a, int64_t k, double tau, Columns x, int64_t first, int64_t columns) {
  for (int64_t j = first; j < columns; ++j) {
    double sum = x(k, j);
    for (int64_t i = k + 1; i < a.rows; ++i) sum += a(i, k) * x(i, j);
    x(k, j) -= tau * sum;
    for (int64_t i = k + 1; i < a.rows; ++i) x(i, j) -= tau * sum * a(i, k);
  }
}

int qr(int64_t m, int64_t n, double* data, double* tau) {
  Columns a{m, data};
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    tau[k] = 0;
    double below = std::sqrt(dot(m - k - 1, a.column(k) + k + 1, a.column(k) + k + 1));
    if (below == 0) continue;
    // The sign that cancels nothing, as LAPACK has it.
    double head = a(k, k), beta = -std::copysign(std::hypot(head, below), head);
    tau[k] = (beta - head) / beta;
    for (int64_t i = k + 1; i < m; ++i) a(i, k) /= head - beta;
    a(k, k) = beta;
    reflect(a, k, tau[k], a, k + 1, n);
  }
  return 0;
}

int reflections(int64_t m, int64_t columns, int64_t count, double* data, const double* tau) {
  const std::vector<double> kept(data, data + m * columns);
  Columns a{m, const_cast<double*>(kept.data())}, q{m, data};
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < m; ++i) q(i, j) = i == j;
  for (int64_t k = count; k-- > 0;) reflect(a, k, tau[k], q, 0, columns);
  return 0;
}

// --- rotations, by Jacobi's method

constexpr int kMostSweeps = 60;

bool is_finite(const double* data, int64_t count) {
  return std::all_of(data, data + count, [](double v) { return std::isfinite(v); });
}

// Cosine and sine of the rotation that makes [[p, r], [r, q]] diagonal.
std::pair<double, double> rotation(double p, double q, double r) {
  double theta = (q - p) / (2 * r), t = std::copysign(1.0, theta) / (std::abs(theta) + std::hypot(theta, 1.0));
  double c = 1 / std::hypot(t, 1.0);
  return {c, t * c};
}
void rotate(int64_t n, double* p, double* q, int64_t stride, double c, double s) {
  for (int64_t i = 0; i < n; ++i) {
    double a = p[i * stride], b = q[i * stride];
    p[i * stride] = c * a - s * b;
    q[i * stride] = s * a + c * b;
  }
}

std::vector<int64_t> order_of(const std::vector<double>& keys, bool descending) {
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return descending ? keys[size_t(a)] > keys[size_t(b)] : keys[size_t(a)] < keys[size_t(b)];
  });
  return order;
}

int eigh(int64_t n, double* data, double* values, bool) {
  Columns a{n, data};
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < j; ++i) a(i, j) = a(j, i);
  if (!is_finite(data, n * n)) return 1;
  std::vector<double> turned(size_t(n * n), 0.0);
  Columns v{n, turned.data()};
  for (int64_t i = 0; i < n; ++i) v(i, i) = 1;
  bool done = false;
  for (int sweep = 0; sweep < kMostSweeps && !done; ++sweep) {
    done = true;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        if (std::abs(a(p, q)) <= 1e-17 * std::sqrt(std::abs(a(p, p) * a(q, q))) || std::abs(a(p, q)) < 1e-300) continue;
        done = false;
        auto [c, s] = rotation(a(p, p), a(q, q), a(p, q));
        rotate(n, a.column(p), a.column(q), 1, c, s);
        rotate(n, &a(p, 0), &a(q, 0), n, c, s);
        rotate(n, v.column(p), v.column(q), 1, c, s);
        a(p, q) = a(q, p) = 0;
      }
  }
  std::vector<double> found;
  for (int64_t i = 0; i < n; ++i) found.push_back(a(i, i));
  auto order = order_of(found, false);
  for (int64_t j = 0; j < n; ++j) {
    values[j] = found[size_t(order[size_t(j)])];
    std::copy_n(v.column(order[size_t(j)]), n, a.column(j));
  }
  return 0;
}

// Unit vectors in place of the columns from `first` on, at right angles to all before them.
void complete(Columns u, int64_t first, int64_t columns) {
  for (int64_t j = first; j < columns; ++j) {
    // Of the unit vectors one is far enough from the span of fewer columns than rows.
    for (int64_t unit = 0; unit < u.rows; ++unit) {
      double* x = u.column(j);
      std::fill(x, x + u.rows, 0.0);
      x[unit] = 1;
      for (int pass = 0; pass < 2; ++pass)
        for (int64_t k = 0; k < j; ++k) {
          double along = dot(u.rows, u.column(k), x);
          for (int64_t i = 0; i < u.rows; ++i) x[i] -= along * u(i, k);
        }
      double length = std::sqrt(dot(u.rows, x, x));
      if (length * length * double(2 * u.rows) < 1) continue;
      for (int64_t i = 0; i < u.rows; ++i) x[i] /= length;
      break;
    }
  }
}

// Of a tall matrix: its columns are turned until they are at right angles. `v` becomes V, n×n.
int svd_tall(int64_t m, int64_t n, Columns a, double* s, Columns v, Columns u) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) v(i, j) = i == j;
  bool done = false;
  for (int sweep = 0; sweep < kMostSweeps && !done; ++sweep) {
    done = true;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        double pp = dot(m, a.column(p), a.column(p)), qq = dot(m, a.column(q), a.column(q)),
               pq = dot(m, a.column(p), a.column(q));
        if (std::abs(pq) <= 1e-16 * std::sqrt(pp * qq) || std::abs(pq) < 1e-300) continue;
        done = false;
        auto [c, sine] = rotation(pp, qq, pq);
        rotate(m, a.column(p), a.column(q), 1, c, sine);
        rotate(n, v.column(p), v.column(q), 1, c, sine);
      }
  }
  std::vector<double> lengths;
  for (int64_t j = 0; j < n; ++j) lengths.push_back(std::sqrt(dot(m, a.column(j), a.column(j))));
  auto order = order_of(lengths, true);
  std::vector<double> turned(v.data, v.data + n * n);
  int64_t rank = 0;
  for (int64_t j = 0; j < n; ++j) {
    int64_t from = order[size_t(j)];
    s[j] = lengths[size_t(from)];
    std::copy_n(turned.data() + from * n, n, v.column(j));
    if (s[j] <= 1e-17 * s[0] || s[j] == 0) continue;
    for (int64_t i = 0; i < m; ++i) u(i, j) = a(i, from) / s[j];
    rank = j + 1;
  }
  complete(u, rank, n);
  return 0;
}

int svd(int64_t m, int64_t n, double* data, double* u, double* s, double* vt) {
  if (!is_finite(data, m * n)) return 1;
  int64_t rows = std::max(m, n), k = std::min(m, n);
  std::vector<double> tall(data, data + m * n), left(size_t(rows * k)), right(size_t(k * k));
  if (m < n)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) tall[size_t(i * n + j)] = data[j * m + i];
  svd_tall(rows, k, {rows, tall.data()}, s, {k, right.data()}, {rows, left.data()});
  if (!u) return 0;
  // Wide: of the transpose, U and V are exchanged. Vᵀ is stored by its columns.
  if (m < n) std::swap(left, right);
  std::copy(left.begin(), left.end(), u);
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < n; ++j) vt[j * k + i] = right[size_t(i * n + j)];
  return 0;
}

// --- float by way of double

// The matrix in double precision, which is stored back at the end.
class Widened {
 public:
  Widened(float* data, int64_t count) : from_(data), wide_(data ? data : nullptr, data ? data + count : nullptr) {}
  ~Widened() {
    for (size_t i = 0; i < wide_.size(); ++i) from_[i] = float(wide_[i]);
  }
  operator double*() { return from_ ? wide_.data() : nullptr; }

 private:
  float* from_;
  std::vector<double> wide_;
};

constexpr Dense<double> kTextbook{lu,   cholesky, qr,           reflections, plain::ldl,   eigh, plain::eig,
                                  plain::eig_of_pairs, svd, solve_triangular, multiply};
constexpr Dense<float> kTextbookOfFloat{
    [](int64_t m, int64_t n, float* a, int32_t* pivots) { return lu(m, n, Widened(a, m * n), pivots); },
    [](int64_t n, float* a) { return cholesky(n, Widened(a, n * n)); },
    [](int64_t m, int64_t n, float* a, float* tau) {
      return qr(m, n, Widened(a, m * n), Widened(tau, std::min(m, n)));
    },
    [](int64_t m, int64_t columns, int64_t count, float* q, const float* tau) {
      std::vector<double> wide(tau, tau + count);
      return reflections(m, columns, count, Widened(q, m * columns), wide.data());
    },
    [](int64_t n, float* a, int32_t* pivots) { return plain::ldl(n, Widened(a, n * n), pivots); },
    [](int64_t n, float* a, float* values, bool vectors) {
      return eigh(n, Widened(a, n * n), Widened(values, n), vectors);
    },
    [](int64_t n, float* a, float* values, float* vectors) {
      return plain::eig(n, Widened(a, n * n), Widened(values, 2 * n), Widened(vectors, 2 * n * n));
    },
    [](int64_t n, float* a, float* values, float* vectors) {
      return plain::eig_of_pairs(n, Widened(a, 2 * n * n), Widened(values, 2 * n), Widened(vectors, 2 * n * n));
    },
    [](int64_t m, int64_t n, float* a, float* u, float* s, float* vt) {
      int64_t k = std::min(m, n);
      return svd(m, n, Widened(a, m * n), Widened(u, m * k), Widened(s, k), Widened(vt, k * n));
    },
    [](int64_t n, int64_t columns, const float* a, float* b, bool upper, bool unit) {
      std::vector<double> wide(a, a + n * n);
      solve_triangular(n, columns, wide.data(), Widened(b, n * columns), upper, unit);
    },
    [](int64_t n, const float* a, const float* b, float* c) {
      std::vector<double> wide_a(a, a + n * n), wide_b(b, b + n * n);
      multiply(n, wide_a.data(), wide_b.data(), Widened(c, n * n));
    }};

}  // namespace

template <>
const Dense<double>& textbook<double>() {
  return kTextbook;
}
template <>
const Dense<float>& textbook<float>() {
  return kTextbookOfFloat;
}

template <class T>
const Dense<T>& dense() {
  static const Dense<T>* const library = lapack<T>();
  return library ? *library : textbook<T>();
}
template const Dense<float>& dense<float>();
template const Dense<double>& dense<double>();

}  // namespace sinter
