#!/usr/bin/env bash
# Checks that mistakes in programs are told in a few lines, the first error of which says what to do. Nothing is built.
# Usage: check_diagnostics.sh COMPILER INCLUDE_FOLDER... Skips, and says so, where there is no such compiler.
set -euo pipefail
compiler=$1
shift
flags=()
for folder in "$@"; do flags+=("-I$folder"); done

if ! command -v "$compiler" > /dev/null; then
  echo "diagnostics: skipped, $compiler is not installed"
  exit 0
fi

failed=0
# expect LINES TEXT PROGRAM: the program does not compile, the first error holds the text, and all of it is that short.
expect() {
  local output lines first
  output=$(printf '#include <sinter/sinter.h>\nusing namespace sinter;\n%s\n' "$3" |
    "$compiler" -std=c++20 -fsyntax-only "${flags[@]}" -x c++ - 2>&1) && {
    echo "compiles, but should not: $3"
    failed=1
    return
  }
  lines=$(wc -l <<< "$output")
  first=$(grep -m1 'error:' <<< "$output")
  if ((lines > $1)); then
    echo "$lines lines, more than $1: $3"
    failed=1
  fi
  if [[ $first != *"$2"* ]]; then
    echo "the first error does not say \"$2\" of: $3"
    echo "  $first"
    failed=1
  fi
}

expect 20 'takes one tensor and gives one' \
  'struct PairImpl : nn::Module { Tensor forward(const Tensor& a, const Tensor& b) { return a + b; } };
SINTER_MODULE(Pair);
nn::Sequential net(nn::Linear(2, 3), Pair());'
expect 20 'no constructor of this module takes these arguments' 'nn::Linear layer("a");'
expect 20 'needs its object: compile(&Model::step, &model)' \
  'struct Model { Tensor step(const Tensor& x) { return x; } };
auto f = compile(&Model::step);'
expect 20 'write all numbers as one type' 'Tensor x = tensor({1, 2.5});'
if ((failed)); then exit 1; fi
echo "diagnostics: ok with $compiler"
