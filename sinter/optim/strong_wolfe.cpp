#include "sinter/optim/strong_wolfe.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sinter::optim {

namespace {

// Where the cubic through two points with their slopes is least, held between the bounds; halfway where there is no such place.
double least_of_cubic(LinePoint a, LinePoint b, double low, double high) {
  if (a.at > b.at) std::swap(a, b);
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.at - b.at);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double at = b.at - (b.at - a.at) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2));
  return std::min(std::max(at, low), high);
}

}  // namespace

LinePoint strong_wolfe(const std::function<LinePoint(double)>& evaluate, const LinePoint& start, double first, double reach) {
  constexpr double kFall = 1e-4, kFlatter = 0.9, kSmallestChange = 1e-9;
  constexpr int kMostRounds = 25;
  auto is_high = [&](const LinePoint& p) { return p.loss > start.loss + kFall * p.at * start.slope; };
  auto is_flat = [&](const LinePoint& p) { return std::abs(p.slope) <= -kFlatter * start.slope; };

  // Outwards, until two points have such a one between them.
  std::array<LinePoint, 2> ends;
  LinePoint before = start, now = evaluate(first);
  int round = 0;
  for (;; ++round) {
    if (round == kMostRounds) {
      ends = {start, now};
      break;
    }
    const bool rises = is_high(now) || (round > 1 && now.loss >= before.loss);
    if (!rises && is_flat(now)) return now;
    if (rises || now.slope >= 0) {
      ends = {before, now};
      break;
    }
    const double at = least_of_cubic(before, now, now.at + 0.01 * (now.at - before.at), now.at * 10);
    before = std::exchange(now, evaluate(at));
  }

  // Inwards; the lower end stays until a lower point is found.
  bool stalled = false;
  int low = ends[0].loss <= ends[1].loss ? 0 : 1;
  for (; round < kMostRounds; ++round) {
    const auto [left, right] = std::minmax(ends[0].at, ends[1].at);
    if ((right - left) * reach < kSmallestChange) break;
    double at = least_of_cubic(ends[0], ends[1], left, right);
    // Close to an end twice running is no progress.
    const double margin = 0.1 * (right - left);
    if (std::min(right - at, at - left) < margin) {
      const bool again = stalled || at >= right || at <= left;
      if (again) at = std::abs(at - right) < std::abs(at - left) ? right - margin : left + margin;
      stalled = !again;
    } else {
      stalled = false;
    }
    now = evaluate(at);
    if (is_high(now) || now.loss >= ends[size_t(low)].loss) {
      ends[size_t(1 - low)] = now;
      low = ends[0].loss <= ends[1].loss ? 0 : 1;
      continue;
    }
    if (is_flat(now)) return now;
    if (now.slope * (ends[size_t(1 - low)].at - ends[size_t(low)].at) >= 0) ends[size_t(1 - low)] = ends[size_t(low)];
    ends[size_t(low)] = now;
  }
  return ends[size_t(low)];
}

}  // namespace sinter::optim
