// Sizes that vary: found at their second value, announced with mark_dynamic(), or passed as a Dim.
#include <sinter/sinter.h>

#include <iostream>

using namespace sinter;

int main() {
  bool good = true;
  auto programs = [](auto& f, auto&&... arguments) { return compiler::explain(f, arguments...).programs.size(); };

  // The first call captures the sizes as they are. The second length makes that dimension symbolic; all others fit.
  auto mean = compile([](const Tensor& x) { return x.sum(0) / x.size(0); }, {.name = "mean"});
  for (int64_t length : {5, 7, 9, 100}) mean(ones({length, 4}));
  size_t found = programs(mean, ones({33, 4}));
  std::cout << "five lengths, programs: " << found << "\n";
  good = good && found == 2;

  // Announced, the first program serves them all. Sizes outside the range get programs of their own.
  auto announced = compile([](const Tensor& x) { return x.sum(0) / x.size(0); }, {.name = "announced"});
  for (int64_t length : {5, 7, 9, 100}) {
    Tensor x = ones({length, 4});
    compiler::mark_dynamic(x, 0, {.min = 2, .max = 4096});
    announced(x);
  }
  size_t one = compiler::explain(announced, ones({33, 4})).programs.size();
  std::cout << "announced, programs: " << one << "\n";
  good = good && one == 1;

  // A Dim argument is a size, too: it may become symbolic. An int64_t is part of the program, one for each value.
  auto head = compile([](const Tensor& x, const Dim& n) { return x.slice(0, 0, n).sum(); }, {.name = "head"});
  for (int64_t n : {3, 4, 5, 6}) good = good && head(ones({10}), n).item<double>() == double(n);
  size_t with_dim = programs(head, ones({10}), 7);
  auto exact = compile([](const Tensor& x, int64_t n) { return x.slice(0, 0, n).sum(); }, {.name = "exact"});
  for (int64_t n : {3, 4, 5, 6}) exact(ones({10}), n);
  size_t with_int = programs(exact, ones({10}), 7);
  std::cout << "five values: " << with_dim << " programs with a Dim, " << with_int << " with an int64_t\n";
  return good && with_dim == 2 && with_int == 5 ? 0 : 1;
}
