#include "sinter/runtime/cpu/fft/plan.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>

#include "sinter/runtime/cpu/fft/run.h"

namespace sinter::runtime::fft_detail {

UnitRoots::UnitRoots(int64_t n) : n_(n) {
  constexpr double kEighth = 0x1.921fb54442d18p-1, kEighthLow = 0x1.1a62633145c07p-55;  // pi / 4
  const double count = double(n);
  step_ = kEighth / count;
  step_low_ = (std::fma(-step_, count, kEighth) + kEighthLow) / count;
}

std::complex<double> UnitRoots::operator()(int64_t k) const {
  // The angle is octant + rest / n eighths of a turn; odd octants are counted from their end.
  const int64_t octant = 8 * k / n_, rest = 8 * k % n_;
  const double part = double(octant % 2 ? n_ - rest : rest);
  const double angle = part * step_, low = std::fma(part, step_, -angle) + part * step_low_;
  const double s0 = std::sin(angle), c0 = std::cos(angle);
  const double s = s0 + low * c0, c = c0 - low * s0;
  switch (octant) {
    case 0:
      return {c, -s};
    case 1:
      return {s, -c};
    case 2:
      return {-s, -c};
    case 3:
      return {-c, -s};
    case 4:
      return {-c, s};
    case 5:
      return {-s, c};
    case 6:
      return {s, c};
    default:
      return {c, s};
  }
}

namespace {

// Above it the factors between columns and rows are products of two, which memory is not read for.
constexpr int64_t kFullTurn = 8192;

// Empty where a prime is too large. Multiples of four come first and last, since these stages read and write pairs.
std::vector<int64_t> radices_of(int64_t n) {
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  std::vector<int64_t> odd, even;
  for (int64_t p = 3; n > 1 && p <= kMaxPrime; p += 2)
    for (; n % p == 0; n /= p) odd.push_back(p);
  if (n > 1) return {};
  for (int stages = ceil_div(twos, 4); stages > 0; --stages) {
    const int bits = int(ceil_div(twos, stages));
    even.push_back(int64_t(1) << bits);
    twos -= bits;
  }
  if (even.empty() && odd.empty()) return {1};
  if (!even.empty()) odd.insert(odd.begin(), even.front());
  if (even.size() > 1) odd.insert(odd.end(), even.begin() + 1, even.end());
  return odd;
}

// Vector instructions an element.
double stage_cost(int64_t radix) {
  switch (radix) {
    case 1:
      return 2;
    case 2:
      return 7;
    case 3:
      return 9;
    case 4:
      return 9;
    case 5:
      return 12;
    case 7:
      return 16;
    case 8:
      return 12;
    case 16:
      return 16;
    default:
      return 12 + 1.3 * double(radix);
  }
}
constexpr double kTurnCost = 14, kRowsCost = 12;

double block_cost(int64_t n) {
  double cost = 0;
  for (int64_t radix : radices_of(n)) cost += stage_cost(radix);
  return cost;
}

struct Matrix {
  int64_t columns;  // elements of a column
  double cost;
};
Matrix best_matrix(int64_t lanes, int64_t n) {
  Matrix best{1, INFINITY};
  const auto consider = [&](int64_t a) {
    const int64_t b = n / a, a_blocks = ceil_div(a, lanes), b_blocks = ceil_div(b, lanes);
    const double cost = double(b_blocks * a) * block_cost(a) + double(a_blocks * b) * block_cost(b) +
                        kTurnCost * double(a_blocks * b_blocks * lanes);
    if (cost < best.cost) best = {a, cost};
  };
  for (int64_t a = 1; a * a <= n; ++a)
    if (n % a == 0) consider(a), consider(n / a);
  return best;
}

bool is_smooth(int64_t n) { return !radices_of(n).empty(); }

// Lengths that a convolution over 2 n - 1 elements may have: few small factors, and not much longer.
template <class Cost>
std::pair<int64_t, double> best_padding(int64_t n, Cost cost) {
  const int64_t least = 2 * n - 1;
  std::pair<int64_t, double> best{0, INFINITY};
  for (int64_t odd : {1, 3, 5, 9, 15, 25, 27}) {
    int64_t m = odd;
    while (m < least) m *= 2;
    if (const double c = cost(m); c < best.second) best = {m, c};
  }
  return best;
}

// Beyond the first cache, and beyond the second, stages wait for memory.
double cache_factor(double bytes) { return bytes < 40e3 ? 1 : bytes < 1e6 ? 1.3 : 3; }

double smooth_cost_side_by_side(int64_t lanes, int64_t n, int64_t item) {
  return double(n) * block_cost(n) * cache_factor(double(4 * n * lanes * item));
}

template <class T>
BlockPlan<T> make_block_plan(const FftCore<T>& core, int64_t n) {
  BlockPlan<T> plan;
  plan.n = n;
  int64_t span = 1;
  for (int64_t radix : radices_of(n)) {
    const int64_t length = n / span, groups = length / radix;
    typename BlockPlan<T>::Step step{radix, span, groups, int64_t(plan.tables.size()), 0, {}};
    const UnitRoots roots(length), small(radix);
    for (int64_t j = 0; j < groups; ++j)
      for (int64_t p = 1; p < radix; ++p) {
        const auto w = roots(j * p);
        plan.tables.insert(plan.tables.end(), {T(w.real()), T(w.imag())});
      }
    step.matrix = int64_t(plan.tables.size());
    if (radix > 7 && radix % 2)
      for (int64_t p = 1; p <= radix / 2; ++p)
        for (int64_t q = 1; q <= radix / 2; ++q) {
          const auto w = small(p * q % radix);
          plan.tables.insert(plan.tables.end(), {T(w.real()), T(-w.imag())});
        }
    for (int variant = 0; variant < kVariants; ++variant) step.variants[size_t(variant)] = core.stage(radix, variant);
    plan.steps.push_back(step);
    span *= radix;
  }
  return plan;
}

template <class T>
void make_turn(Plan<T>& plan) {
  const int64_t lanes = plan.core->lanes, rows = plan.columns.n, cols = plan.rows.n, blocks = ceil_div(cols, lanes);
  const UnitRoots roots(plan.n);
  const bool full = plan.n <= kFullTurn;
  plan.turn = Table<T>((full ? blocks : 1) * rows * 2 * lanes);
  T* to = plan.turn.data();
  for (int64_t b = 0; b < (full ? blocks : 1); ++b)
    for (int64_t row = 0; row < rows; ++row, to += 2 * lanes)
      for (int64_t lane = 0; lane < lanes; ++lane) {
        // Beyond the last column they are not used.
        const auto w = roots(row * std::min(b * lanes + lane, cols - 1));
        to[lane] = T(w.real());
        to[lanes + lane] = T(w.imag());
      }
  if (full) return;
  plan.turn_steps = Table<T>(blocks * rows * 2);
  to = plan.turn_steps.data();
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t row = 0; row < rows; ++row, to += 2) {
      const auto w = roots(row * b * lanes);
      to[0] = T(w.real());
      to[1] = T(w.imag());
    }
}

template <class T, class At>
Coefficients<T> make_coefficients(int64_t count, At at) {
  const int64_t pitch = ceil_div(count, kMaxLanes) * kMaxLanes;
  Coefficients<T> out{Table<T>(2 * pitch)};
  T *re = out.table.data(), *im = re + pitch;
  for (int64_t i = 0; i < pitch; ++i) {
    const std::complex<double> value = i < count ? at(i) : 0;
    re[i] = T(value.real());
    im[i] = T(value.imag());
  }
  out.re = re;
  out.im = im;
  return out;
}

// x[k] = chirp[k] * sum over j of (in[j] chirp[j]) / chirp[k - j], with chirp[j] = exp(-pi i j^2 / n).
template <class T>
void make_bluestein(Plan<T>& plan) {
  const int64_t n = plan.n, lanes = plan.core->lanes;
  const int64_t m =
      plan.way == Way::kAlone
          ? best_padding(n, [&](int64_t l) { return best_matrix(lanes, l).cost; }).first
          : best_padding(n, [&](int64_t l) { return smooth_cost_side_by_side(lanes, l, sizeof(T)); }).first;
  plan.padded = find_plan(*plan.core, m, plan.way, false);
  const UnitRoots roots(2 * n);
  std::vector<std::complex<double>> chirp(static_cast<size_t>(n));
  int64_t square = 0;  // j^2 modulo 2 n
  for (int64_t j = 0; j < n; square = (square + 2 * j + 1) % (2 * n), ++j) chirp[size_t(j)] = roots(square);
  plan.chirp = make_coefficients<T>(n, [&](int64_t j) { return chirp[size_t(j)]; });

  // The transform of 1 / chirp, always in double: its error would be that of all results.
  const FftCore<double>& core = fft_core<double>(CpuIsa::kScalar);
  const auto wide = find_plan(core, m, Way::kAlone, false);
  std::vector<double> line(static_cast<size_t>(2 * m)), scratch(static_cast<size_t>(line_scratch(*wide)));
  for (int64_t j = 0; j < n; ++j)
    for (int64_t at : {j, (m - j) % m}) {
      line[size_t(2 * at)] = chirp[size_t(j)].real() / double(m);
      line[size_t(2 * at + 1)] = -chirp[size_t(j)].imag() / double(m);
    }
  const Vectors<double> pairs{line.data(), nullptr, 2};
  transform_line<double>(*wide, pairs, {}, pairs, {}, scratch.data(), false);
  plan.filter = make_coefficients<T>(
      m, [&](int64_t k) { return std::complex<double>(line[size_t(2 * k)], line[size_t(2 * k + 1)]); });
}

template <class T>
std::shared_ptr<const Plan<T>> make_plan(const FftCore<T>& core, int64_t n, Way way, bool real) {
  auto plan = std::make_shared<Plan<T>>();
  plan->core = &core;
  plan->n = n;
  plan->way = way;
  if (real) {
    plan->half = find_plan(core, n / 2, way, false);
    const UnitRoots roots(n);
    plan->unpack = make_coefficients<T>(n / 2 + 1, [&](int64_t k) { return std::complex<double>(0, -1) * roots(k); });
  } else if (!is_smooth(n)) {
    make_bluestein(*plan);
  } else if (way == Way::kSideBySide) {
    plan->block = make_block_plan(core, n);
  } else {
    const int64_t columns = best_matrix(core.lanes, n).columns;
    plan->columns = make_block_plan(core, columns);
    plan->rows = make_block_plan(core, n / columns);
    make_turn(*plan);
  }
  return plan;
}

// The plans used last, the newest in front.
template <class T>
class Cache {
 public:
  std::shared_ptr<const Plan<T>> find(const FftCore<T>& core, int64_t n, Way way, bool real) {
    const Key key{&core, n, way, real};
    {
      const std::lock_guard lock(mutex_);
      for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
        if (entry->key == key) {
          entries_.splice(entries_.begin(), entries_, entry);
          return entry->plan;
        }
    }
    // Others may find theirs meanwhile; two threads may make the same one, and both are right.
    auto plan = make_plan(core, n, way, real);
    const std::lock_guard lock(mutex_);
    entries_.push_front({key, plan, plan->bytes()});
    bytes_ += entries_.front().bytes;
    while (entries_.size() > 1 && (entries_.size() > kMaxPlans || bytes_ > kMaxBytes)) {
      bytes_ -= entries_.back().bytes;
      entries_.pop_back();
    }
    return plan;
  }

