#!/usr/bin/env bash
# Checks sinter/public_headers.txt, the list of what is installed: its headers exist and include none that is not listed,
# they export what they declare, and sinter/sinter.h reaches few of them.
# Usage: check_public_headers.sh [root of the tree]. Prints one line per fault and exits 1 when there are any.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

# Including sinter.h costs every program of a user's what it reaches.
most_reached=62

faults=$(
  grep '^sinter/' sinter/public_headers.txt | most="$most_reached" awk '
    function visit(header, i) {
      if (header in reached) return
      reached[header] = 1; ++count
      for (i = 1; i <= includes[header]; i++) visit(include[header, i])
    }
    { listed[$0] = 1; order[++headers] = $0 }
    END {
      for (h = 1; h <= headers; h++) {
        header = order[h]; number = 0
        while ((status = (getline line < header)) > 0) {
          number++
          where = header ":" number ": "
          if (line ~ /^namespace sinter[: ]/ && line !~ /;/ && line !~ /SINTER_API/) plain[header] = where
          if (line ~ /^namespace sinter SINTER_API \{/) exports[header] = 1
          if (line !~ /^[ \t]*#[ \t]*include[ \t]*["<]sinter\//) continue
          target = line; sub(/^[^"<]*["<]/, "", target); sub(/[">].*$/, "", target)
          if (target ~ /\.inc$/) continue  # made and installed by the build
          if (!(target in listed)) print where target " is not a public header"
          include[header, ++includes[header]] = target
        }
        close(header)
        if (status < 0) print header ": does not exist"
        if (header in plain && !(header in exports)) print plain[header] "write `namespace sinter SINTER_API {`"
      }
      if (!("sinter/sinter.h" in listed)) print "sinter/sinter.h: is not listed"
      visit("sinter/sinter.h")
      if (count > ENVIRON["most"] + 0) print "sinter/sinter.h: reaches " count " headers, more than " ENVIRON["most"]
    }'
)

if [ -n "$faults" ]; then
  echo "$faults"
  exit 1
fi
