# For the tests of the checks: a tree to plant faults in, $tree, and what the script $check has to say of them.
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

expect() {  # expect "text of the complaint"
  local output
  if output=$("$check" "$tree"); then
    echo "not noticed: $1"
    exit 1
  fi
  if [ "$output" != "$1" ]; then
    printf 'expected: %s\ngot:      %s\n' "$1" "$output"
    exit 1
  fi
}
