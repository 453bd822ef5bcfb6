// A branch on the data: as an `if`, which breaks the program in two, and with cond(), which stays inside it.
#include <sinter/sinter.h>

#include <iostream>

using namespace sinter;

int main() {
  // item() gives a lazy Scalar. Comparing it is a question that only the data can answer, so the program breaks there:
  // what came before is run, the answer is read, and the branch it leads to is captured.
  auto branched = compile([](const Tensor& x) {
    Scalar total = x.sum().item();
    if (total > 0) return x * 2;
    return -x;
  });
  Tensor positive = ones({4}), negative = -ones({4});
  bool good = branched(positive).sum().item<double>() == 8 && branched(negative).sum().item<double>() == 4;
  Explanation explanation = compiler::explain(branched, positive);
  for (auto& program : explanation.programs)
    for (auto& b : program.breaks) std::cout << "break: " << b.what << " at " << b.where << "\n  " << b.advice << "\n";
  good = good && explanation.break_count() == 1;

  // The advice taken: one program, no break; fullgraph makes sure of it.
  auto whole = compile(
      [](const Tensor& x) {
        return cond(x.sum() > 0, [](const Tensor& t) { return t * 2; }, [](const Tensor& t) { return -t; }, x);
      },
      {.fullgraph = true});
  good = good && whole(positive).sum().item<double>() == 8 && whole(negative).sum().item<double>() == 4;
  std::cout << "with cond(): " << compiler::explain(whole, positive).break_count() << " breaks\n";

  // With fullgraph the first function is refused, with the line and the advice.
  auto strict = compile(
      [](const Tensor& x) {
        if (x.sum().item() > 0) return x * 2;
        return -x;
      },
      {.fullgraph = true});
  try {
    strict(positive);
    good = false;
  } catch (const Error& error) {
    std::cout << "as expected: " << error.what() << "\n";
  }
  return good ? 0 : 1;
}
