#!/usr/bin/env bash
# Checks that a compiler takes what users compile, and more: every header, the last first so that each must bring what it
# needs, and the examples, which instantiate the templates. Nothing is built: the compiler only parses.
# Usage: check_headers.sh COMPILER [root of the tree [folder of generated headers]]. Skips, and says so, where there is no such
# compiler.
set -euo pipefail
compiler=$1
cd "${2:-$(dirname "$0")/..}"
generated=${3:-build/generated/include}

if ! command -v "$compiler" > /dev/null; then
  echo "headers: skipped, $compiler is not installed"
  exit 0
fi

{
  # Headers named *_api.h need a library's own, and so do those of the clang plugin.
  find sinter -name '*.h' ! -name '*_api.h' ! -path 'sinter/cli/*' ! -path 'sinter/runtime/cpu/clang_plugin/*' |
    LC_ALL=C sort -r | sed 's/.*/#include "&"/'
  grep -hoE '^#include <[a-z_/]+>' examples/*.cpp | sort -u

  # Spellings that compilers have resolved differently.
  echo 'sinter::Shape one_size(int64_t n) { return sinter::Shape({n}); }'
  echo 'sinter::IntList one_number(int64_t n) { return sinter::IntList({n}); }'

  # In a namespace main() is a function like any other, that has to return something.
  for example in examples/*.cpp examples/external/*.cpp; do
    name=$(basename "$(dirname "$example")")_$(basename "$example" .cpp)
    printf 'namespace %s {\n#include "%s"\n}\n' "$name" "$example"
  done
} | "$compiler" -std=c++20 -fsyntax-only -Wall -Wextra -Werror -Wno-return-type -I. -I"$generated" -x c++ - && echo "headers: ok with $compiler"
