#pragma once
// How long answers took, and whether two groups of them differ: in numbers that say how sure they are.
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace sinter::serve {

// Of one text, when it is over; without the time in which the device belonged to another engine.
struct AnswerTimes {
  double first_s = 0;      // from arrival to the first token
  double per_token_s = 0;  // the mean from token to token; negative where there was one token
  double whole_s = 0;      // from arrival to the end
  bool waited_for_compiling = false;
};

// The latest answers; any thread may add and read.
class AnswerLog {
 public:
  void add(const AnswerTimes& times);
  std::vector<AnswerTimes> latest() const;

 private:
  static constexpr size_t kMost = 20000;
  mutable std::mutex mutex_;
  std::vector<AnswerTimes> ring_;
  size_t next_ = 0;
};

// A quantile, and between which numbers that of all answers to come lies, at 95 %. `high` is infinite where there are
// too few.
struct Quantile {
  double value = 0, low = 0, high = 0;
};
// Of at least one value.
Quantile quantile(std::vector<double> values, double q);

// The probability that two groups from one source differ at this quantile as much as these do, or more: the share of
// all ways to deal the values into groups of these sizes. 1 where a group is empty.
double same_source(const std::vector<double>& a, const std::vector<double>& b, double q);

// One number of two groups.
struct Difference {
  std::string what;  // "time to first token p50"
  double a = 0, b = 0, p = 1;
  bool is_real = false;  // among all the differences that are told together
};
// Medians and tails of the times to the first token, from token to token and to the end. Of groups that are alike, one
// comparison in twenty at most tells any difference as real.
std::vector<Difference> differences(const std::vector<AnswerTimes>& a, const std::vector<AnswerTimes>& b);
// "compiled is 2.1 x faster than eager at p50 of the time between tokens (0.52 ms against 1.10 ms); p99 not
// distinguishable; …"
std::string verdict(const std::string& name_a, const std::string& name_b, const std::vector<Difference>& differences);

}  // namespace sinter::serve
