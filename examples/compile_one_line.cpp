// compile() in one line: a callable of the same signature that runs a captured program.
#include <sinter/sinter.h>

#include <iostream>

using namespace sinter;

int main() {
  int runs = 0;  // how often the C++ function itself runs
  auto plain = [&runs](const Tensor& x, const Tensor& w) {
    ++runs;
    return gelu(matmul(x, w)) + x;
  };
  auto fast = compile(plain);  // nothing happens yet

  manual_seed(0);
  Tensor x = randn({16, 32}), w = randn({32, 32});
  Tensor y = fast(x, w);  // the first call captures: the function runs once and becomes a graph
  for (int step = 0; step < 100; ++step) y = fast(x, w);  // later calls run the graph
  std::cout << "101 calls, the function itself ran " << runs << " time(s)\n";

  // What was captured, and what a later call must look like for it to fit.
  std::cout << compiler::explain(fast, x, w) << "\n";

  double difference = (y - plain(x, w)).abs().amax().item<double>();
  std::cout << "largest difference from eager: " << difference << "\n";
  return difference < 1e-5 && runs == 2 ? 0 : 1;
}
