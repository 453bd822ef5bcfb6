#!/usr/bin/env bash
# Whether docs/reference is what the command writes. Usage: check_reference.sh COMMAND [root of the tree].
set -euo pipefail
command=$1
cd "${2:-$(dirname "$0")/..}"

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"$command" ops --reference "$fresh"
if ! diff -ru docs/reference "$fresh"; then
  echo "docs/reference is not what the headers and the registry say: run \`make reference\` and commit it"
  exit 1
fi
