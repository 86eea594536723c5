#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A directory of many entries costs no more per entry than a smaller one, and no memory for each.
#
# VARVE_ENTRIES (10000,40000) sets the sizes to compare.
limit_s=300
. "$(dirname "$0")/lib.sh"

if under_sanitizer; then
  python3 "$here/../../bench/scale.py" --varve "$VARVE" --dir "$work/scale" \
    --entries "${VARVE_ENTRIES:-40000}"
  ok "each phase is done; under a sanitizer its time and memory say nothing"
  exit 0
fi

# Other work on the machine slows some phases in some attempts. A phase that grows with the number
# is slow in each.
for attempt in 1 2 3; do
  if python3 "$here/../../bench/scale.py" --varve "$VARVE" --dir "$work/scale.$attempt" --check \
    --memory-mib 250 --entries "${VARVE_ENTRIES:-10000,40000}"; then
    ok "the cost per entry does not grow"
    exit 0
  fi
done
fail "in three attempts a phase was not linear"