 private:
  static constexpr size_t kMaxPlans = 64;
  static constexpr int64_t kMaxBytes = int64_t(64) << 20;
  struct Key {
    const FftCore<T>* core;
    int64_t n;
    Way way;
    bool real;
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    std::shared_ptr<const Plan<T>> plan;
    int64_t bytes;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;
  int64_t bytes_ = 0;
};

}  // namespace

template <class T>
int64_t Plan<T>::bytes() const {
  const int64_t numbers = int64_t(block.tables.size() + columns.tables.size() + rows.tables.size()) + turn.size() +
                          turn_steps.size() + chirp.table.size() + filter.table.size() + unpack.table.size();
  return numbers * int64_t(sizeof(T));
}

template <class T>
std::shared_ptr<const Plan<T>> find_plan(const FftCore<T>& core, int64_t n, Way way, bool real) {
  // Never destroyed: threads may outlive the statics.
  static Cache<T>& cache = *new Cache<T>;
  return cache.find(core, n, way, real);
}

double cost_side_by_side(int64_t lanes, int64_t n, int64_t item) {
  if (is_smooth(n)) return smooth_cost_side_by_side(lanes, n, item) + kRowsCost * double(n);
  const auto cost = [&](int64_t m) { return smooth_cost_side_by_side(lanes, m, item); };
  const auto [m, one] = best_padding(n, cost);
  return 2 * one + 12 * double(m) + kRowsCost * double(n);
}

double cost_alone(int64_t lanes, int64_t n) {
  if (is_smooth(n)) return best_matrix(lanes, n).cost;
  const auto [m, one] = best_padding(n, [&](int64_t l) { return best_matrix(lanes, l).cost; });
  return 2 * one + 12 * double(ceil_div(m, lanes));
}

template struct Plan<float>;
template struct Plan<double>;
template std::shared_ptr<const Plan<float>> find_plan(const FftCore<float>&, int64_t, Way, bool);
template std::shared_ptr<const Plan<double>> find_plan(const FftCore<double>&, int64_t, Way, bool);

}  // namespace sinter::runtime::fft_detail
