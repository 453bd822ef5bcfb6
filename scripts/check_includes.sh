#!/usr/bin/env bash
# Checks who includes whom in sinter/, that only the tensor API and the folders of a device ask for the kind of a device, and that
# every folder opens with a README.md.
# Usage: check_includes.sh [root of the tree]. Prints one line per fault; the exit status is 1 when there are any.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

# folder: the folders it may include besides itself. The same order as in docs/architecture.md. cli sees the inner stages
# too, which no other user of the library does: `sinter show` and `sinter info` print them.
layers='
base:
tensor:   base
graph:    base tensor
ops:      base tensor graph
autograd: base tensor graph ops
passes:   base tensor graph ops
loops:    base tensor graph ops
codegen:  base tensor graph ops loops
runtime:  base tensor
engine:   base tensor graph ops autograd passes loops codegen runtime
capture:  base tensor graph ops autograd passes loops codegen runtime engine
io:       base tensor
data:     base tensor ops io
distributions: base tensor ops
sparse:   base tensor ops
nn:       base tensor ops autograd capture engine io
optim:    base tensor ops autograd capture engine io nn
models:   base tensor ops autograd capture engine io nn optim
train:    base tensor ops autograd capture engine io data nn optim models
interop:  base tensor ops autograd capture engine io nn
serialize: base tensor ops autograd capture engine io data nn optim
generate: base tensor ops autograd capture engine io nn optim models
serve:    base tensor ops autograd capture engine io nn optim models generate
package:  base tensor ops autograd capture engine io nn optim models generate runtime
c:        base tensor ops autograd capture io nn interop runtime
cli:      base tensor graph ops autograd passes loops codegen runtime capture engine io data nn optim models train generate serve package interop sinter.h
'

# Parts of engine, and those of them that they may not include: a step knows no device, devices do not know each other, and
# what plans and runs programs knows them by their interface alone.
parts='
engine/step:       engine/device engine/eager engine/cpu engine/gpu engine/cuda engine/hip engine/executable engine/referee engine/bisect
engine/eager:      engine/cpu engine/gpu engine/cuda engine/hip engine/executable engine/referee engine/bisect
engine/device:     engine/eager engine/executable engine/referee engine/bisect
engine/cpu:        engine/gpu engine/cuda engine/hip engine/executable engine/referee engine/bisect
engine/gpu:        engine/device engine/cpu engine/cuda engine/hip engine/executable engine/referee engine/bisect
engine/cuda:       engine/cpu engine/hip engine/executable engine/referee engine/bisect
engine/hip:        engine/cpu engine/cuda engine/executable engine/referee engine/bisect
engine/executable: engine/cpu engine/gpu engine/cuda engine/hip engine/referee engine/bisect
engine/referee:    engine/cpu engine/gpu engine/cuda engine/hip engine/bisect
'

# Libraries whose headers are slow to compile stay out of our headers, but for those named *_api.h, which only .cpp files
# may include.
heavy='^(clang/|llvm/|nlohmann/|CLI/|oneapi/|dnnl|pcre2|utf8proc|zlib|png|jpeglib|cuda|nvrtc|cublas|cudnn|boost/)'

faults=$(
  {
    find sinter -type f \( -name '*.h' -o -name '*.cpp' \) -print0 | sort -z |
      layers="$layers" parts="$parts" xargs -0 -r awk -v heavy="$heavy" '
        BEGIN {
          count = split(ENVIRON["layers"], lines, "\n")
          for (i = 1; i <= count; i++) {
            if (split(lines[i], words, " ") == 0) continue
            folder = words[1]; sub(/:$/, "", folder)
            known[folder] = 1; allowed[folder, folder] = 1
            for (j = 2; j in words; j++) allowed[folder, words[j]] = 1
          }
        }
        BEGIN {
          count = split(ENVIRON["parts"], lines, "\n")
          for (i = 1; i <= count; i++) {
            if (split(lines[i], words, " ") == 0) continue
            part = words[1]; sub(/:$/, "", part)
            for (j = 2; j in words; j++) refused[part, words[j]] = 1
          }
        }
        # Files directly in sinter/ gather the public headers and may see everything.
        FNR == 1 {
          parts = split(FILENAME, path, "/")
          folder = parts > 2 ? path[2] : ""
          part_of_file = parts > 3 ? path[2] "/" path[3] : ""
          is_header = FILENAME ~ /\.h$/
          if (folder != "" && !(folder in known)) print FILENAME ": folder " folder " has no place in the order"
          if (is_header && $0 !~ /^#pragma once/) print FILENAME ":1: a header opens with #pragma once"
        }
        # Others ask its target, its engine or its runtime.
        /is_cuda\(\)/ && FILENAME !~ /^sinter\/(tensor|[a-z]+\/cuda)\// {
          print FILENAME ":" FNR ": only sinter/tensor and folders of CUDA ask is_cuda()"
        }
        /^[ \t]*#[ \t]*include[ \t]*["<]/ {
          quoted = $0 ~ /include[ \t]*"/
          target = $0; sub(/^[^"<]*["<]/, "", target); sub(/[">].*$/, "", target)
          where = FILENAME ":" FNR ": "
          if (target ~ /\.inc$/) next  # made by the build
          if (target ~ /^sinter\//) {
            if ((getline line < target) < 0) print where target " does not exist"
            close(target)
            split(target, path, "/")
            if (is_header && target ~ /_api\.h$/) print where target " brings in slow headers and belongs in a .cpp file"
            if (folder in known && !((folder, path[2]) in allowed)) print where folder " may not include " target
            if ((part_of_file, path[2] "/" path[3]) in refused) print where part_of_file " may not include " target
          } else if (quoted && target != "sinter_embedded.h") {
            print where "write \"" target "\" with its path from the root, as \"sinter/base/error.h\""
          } else if (is_header && FILENAME !~ /_api\.h$/ && target ~ heavy) {
            print where "<" target "> is slow to compile and belongs in a .cpp file"
          }
        }'
    for folder in sinter/*/; do
      [ -n "$(find "$folder" -type f \( -name '*.h' -o -name '*.cpp' \) -print -quit)" ] || continue
      [ -f "${folder}README.md" ] || echo "${folder%/}: README.md is missing"
    done
  }
)

if [ -n "$faults" ]; then
  echo "$faults"
  exit 1
fi
