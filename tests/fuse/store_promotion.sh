#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A folder that is attached for reading takes over in place, and is killed at each call that changes
# the disk: it stays attached or becomes the writer's folder, and the same command finishes.
limit_s=600
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
: "${VARVE_FAULTY_DISK:?is the path of the library made from faulty_disk.cc}"
start_store

version() {  # NAME: makes a tree, and stores it
  mkdir "$work/$1"
  head -c 300K /dev/urandom >"$work/$1/data"
  echo "$1" >"$work/$1/name"
  "$VARVE" -q store "${2:-$repo}" "s/$1" "$work/$1"
}
has_versions() {  # FOLDER NAME…
  local folder=$1 name
  shift
  for name in "$@"; do
    rm -rf "$work/out"
    "$VARVE" -q restore "$folder" "s/$name" "$work/out" || fail "$folder lacks $name"
    diff -r "$work/$name" "$work/out"
  done
}
keeper=$work/keeper

"$VARVE" -q init "$place" --local="$repo"
version one
version two
"$VARVE" -q attach "$place" "$keeper"
has_versions "$keeper" one two
version three
cp -a "$keeper" "$work/kept"
[ "$(store_command save laptop)" -gt 5 ]

repo=$keeper mount_as_job -o ro
expect_status 11 "$VARVE" attach --write "$place" "$keeper"
message_says 'is mounted on'
"$VARVE" umount "$mnt"
wait "$daemon" || true
grep -q 'role = reader' "$keeper/bucket"
ok "a mounted folder is not promoted"

on_disk() {  # VARIABLE=VALUE COMMAND…: runs varve on the faulty disk
  env LD_PRELOAD="$VARVE_FAULTY_DISK" DISK_BELOW="$keeper" "$1" "$VARVE" -q "${@:2}" >"$work/said" 2>&1
}
on_disk DISK_CALLS_IN="$work/calls" attach --write "$place" "$keeper" || fail "$(cat "$work/said")"
calls=$(stat -c %s "$work/calls")
[ "$calls" -gt 20 ] || fail "only $calls calls were counted"
grep -q 'role = writer' "$keeper/bucket"
readers=0
for ((at = 1; at <= calls; at += calls > 120 ? 2 : 1)); do
  rm -rf "$keeper" "$work/fresh"
  cp -a "$work/kept" "$keeper"
  store_command undo >/dev/null
  (on_disk DISK_KILLS_AT=$at attach --write "$place" "$keeper") 2>/dev/null && fail "attach survived the kill at call $at"
  if grep -q 'role = reader' "$keeper/bucket"; then readers=$((readers + 1)); fi
  "$VARVE" ls "$keeper" s >"$work/list" || fail "killed at call $at: $(cat "$work/list")"
  [ "$(grep -c -E 'one|two|three' "$work/list")" = 3 ] || fail "killed at call $at: $(cat "$work/list")"
  "$VARVE" -q attach --write "$place" "$keeper" || fail "killed at call $at, again"
  [ $((at % 7)) = 0 ] || continue
  rm -rf "$work/four"
  version four "$keeper"
  has_versions "$keeper" one two three four
  "$VARVE" -q check --read-data "$keeper"
  "$VARVE" -q attach "$place" "$work/fresh"
  has_versions "$work/fresh" one two three four
  "$VARVE" -q check "$work/fresh"
done
[ "$readers" -gt 10 ] || fail "the folder stayed attached after $readers kills only"
ok "killed at $calls calls, the folder is attached or writes, and the same command finishes"

expect_status 11 "$VARVE" store "$repo" s/late "$work/one"
message_says 'another folder writes'
ok "the folder that wrote before is fenced"
