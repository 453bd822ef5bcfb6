#!/usr/bin/env bash
# Plants one fault of each kind in a small tree and expects check_public_headers.sh to name it.
set -euo pipefail
scripts="$(cd "$(dirname "$0")" && pwd)"
check="$scripts/check_public_headers.sh"
. "$scripts/expect_complaint.sh"

plant() {  # a sound tree
  rm -rf "${tree:?}/sinter"
  mkdir -p "$tree"/sinter/base
  printf '# All.\nsinter/sinter.h\nsinter/base/a.h\n' >"$tree/sinter/public_headers.txt"
  printf '#pragma once\nnamespace sinter SINTER_API {\n}\n' >"$tree/sinter/base/a.h"
  printf '#pragma once\nnamespace sinter {\n}\n' >"$tree/sinter/base/internal.h"
  printf '#pragma once\n#include "sinter/base/a.h"\n' >"$tree/sinter/sinter.h"
}

plant
"$check" "$tree"

plant; echo '#include "sinter/base/internal.h"' >>"$tree/sinter/base/a.h"
expect 'sinter/base/a.h:4: sinter/base/internal.h is not a public header'

plant; echo 'sinter/base/internal.h' >>"$tree/sinter/public_headers.txt"
expect 'sinter/base/internal.h:2: write `namespace sinter SINTER_API {`'

plant; echo 'sinter/base/gone.h' >>"$tree/sinter/public_headers.txt"
expect 'sinter/base/gone.h: does not exist'

plant; sed -i '/sinter.h/d' "$tree/sinter/public_headers.txt"
expect 'sinter/sinter.h: is not listed'

plant
for i in {1..61}; do
  echo '#pragma once' >"$tree/sinter/base/$i.h"
  echo "#include \"sinter/base/$i.h\"" >>"$tree/sinter/base/a.h"
  echo "sinter/base/$i.h" >>"$tree/sinter/public_headers.txt"
done
expect 'sinter/sinter.h: reaches 63 headers, more than 62'
