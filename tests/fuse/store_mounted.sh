#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Stores directories into a mounted repository: its daemon reads them.
limit_s=240
. "$(dirname "$0")/lib.sh"

"$VARVE" -q init "$repo"
src=$work/src
mkdir -p "$src/d/e" "$src/many"
for i in $(seq 200); do echo "file $i" >"$src/many/$i"; done
head -c 2000000 /dev/urandom >"$src/d/big"
ln "$src/d/big" "$src/linked"
ln -s d/big "$src/link"
mkfifo "$src/fifo"
truncate -s 3M "$src/sparse"
echo junk >"$src/d/a.o"
setfattr -n user.note -v kept "$src/d/e"
find "$src" -exec touch -h -d '1 hour ago' {} +
sleep 2.1  # Files changed in the last 2 seconds are read again.
json_of() {  # KEY: prints a member of the last line in $work/stdout
  tail -1 "$work/stdout" | python3 -c '
import json, sys
print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

mount_repo
ls "$mnt" >/dev/null
expect_status 0 "$VARVE" store --json --time 2020-01-02 "$repo" s/v1 "$src"
[ "$(json_of state)" = sealed ]
[ "$(json_of unchanged)" -eq 0 ]
python3 "$here/tree_state.py" "$src" "$mnt/s/v1"
[ "$(readlink "$mnt/s/latest")" = v1 ]
"$VARVE" stat --json "$repo" s/v1 >"$work/stat"
grep -q '"claimed_at":"20' "$work/stat"
ok "a directory becomes a sealed version of the mounted repository, with its time"

echo more >>"$src/many/7"
rm "$src/many/8"
expect_status 0 "$VARVE" store -n "$mnt" s/v2 "$src"
grep -qx 'M many/7' "$work/stdout"
grep -qx -- '- many/8' "$work/stdout"
expect_status 0 "$VARVE" store --json "$mnt" s/v2 "$src"
[ "$(json_of unchanged)" -gt 190 ]
[ "$(json_of read_bytes)" -lt 100 ]
python3 "$here/tree_state.py" "$src" "$mnt/s/v2"
[ "$(cat "$mnt/s/v1/many/8")" = "file 8" ]
ok "the next store reads only what changed"

printf 'd/a.o\nmany/1\nnothing\n' >"$work/list"
expect_status 3 "$VARVE" store --files-from "$work/list" "$repo" s/v3 "$src"
message_says 'nothing: not stored'
[ "$(cd "$mnt/s/v3" && find . -type f | sort | tr '\n' ' ')" = "./d/a.o ./many/1 " ]
expect_status 2 "$VARVE" store --exclude '[' "$repo" s/v4 "$src"
message_says 'without a \]'
expect_status 1 "$VARVE" store "$repo" s/v3 "$src"
expect_status 1 "$VARVE" store "$repo" s/v4 "$work/none"
expect_status 11 "$VARVE" store --stdin f "$repo" s/v4 </dev/null
message_says 'copy into'
[ ! -e "$mnt/s/v4" ]
ok "errors and incomplete stores have the exit codes of a store without a mount"

expect_status 0 "$VARVE" store --exclude '*.o' "$repo" s/v4.partial "$src"
[ ! -e "$mnt/s/v4.partial/d/a.o" ]
echo own >"$mnt/s/v4.partial/own"
expect_status 0 "$VARVE" store "$repo" s/v4.partial "$src"
[ -e "$mnt/s/v4.partial/own" ]
"$VARVE" -q seal "$repo" s/v4.partial >"$work/sealed"
[ "$(cat "$mnt/s/v4/own" "$mnt/s/v4/d/a.o")" = "own
junk" ]
ok "a partial version stays open for the mount and further stores"

expect_status 0 "$VARVE" store "$repo" t/all "$work"
message_says 'mnt is this repository or its mount'
message_says 'repo is this repository or its mount'
[ -z "$(ls "$mnt/t/all/mnt" "$mnt/t/all/repo" | grep -v : || true)" ]
[ "$(cat "$mnt/t/all/src/many/1")" = "file 1" ]
expect_status 1 "$VARVE" store "$repo" s/in "$mnt/s"
message_says 'in a mount of the repository itself'
mkdir "$work/bound"
mount --bind "$mnt/s" "$work/bound"
expect_status 0 "$VARVE" store "$repo" t/bound "$work"
[ -z "$(ls "$mnt/t/bound/bound")" ]
umount "$work/bound"
expect_status 1 unshare -m "$VARVE" store "$repo" t/other "$src"
message_says 'another mount namespace'
ok "the repository and its mount are left out; another view of the files is refused"

# A part of the source is on another mount, whose daemon can be stopped: so the store waits there.
"$VARVE" -q init "$work/other"
"$VARVE" -q store "$work/other" o/1 "$src/d" >"$work/stored"
mkdir "$src/zslow"
"$VARVE" mount -f "$work/other" "$src/zslow" 2>"$work/other.log" &
slow=$!
wait_until "the other mount appears" mountpoint -q "$src/zslow"
is_sealed() { [ "$(getfattr --only-values -n user.varve.state "$mnt/s/$1" 2>/dev/null)" = sealed ]; }
# Stores again. On a busy machine, the daemon may have sealed the version before it saw the end of the command.
store_again() { "$VARVE" store "$repo" "$1" "$src" >"$work/again" 2>&1 || is_sealed "$1"; }

kill -STOP "$slow"
"$VARVE" store "$repo" s/v5 "$src" >"$work/first" 2>&1 &
victim=$!
wait_until "the store has begun" test -e "$mnt/s/v5"
expect_status 1 "$VARVE" store "$repo" s/v5 "$src"
message_says 'under way'
kill -TERM "$victim"
status=0
wait "$victim" || status=$?
[ "$status" -eq 130 ] || fail "status $status: $(cat "$work/first")"
sleep 0.5  # The daemon looks for the command ten times a second.
kill -CONT "$slow"
wait_until "the interrupted store continues" store_again s/v5
kill -STOP "$slow"
"$VARVE" store "$repo" s/v6 "$src" >"$work/first" 2>&1 &
victim=$!
wait_until "the store has begun" test -e "$mnt/s/v6"
kill -9 "$victim"
wait "$victim" 2>/dev/null || true
sleep 0.5
kill -CONT "$slow"
wait_until "the killed command's store continues" store_again s/v7
[ ! -e "$mnt/s/v6" ] || is_sealed v6
"$VARVE" umount "$src/zslow"
wait "$slow"
rmdir "$src/zslow"
"$VARVE" -q store "$repo" s/v8 "$src" >"$work/stored"
python3 "$here/tree_state.py" "$src" "$mnt/s/v8"
ok "an interrupted or killed command stops its store, and the next one continues"

unmount_repo
"$VARVE" check --read-data "$repo" >"$work/checked"
grep -q 'no damage' "$work/checked"
ok "the repository is sound"
