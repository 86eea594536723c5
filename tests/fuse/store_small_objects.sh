#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each small object of a store is flipped, cut or removed, alone or together with its copy. A fresh
# machine attaches and restores, checks name the object, and a repair writes the object again.
# usage: store_small_objects.sh [KIND…]    plain, encrypted; without a kind both
limit_s=900
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
start_store

for kind in ${*:-plain encrypted}; do
  python3 "$here/store_small_objects.py" $kind "$place/$kind" "$work" \
    3<"/proc/$$/fd/${STORE[0]}" 4>"/proc/$$/fd/${STORE[1]}" >"$work/table" 2>&1 || fail "$(cat "$work/table")"
  cat "$work/table"
  ok "$kind: each small object may be lost"
done
