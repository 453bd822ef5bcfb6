#!/usr/bin/env bash
# Builds a project that takes this tree in by FetchContent, and runs its program: minutes, since the library is compiled for it.
# Usage: check_fetch_content.sh [--configure-only]. Prints "fetch content: ok" at the end.
set -euo pipefail
tree=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp "$tree/examples/external/main.cpp" "$work"
cat > "$work/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.22)
project(fetches_sinter LANGUAGES CXX)
include(FetchContent)
FetchContent_Declare(sinter SOURCE_DIR "$tree")
FetchContent_MakeAvailable(sinter)
add_executable(hello_sinter main.cpp)
target_link_libraries(hello_sinter PRIVATE sinter::sinter)
foreach(unwanted test_support benches package)
  if(TARGET \${unwanted})
    message(FATAL_ERROR "the target \${unwanted} belongs to the tree alone")
  endif()
endforeach()
CMAKE
CXX=${CXX:-$("$tree/scripts/setup.sh" --compiler)} cmake -S "$work" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  ${SINTER_LAUNCHER:+-DCMAKE_CXX_COMPILER_LAUNCHER="$SINTER_LAUNCHER"}
if [ "${1:-}" != --configure-only ]; then
  cmake --build "$work/build" -j "${JOBS:-$(nproc)}" --target hello_sinter
  SINTER_CACHE_DIR="$work/cache" "$work/build/hello_sinter"
fi
echo "fetch content: ok"
