#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compacts the catalog: kills the program at each call that changes the disk, fills the disk at each,
# and reads in other processes before, during and after it.
limit_s=600
. "$(dirname "$0")/lib.sh"
: "${VARVE_FAULTY_DISK:?is the path of the library made from faulty_disk.cc}"
master=$work/master
catalog=$repo/catalog/data.mdb

bytes_of() { stat -c %s "$1"; }

content() {  # REPO: prints a sum of the files, their data and their attributes
  "$VARVE" restore --quiet --to-tar - "$1" s/v3 | sha256sum
}

fresh() {
  rm -rf "$repo"
  cp -a "$master" "$repo"
}

expect_sound() {  # WHAT
  "$VARVE" check --read-data "$repo" >"$work/check" 2>&1 || fail "$1: $(cat "$work/check")"
  [ "$(content "$repo")" = "$expected" ] || fail "$1: the version has changed"
  # The next writer removes what an interrupted compaction left.
  "$VARVE" arrange "$repo" >/dev/null || fail "$1: cannot be opened for writing"
  [ ! -e "$catalog.tmp" ] || fail "$1: the unfinished copy is still there"
  "$VARVE" check "$repo" >"$work/check" 2>&1 || fail "$1, then written: $(cat "$work/check")"
}

under() {  # VARIABLE=VALUE…: compacts on the faulty disk
  env LD_PRELOAD="$VARVE_FAULTY_DISK" DISK_BELOW="$repo" "$@" \
    "$VARVE" arrange --compact-catalog "$repo" >"$work/out" 2>"$work/err"
}

"$VARVE" init --compression none "$repo"
mkdir "$work/source"
for version in v1 v2 v3; do
  python3 - "$work/source" "$version" <<'END'
import os, sys
folder, version = sys.argv[1:]
for i in range(700):
    path = f"{folder}/a-file-{version}-{i}"
    open(path, "w").write(f"{version} {i}")
    os.setxattr(path, "user.noise", os.urandom(3900))
END
  "$VARVE" store "$repo" "s/$version" "$work/source" >/dev/null
  rm "$work"/source/*
done
# Another reader keeps the deletion from compacting at its end.
mount_repo -o ro
"$VARVE" rm "$repo" s/v1 s/v2 >/dev/null
before=$(bytes_of "$catalog")
expect_status 1 "$VARVE" arrange --compact-catalog "$repo"
[[ $message == *"another process is reading"* ]] || fail "it says: $message"
[ "$(bytes_of "$catalog")" = "$before" ] || fail "a reader's catalog was replaced"
ls "$mnt/s/v3" >/dev/null
unmount_repo
cp -a "$repo" "$master"
expected=$(content "$master")
ok "a reader prevents a compaction, and the command says so"

chmod 640 "$catalog"
chown nobody "$catalog"
VARVE_TRUST=$repo "$VARVE" arrange --compact-catalog "$repo" | grep -q "^catalog: "
after=$(bytes_of "$catalog")
[ "$after" -lt $((before / 2)) ] || fail "the catalog has $after bytes of $before"
[ "$(stat -c '%a %U' "$catalog")" = "640 nobody" ] || fail "the owner or mode changed"
chown root "$catalog"
expect_sound "compacted"
ok "the compacted catalog is short ($before, then $after bytes) and the same"

fresh
"$VARVE" arrange "$repo" >/dev/null
[ "$(bytes_of "$catalog")" = "$after" ] || fail "the close did not compact"
expect_sound "compacted at the close"
ok "the close of a command compacts a catalog that is mostly free"

fresh
mount_repo
expect_status 1 "$VARVE" arrange --compact-catalog "$repo"
[[ $message == *"is mounted"* ]] || fail "it says: $message"
unmount_repo
[ "$(bytes_of "$catalog")" = "$after" ] || fail "the daemon did not compact at its end"
expect_sound "compacted by the daemon"
ok "a daemon compacts at its end"

fresh
rm -f "$work/calls"
under DISK_CALLS_IN="$work/calls"
calls=$(bytes_of "$work/calls")
[ "$calls" -gt 8 ] || fail "only $calls calls were counted"
old=0
new=0
for ((at = 1; at <= calls; at++)); do
  fresh
  (under DISK_KILLS_AT=$at) 2>/dev/null && fail "it survived the kill at call $at" || true
  if [ "$(bytes_of "$catalog")" = "$after" ]; then new=$((new + 1)); else old=$((old + 1)); fi
  expect_sound "killed at call $at of $calls"
done
[ $old -gt 3 ] && [ $new -gt 0 ] || fail "killed with the old catalog $old times, the new $new times"
ok "killed at each of $calls calls ($old with the old catalog, $new with the new)"

told=0
for ((at = 1; at <= calls; at++)); do
  fresh
  if ! under DISK_FULL_AT=$at; then
    [ -s "$work/err" ] || fail "no message about the full disk at call $at"
    ! grep -q "compacting the catalog: .*stays as it was" "$work/err" || told=$((told + 1))
  fi
  expect_sound "full from call $at of $calls on"
done
[ $told -gt 0 ] || fail "no compaction told that the disk was full"
ok "full from each of $calls calls on ($told compactions failed)"

fresh
: >"$work/go"
(while [ -e "$work/go" ]; do
  [ "$(content "$repo" 2>&1)" = "$expected" ] || { touch "$work/wrong"; break; }
  sleep 0.1
done) &
reader=$!
compacted=0
busy=0
for ((i = 0; i < 200 && (compacted < 10 || busy < 5); i++)); do
  if "$VARVE" arrange --compact-catalog "$repo" >/dev/null 2>"$work/err"; then
    compacted=$((compacted + 1))
  else
    grep -q "another process is reading" "$work/err" || fail "$(cat "$work/err")"
    busy=$((busy + 1))
  fi
done
rm "$work/go"
wait "$reader"
[ $compacted -gt 0 ] || fail "no compaction found a moment without a reader"
[ ! -e "$work/wrong" ] || fail "a reader saw another state"
expect_sound "compacted beside readers"
ok "readers see one state while the catalog is replaced ($compacted times, $busy refused)"
