#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Kills `varve mv` at each call that changes the disk. The version or the series then has the old name or the new
# one, and keeps its data, its lock and its claimed time, also with a catalog that was rebuilt.
limit_s=300
. "$(dirname "$0")/lib.sh"
: "${VARVE_FAULTY_DISK:?is the path of the library made from faulty_disk.cc}"

mkdir "$work/tree"
head -c 100000 /dev/urandom >"$work/tree/x"
master=$work/master
"$VARVE" -q init --compression none "$master"
"$VARVE" -q store --no-arrange --time 2021-03-04 "$master" s/v "$work/tree" >/dev/null
"$VARVE" -q lock --for 1d "$master" s/v 2>/dev/null

moves() {  # VARIABLE=VALUE… WORDS…: renames on the faulty disk
  env LD_PRELOAD="$VARVE_FAULTY_DISK" DISK_BELOW="$repo" "$1" "$VARVE" -q mv "$repo" "${@:2}" >/dev/null 2>&1
}
whole() {  # OLD NEW: one of the names exists, with everything
  local name
  name=$("$VARVE" ls "$repo")
  [ "$name" = "$1" ] || [ "$name" = "$2" ] || fail "killed at call $at: $name"
  "$VARVE" dump "$repo" "$name/x" | cmp - "$work/tree/x"
  "$VARVE" stat --json "$repo" "$name" >"$work/stat"
  grep -q '"locked": *true' "$work/stat" && grep -q '"claimed_at": *"2021-03-0' "$work/stat" ||
    fail "killed at call $at: $(cat "$work/stat")"
}
for words in 's/v w' 's t'; do
  new=$([ "$words" = 's t' ] && echo t/v || echo s/w)
  rm -rf "$repo" "$work/calls"
  cp -a "$master" "$repo"
  # shellcheck disable=SC2086
  moves DISK_CALLS_IN="$work/calls" $words
  [ "$("$VARVE" ls "$repo")" = "$new" ] || fail "the name is $("$VARVE" ls "$repo"), not $new"
  calls=$(stat -c %s "$work/calls")
  [ "$calls" -gt 4 ] || fail "only $calls calls were counted"
  for ((at = 1; at <= calls; at++)); do
    rm -rf "$repo"
    cp -a "$master" "$repo"
    # shellcheck disable=SC2086
    (moves DISK_KILLS_AT=$at $words) 2>/dev/null && fail "it survived the kill at call $at" || true
    whole s/v "$new"
    "$VARVE" check --quick "$repo" >"$work/check" 2>&1 || fail "killed at call $at: $(cat "$work/check")"
    [ $((at % 3)) -eq 0 ] || continue
    "$VARVE" repair --yes --rebuild-catalog "$repo" >/dev/null 2>&1
    whole s/v "$new"
  done
  ok "mv $words: killed at each of $calls calls; the name is the old or the new one, with everything"
done
