#!/usr/bin/env bash
# Plants one fault of each kind in a small tree and expects check_includes.sh to name it.
set -euo pipefail
scripts="$(cd "$(dirname "$0")" && pwd)"
check="$scripts/check_includes.sh"
. "$scripts/expect_complaint.sh"

plant() {  # a sound tree
  rm -rf "${tree:?}/sinter"
  mkdir -p "$tree"/sinter/{base,tensor,runtime/cpu,cli}
  touch "$tree"/sinter/{base,tensor,runtime,cli}/README.md
  echo '#pragma once' >"$tree/sinter/base/a.h"
  printf '#pragma once\n#include "sinter/base/a.h"\n#include <vector>\n' >"$tree/sinter/tensor/b.h"
  printf '#include "sinter/tensor/b.h"\n#include "sinter_embedded.h"\n' >"$tree/sinter/runtime/cpu/c.cpp"
  printf '#pragma once\n#include "sinter/tensor/b.h"\n' >"$tree/sinter/sinter.h"
  printf '#include "sinter/sinter.h"\n#include <CLI/CLI.hpp>\n' >"$tree/sinter/cli/main.cpp"
}

plant
"$check" "$tree"

plant; echo '  #  include <sinter/tensor/b.h>' >>"$tree/sinter/base/a.h"
expect 'sinter/base/a.h:2: base may not include sinter/tensor/b.h'

plant; echo '#include "sinter/sinter.h"' >>"$tree/sinter/runtime/cpu/c.cpp"
expect 'sinter/runtime/cpu/c.cpp:3: runtime may not include sinter/sinter.h'

plant; mkdir -p "$tree"/sinter/engine/{cpu,cuda}; touch "$tree/sinter/engine/README.md"; echo '#pragma once' >"$tree/sinter/engine/cuda/d.h"
echo '#include "sinter/engine/cuda/d.h"' >"$tree/sinter/engine/cpu/e.cpp"
expect 'sinter/engine/cpu/e.cpp:1: engine/cpu may not include sinter/engine/cuda/d.h'

plant; echo 'bool f(Device d) { return d.is_cuda(); }' >>"$tree/sinter/runtime/cpu/c.cpp"
expect 'sinter/runtime/cpu/c.cpp:3: only sinter/tensor and folders of CUDA ask is_cuda()'

plant; echo '#include "sinter/base/gone.h"' >>"$tree/sinter/tensor/b.h"
expect 'sinter/tensor/b.h:4: sinter/base/gone.h does not exist'

plant; echo '#include "c.h"' >>"$tree/sinter/runtime/cpu/c.cpp"
expect 'sinter/runtime/cpu/c.cpp:3: write "c.h" with its path from the root, as "sinter/base/error.h"'

plant; echo '#include <nlohmann/json.hpp>' >>"$tree/sinter/tensor/b.h"
expect 'sinter/tensor/b.h:4: <nlohmann/json.hpp> is slow to compile and belongs in a .cpp file'

plant; echo '#include <cuda.h>' >>"$tree/sinter/tensor/b.h"
expect 'sinter/tensor/b.h:4: <cuda.h> is slow to compile and belongs in a .cpp file'

plant; printf '#pragma once\n#include <cuda.h>\n' >"$tree/sinter/base/cuda_api.h"
"$check" "$tree"
echo '#include "sinter/base/cuda_api.h"' >>"$tree/sinter/tensor/b.h"
expect 'sinter/tensor/b.h:4: sinter/base/cuda_api.h brings in slow headers and belongs in a .cpp file'

plant; echo 'int x;' >"$tree/sinter/base/a.h"
expect 'sinter/base/a.h:1: a header opens with #pragma once'

plant; mkdir "$tree/sinter/misc"; touch "$tree/sinter/misc/README.md"; echo 'int x;' >"$tree/sinter/misc/x.cpp"
expect 'sinter/misc/x.cpp: folder misc has no place in the order'

plant; rm "$tree/sinter/tensor/README.md"
expect 'sinter/tensor: README.md is missing'
