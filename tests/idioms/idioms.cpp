#include "tests/idioms/idioms.h"

#include <cmath>
#include <map>
#include <string>
#ifdef IDIOMS_OF_LIBTORCH
#include <cstdlib>
#include <fstream>
#else
#include "sinter/io/safetensors.h"
#include "tests/support/samples.h"
#endif

namespace {

// The text without white space, which the preprocessor changes, and a number for each result.
std::string key_of(std::string_view text, size_t result) {
  std::string key;
  for (char c : text)
    if (c != ' ' && c != '\n') key += c;
  return key + "#" + std::to_string(result);
}

}  // namespace

torch::Tensor formula(torch::IntArrayRef shape, int64_t seed) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(float(2 * ((37 * i + 11 * seed) % 61) - 61) / 32);
  return torch::from_blob(values.data(), shape).clone();
}

Results results_of(const std::vector<int64_t>& numbers) { return {torch::tensor(numbers, torch::kInt64)}; }
Results results_of(torch::IntArrayRef numbers) { return results_of(numbers.vec()); }
Results results_of(const std::vector<double>& numbers) { return {torch::tensor(numbers, torch::kFloat64)}; }

Results with_gradient(const torch::Tensor& result, const torch::Tensor& x) {
  result.backward(formula(result.sizes(), 20));
  return {result.detach(), x.grad()};
}

#ifdef IDIOMS_OF_LIBTORCH

// What record_idioms.py reads: a line with the key, the dtype and the sizes of each result, and its bytes.
void expect_recorded(const char* text, const Results& results) {
  static std::ofstream out(std::getenv("IDIOMS_OUTPUT"), std::ios::binary);
  static std::map<std::string, torch::Tensor> all;
  for (size_t i = 0; i < results.size(); ++i) {
    torch::Tensor result = results[i].detach().contiguous();
    std::string key = key_of(text, i);
    if (auto known = all.find(key); known != all.end()) {
      EXPECT_TRUE(known->second.equal(result)) << key << ": the same line gives two results";
      continue;
    }
    all[key] = result;
    out << key << ' ' << torch::toString(result.scalar_type());
    for (int64_t size : result.sizes()) out << ' ' << size;
    out << '\n';
    out.write(static_cast<const char*>(result.const_data_ptr()), std::streamsize(result.nbytes()));
  }
  out.flush();
}

#else

void expect_recorded(const char* text, const Results& results) {
  static const torch::SafeTensorsFile recording(SINTER_TEST_DATA "/recorded/idioms.safetensors");
  size_t count = 0;
  for (; recording.contains(key_of(text, count)); ++count) {
    if (count >= results.size()) continue;
    sinter::Array want = sinter::to_array(recording.tensor(key_of(text, count)));
    double largest = 0;
    for (double value : want.f)
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    EXPECT_EQ(sinter::testing::difference(results[count].detach(), want, {.ulp = 32, .absolute = 2e-6 * largest}), "")
        << "\n  " << text << "\n  result " << count;
  }
  EXPECT_GT(count, 0u) << "\n  " << text << "\n  is not recorded: run tools/record_idioms.py";
  if (count > 0) EXPECT_EQ(results.size(), count) << "\n  " << text;
}

#endif
