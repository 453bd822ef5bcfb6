#!/usr/bin/env bash
# Checks what a built libsinter exports: what public headers declare, and nothing of namespaces that only internals have.
# Usage: check_exports.sh LIBRARY. Prints one line per fault and exits 1 when there are any.
set -euo pipefail
exported=$(nm -DC --defined-only "$1" | cut -d ' ' -f 3-)

internal='cli|codegen|eager|embedded|interpreter|jinja|padding|referee|tokenizers|runtime::[a-z_]+_detail|capture::Capture|nn::ModuleState'
wanted=('sinter::matmul(' 'sinter::capture::Function::call(' 'sinter::nn::Module::parameters(' 'typeinfo for sinter::Error'
  'sinter::register_backend(' 'sinter::run_graph(')

faults=$(
  grep -E "^((vtable|typeinfo|typeinfo name|guard variable) for )?sinter::($internal)::" <<<"$exported" |
    sed 's/$/: is internal, and exported/' || true
  for name in "${wanted[@]}"; do
    grep -qF "$name" <<<"$exported" || echo "$name: is not exported"
  done
)

if [ -n "$faults" ]; then
  echo "$faults"
  exit 1
fi
