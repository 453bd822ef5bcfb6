// Tensors: making them, computing with them, looking at parts of them.
#include <sinter/sinter.h>

#include <iostream>

using namespace sinter;

int main() {
  // Made from numbers, from a rule, or at random.
  Tensor a = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  Tensor b = arange(6).view({2, 3});  // i64
  manual_seed(0);
  Tensor noise = randn({2, 3});
  std::cout << "a =\n" << a << "\nb =\n" << b << "\n\n";

  // Shapes broadcast and dtypes promote as in PyTorch.
  std::cout << "a + b * 10 =\n" << a + b * 10 << "\n";
  std::cout << "a @ b^T =\n" << matmul(a, b.to(kFloat32).t()) << "\n";
  std::cout << "row means: " << a.mean({1}) << "\n";
  std::cout << "softmax =\n" << softmax(a + 0.1 * noise, -1) << "\n\n";

  // A view shares memory: writing to it writes to a.
  Tensor column = a.index({Slice(), 1});
  column.mul_(100);
  std::cout << "after writing to a column, a =\n" << a << "\n";
  std::cout << "elements above 4: " << masked_select(a, a > 4) << "\n";

  // A mistake is an exception that says what, and in which line.
  try {
    matmul(a, a);
  } catch (const Error& e) {
    std::cout << "\nas expected: " << e.what() << "\n";
    return 0;
  }
  return 1;
}
