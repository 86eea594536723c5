#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One disk accepts O_DIRECT at the open but refuses direct reads and writes; another does not report
# its space.
. "$(dirname "$0")/lib.sh"

: "${VARVE_ODD_DISK:?is the path of the library that makes the disk odd}"
! under_sanitizer || skip "the sanitizer's library must be the first one"
mkdir "$work/tree"
head -c 6000000 /dev/urandom >"$work/tree/file"
seq 100000 >"$work/tree/numbers"

odd() { env LD_PRELOAD="$VARVE_ODD_DISK" "$@"; }
goes_round() {  # Stores, checks, reads and restores on an odd disk
  rm -rf "$repo" "$work/restored"
  "$@" "$VARVE" -q init --parity 5 "$repo"
  "$@" "$VARVE" -q store "$repo" s/one "$work/tree"
  "$@" "$VARVE" -q store "$repo" s/two "$work/tree"
  "$@" "$VARVE" check --read-data "$repo" >"$work/checked" || fail "$(head -5 "$work/checked")"
  "$@" "$VARVE" -q restore "$repo" s/two "$work/restored"
  same_tree "$work/tree" "$work/restored"
  "$@" "$VARVE" mount "$repo" "$mnt"
  cp -a "$work/tree" "$mnt/s/three"
  "$@" "$VARVE" seal "$mnt/s/three"
  cmp "$work/tree/file" "$mnt/s/two/file"
  unmount_repo
  "$@" "$VARVE" -q rm "$repo" s/one
  "$VARVE" -q check --read-data "$repo"
}

goes_round odd env DISK_REFUSES_DIRECT=1
ok "where direct access is refused after the open, the page cache does the work"

goes_round odd env DISK_HAS_NO_STATFS=1
[ -s "$repo/reserve" ] || fail "no reserve was kept"
ok "a disk that does not tell its space is not a full one"
