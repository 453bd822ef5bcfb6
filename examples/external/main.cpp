// A program outside the tree: found by find_package(sinter), see CMakeLists.txt.
#include <sinter/sinter.h>

#include <iostream>

int main() {
  using namespace sinter;
  Tensor x = ones({2, 3});
  Tensor w = ones({3, 2});
  std::cout << matmul(x, w) << "\n";
}
