#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Kills `varve init` and `varve copy` at each call that changes the disk while they create a repository. The
# next run ends what they began, and a folder with anything else in it is left as it is. Without /proc,
# `varve init` creates nothing.
limit_s=300
. "$(dirname "$0")/lib.sh"
: "${VARVE_FAULTY_DISK:?is the path of the library made from faulty_disk.cc}"

mkdir "$work/tree"
echo text >"$work/tree/x"
source=$work/source
"$VARVE" -q init --parity 7 "$source"
"$VARVE" -q store --no-arrange "$source" s/v "$work/tree" >/dev/null

on_disk() {  # VARIABLE=VALUE COMMAND…: runs varve on the faulty disk
  env LD_PRELOAD="$VARVE_FAULTY_DISK" DISK_BELOW="$repo" "$1" "$VARVE" -q "${@:2}" >/dev/null 2>&1
}

settled=(init --parity 7 --rewrite cap --placement lineage+pool --pool-index zero-chunk)
on_disk DISK_CALLS_IN="$work/calls" "${settled[@]}" "$repo"
calls=$(stat -c %s "$work/calls")
[ "$calls" -gt 8 ] || fail "only $calls calls were counted"
for ((at = 1; at <= calls; at++)); do
  rm -rf "$repo"
  (on_disk DISK_KILLS_AT=$at "${settled[@]}" "$repo") 2>/dev/null && fail "init survived the kill at call $at" || true
  if [ -e "$repo/varve.repo" ]; then
    "$VARVE" config --json "$repo" >"$work/out"
    for setting in '"parity_percent":7' '"rewrite":"cap"' '"placement":"lineage+pool"' '"pool_index":"zero-chunk"'; do
      grep -qF "$setting" "$work/out" || fail "killed at call $at, no $setting: $(cat "$work/out")"
    done
  fi
  if [ $((at % 2)) -eq 0 ]; then
    "$VARVE" -q copy "$source" "$repo" >"$work/out" 2>&1 || fail "killed at call $at: $(cat "$work/out")"
    [ "$("$VARVE" dump "$repo" s/v/x)" = text ]
  elif [ ! -e "$repo/varve.repo" ]; then
    "$VARVE" -q init "$repo" 2>"$work/out" || fail "killed at call $at: $(cat "$work/out")"
  fi
  "$VARVE" -q check --read-data "$repo" >"$work/out"
  [ ! -e "$repo/varve.repo.tmp" ]
done
ok "init is killed at each of $calls calls, and init or copy ends what it began"

(umask 077; head -c 32 /dev/urandom >"$work/key")
begin=(init --encrypt --key-file "$work/key" --parity 7 "$repo")
rm -rf "$repo" "$work/calls"
on_disk DISK_CALLS_IN="$work/calls" "${begin[@]}"
calls=$(stat -c %s "$work/calls")
for ((at = 1; at <= calls; at++)); do
  rm -rf "$repo"
  (on_disk DISK_KILLS_AT=$at "${begin[@]}") 2>/dev/null && fail "init survived the kill at call $at" || true
  [ -e "$repo/varve.repo" ] || "$VARVE" -q "${begin[@]}" 2>"$work/out" || fail "killed at call $at: $(cat "$work/out")"
  "$VARVE" -q --key-file "$work/key" store "$repo" s/v "$work/tree" >/dev/null
  [ "$("$VARVE" --key-file "$work/key" dump "$repo" s/v/x)" = text ]
  cmp "$repo/varve.repo" "$repo/varve.keys"
done
ok "so is an init that encrypts, and the key of the second one opens what is there"

rm -rf "$repo" "$work/calls"
on_disk DISK_CALLS_IN="$work/calls" copy "$source" "$repo"
calls=$(stat -c %s "$work/calls")
for ((at = 1; at <= calls; at += at < 30 ? 1 : 7)); do
  rm -rf "$repo"
  (on_disk DISK_KILLS_AT=$at copy "$source" "$repo") 2>/dev/null && fail "copy survived the kill at call $at" || true
  "$VARVE" -q copy "$source" "$repo" >"$work/out" 2>&1 || fail "killed at call $at: $(cat "$work/out")"
  [ "$("$VARVE" dump "$repo" s/v/x)" = text ]
done
ok "copy is killed while it creates its target and later, and the next copy ends it"

into=(copy --encrypt --target-key-file "$work/key" "$source" "$repo")
rm -rf "$repo" "$work/calls"
on_disk DISK_CALLS_IN="$work/calls" "${into[@]}"
calls=$(stat -c %s "$work/calls")
for ((at = 1; at <= calls; at += at < 24 ? 1 : 13)); do
  rm -rf "$repo"
  (on_disk DISK_KILLS_AT=$at "${into[@]}") 2>/dev/null && fail "copy survived the kill at call $at" || true
  "$VARVE" -q "${into[@]}" >"$work/out" 2>&1 || fail "killed at call $at: $(cat "$work/out")"
  [ "$("$VARVE" --key-file "$work/key" dump "$repo" s/v/x)" = text ]
  cmp "$repo/varve.repo" "$repo/varve.keys"
done
ok "so is a copy that creates its target encrypted"

# ---- Other folders. ----

unfinished() {
  rm -rf "$repo"
  mkdir -p "$repo/catalog" "$repo/series" "$repo/staging"
  touch "$repo/varve.repo.tmp" "$repo/catalog/data.mdb"
}
unfinished
"$VARVE" -q init "$repo"
for foreign in file catalog/file series/00000001 staging/x varve.repo.tmp2; do
  unfinished
  echo kept >"$repo/$foreign"
  expect_status 1 "$VARVE" init "$repo"
  message_says "not empty"
  [ "$(cat "$repo/$foreign")" = kept ]
done
rm -rf "$repo"
mkdir "$repo"
echo kept >"$repo/lock"
expect_status 1 "$VARVE" init "$repo"
[ "$(cat "$repo/lock")" = kept ] && [ "$(ls "$repo")" = lock ]
unfinished
rm "$repo/varve.repo.tmp"
expect_status 1 "$VARVE" init "$repo"
unfinished
touch "$repo/lock"
exec 8>"$repo/lock"
flock 8
expect_status 11 "$VARVE" init "$repo"
message_says "another process creates"
exec 8>&-
ok "a folder with anything else, and one in which another process works, stay as they are"

if unshare -m true 2>/dev/null; then
  rm -rf "$repo"
  unshare -m sh -ec 'mount -t tmpfs none /proc; exec "$0" init "$1"' "$VARVE" "$work/deep/$$/repo" 2>"$work/out" &&
    fail "init works without /proc" || true
  grep -q '/proc is missing here' "$work/out"
  [ ! -e "$work/deep" ]
  ok "without /proc, init says so and creates nothing"
else
  skip_part "without /proc: a private mount namespace cannot be made here"
fi
