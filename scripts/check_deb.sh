#!/usr/bin/env bash
# Installs the package of `make deb` on a fresh Debian, builds programs against it, runs them, and removes it without a trace.
# Usage: check_deb.sh [FILE.deb [FOLDER]]. As root, with debootstrap, that is a chroot (kept in FOLDER where one is named, for the
# next time); elsewhere the package is unpacked by `dpkg -x`, and nothing is installed. Prints "deb: ok" at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
deb=$(realpath "${1:-$(ls -t build/package/sinter_*.deb | head -n 1)}")
folder=${2:-}

# What a user does: one program by pkg-config, the other by CMake; then the command.
write_programs() {
  mkdir -p "$1/example"
  cp examples/external/main.cpp examples/external/CMakeLists.txt "$1/example"
  cat > "$1/check.sh" <<'SH'
set -eu
cd "$(dirname "$0")/example"
export SINTER_CACHE_DIR="$PWD/cache"
g++ main.cpp -o by_pkg_config $(pkg-config --cflags --libs sinter)
./by_pkg_config
cmake -S . -B by_cmake -DCMAKE_BUILD_TYPE=Release "$@" > /dev/null
cmake --build by_cmake > /dev/null
by_cmake/hello_sinter
sinter generate --prompt 'Call me Ishmael.' --max-new-tokens 4
sinter ops hstack
SH
}

in_chroot() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }

# Every file but those in which dpkg and ldconfig keep their books.
list_files() {
  (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./var/log -o -path ./var/lib/dpkg \
    -o -path ./var/cache -o -path ./etc/ld.so.cache \) -prune -o -print | sort)
}

check_in_chroot() {
  root=${folder:-$(mktemp -d)}
  [ -n "$folder" ] || trap 'rm -rf --one-file-system "$root"' EXIT
  if [ ! -x "$root/usr/bin/dpkg" ]; then
    debootstrap --variant=minbase --include=g++,cmake,make,pkg-config "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root"
  fi
  cp "$deb" "$root/tmp/sinter.deb"
  # What it depends on first, so that what is compared is the package alone.
  local needs
  needs=$(dpkg-deb -f "$deb" Depends | sed -E 's/\([^)]*\)//g; s/\|[^,]*//g; s/,/ /g')
  in_chroot apt-get -q update
  # shellcheck disable=SC2086
  in_chroot apt-get -q -y --no-install-recommends install $needs
  in_chroot dpkg -P sinter  # left by a check that failed, in a folder that is kept
  list_files > "$root/tmp/before"
  in_chroot dpkg -i /tmp/sinter.deb
  write_programs "$root/tmp"
  in_chroot sh /tmp/check.sh
  in_chroot dpkg -P sinter
  rm -rf "$root/tmp/example"
  list_files > "$root/tmp/after"
  diff "$root/tmp/before" "$root/tmp/after" || { echo "deb: these files were left or lost"; exit 1; }
}

check_unpacked() {
  root=$(mktemp -d)
  trap 'rm -rf "$root"' EXIT
  dpkg -x "$deb" "$root"
  write_programs "$root"
  PATH="$root/usr/bin:$PATH" LD_LIBRARY_PATH="$root/usr/lib" PKG_CONFIG_PATH="$root/usr/lib/pkgconfig" \
    sh "$root/check.sh" "-DCMAKE_PREFIX_PATH=$root/usr"
}

if [ "$(id -u)" = 0 ] && command -v debootstrap > /dev/null; then
  check_in_chroot
  echo "deb: ok, installed and removed in a chroot"
else
  check_unpacked
  echo "deb: ok, unpacked; for an installation run this as root, with debootstrap"
fi
