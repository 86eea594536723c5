#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The commands ask the kernel for the path of the repository's folder a few times, not at each access.
. "$(dirname "$0")/lib.sh"

command -v strace >/dev/null || skip "no strace"
strace -o /dev/null true 2>/dev/null || skip "strace cannot trace here"

mkdir "$work/tree"
for i in $(seq 300); do echo "$i" >"$work/tree/$i"; done
paths() {  # NAME COMMAND…: counts the requests for the path of a descriptor
  ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 \
    strace -f -e trace=readlink -o "$work/trace" "${@:2}" >>"$work/log"
  local count
  count=$(grep -c /proc/self/fd/ "$work/trace") || true
  [ "$count" -le 20 ] || fail "$1 asks for the path of a descriptor $count times"
}

paths init "$VARVE" -q init "$repo"
paths store "$VARVE" -q store "$repo" s/one "$work/tree"
paths "the next store" "$VARVE" -q store "$repo" s/two "$work/tree"
paths restore "$VARVE" -q restore "$repo" s/two "$work/restored"
paths check "$VARVE" -q check --read-data "$repo"
ok "300 files need no path of a descriptor"
