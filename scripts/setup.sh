#!/usr/bin/env bash
# Installs the packages Sinter is built with, on Debian and Ubuntu. Touches nothing, and needs no network, when all are
# there. SINTER_SKIP_SETUP=1 leaves the machine as it is.
#   setup.sh             install what is missing
#   setup.sh --compiler  print the C++ compiler to use
set -euo pipefail
cd "$(dirname "$0")/.."

clang_version=19  # the release the plugin is written for; Ubuntu 22.04 has none, there g++ compiles the kernels
required=(cmake ninja-build libgtest-dev nlohmann-json3-dev libcli11-dev pkg-config libpcre2-dev
  libutf8proc-dev libprotozero-dev zlib1g-dev libpng-dev libjpeg-dev)
# Without these the build still works: slower links and rebuilds, kernels compiled by g++, no peer in the benchmarks,
# factorisations of matrices by plain loops, no server, no Python package.
optional=(lld ccache "clang-$clang_version" "libclang-$clang_version-dev" "libclang-cpp$clang_version-dev"
  "llvm-$clang_version-dev" libdnnl-dev libopenblas0-pthread python3-dev libboost1.81-dev)

gxx_major() { "$1" -dumpversion 2>/dev/null | cut -d. -f1; }

# The default g++ when it is new enough, else g++-12 (Ubuntu 22.04 has 11 as its default and 12 beside it).
compiler() {
  local major
  major=$(gxx_major g++ || true)
  if [ "${major:-0}" -ge 12 ] || ! command -v g++-12 >/dev/null; then echo g++; else echo g++-12; fi
}

if [ "${1:-}" = --compiler ]; then
  compiler
  exit
fi
[ "${SINTER_SKIP_SETUP:-0}" = 1 ] && exit 0

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: not a Debian or Ubuntu machine; needed are a C++20 compiler and what these hold: ${required[*]}" >&2
  echo "setup: optional: ${optional[*]}" >&2
  exit 0
fi

if [ -r /etc/os-release ] && (. /etc/os-release && [ "${VERSION_ID:-}" = 22.04 ]); then
  required+=(g++-12)
else
  required+=(g++)
fi

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
available() { [ -n "$(apt-cache madison "$1" 2>/dev/null)" ]; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get "$@"; }

missing=()
for package in "${required[@]}"; do installed "$package" || missing+=("$package"); done
wanted=()
for package in "${optional[@]}"; do installed "$package" || wanted+=("$package"); done

# Optional packages that could not be had are remembered, so that they are not asked for on every build.
refused=build/.setup_refused
if [ "${#missing[@]}" = 0 ]; then
  [ "${#wanted[@]}" = 0 ] && exit 0
  [ -f "$refused" ] && [ "$(cat "$refused")" = "${wanted[*]}" ] && exit 0
fi

echo "setup: installing ${missing[*]} ${wanted[*]}"
apt update -q || echo "setup: apt-get update failed; going on with the package lists at hand" >&2
if [ "${#missing[@]}" != 0 ] && ! apt install -q -y --no-install-recommends "${missing[@]}"; then
  echo "setup: could not install: ${missing[*]}" >&2
  exit 1
fi

choosable=()
for package in "${wanted[@]}"; do if available "$package"; then choosable+=("$package"); fi; done
if [ "${#choosable[@]}" != 0 ]; then
  apt install -q -y --no-install-recommends "${choosable[@]}" || echo "setup: could not install: ${choosable[*]}" >&2
fi

still=()
for package in "${optional[@]}"; do installed "$package" || still+=("$package"); done
mkdir -p build
rm -f "$refused"
if [ "${#still[@]}" != 0 ]; then
  echo "${still[*]}" >"$refused"
  echo "setup: going on without ${still[*]} (remove $refused to try again)"
fi
if [[ " ${still[*]} " == *clang* || " ${still[*]} " == *llvm* ]]; then
  echo "setup: kernels will be compiled by $(compiler) as a child process (no clang $clang_version here)"
else
  echo "setup: kernels will be compiled by clang $clang_version in process"
fi
