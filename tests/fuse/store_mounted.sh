#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Stores directories, archives and streams into a mounted repository: its daemon reads them.
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
pass_time 3  # Files changed in the last 2 seconds are read again.
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
expect_status 0 "$VARVE" ls -l "$repo" s
grep -q '^s/v3 .* incomplete$' "$work/stdout" || fail "$(cat "$work/stdout")"
[ "$(cd "$mnt/s/v3" && find . -type f | sort | tr '\n' ' ')" = "./d/a.o ./many/1 " ]
expect_status 2 "$VARVE" store --exclude '[' "$repo" s/v4 "$src"
message_says 'without a \]'
expect_status 1 "$VARVE" store "$repo" s/v3 "$src"
expect_status 1 "$VARVE" store "$repo" s/v4 "$work/none"
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
ok "the repository and its mount are left out"
if unshare -m true 2>/dev/null; then
  expect_status 11 unshare -m "$VARVE" store --lock-wait 0 "$repo" t/other "$src"
  message_says 'another mount namespace'
  ok "another view of the files is refused"
else
  skip_part "another view of the files: a private mount namespace cannot be made here"
fi

# A part of the source is on another mount, whose daemon can be stopped: so the store waits there.
"$VARVE" -q init "$work/other"
"$VARVE" -q store "$work/other" o/1 "$src/d" >"$work/stored"
mkdir "$src/zslow"
"$VARVE" mount -f "$work/other" "$src/zslow" 2>"$work/other.log" &
slow=$!
wait_until "the other mount appears" mountpoint -q "$src/zslow"
is_sealed() { [ "$(getfattr --only-values -n user.varve.state "$mnt/$1" 2>/dev/null)" = sealed ]; }
# Stores again. On a busy machine, the daemon may have sealed the version before it saw the end of the command.
store_again() { "$VARVE" store "$repo" "$1" "$src" >"$work/again" 2>&1 || is_sealed "$1"; }

has_begun_or_ended() { [ -e "$mnt/$1" ] || grep -q 'under way' "$work/first"; }
# Begins the store of a version. The daemon may still be busy with the store of a command that has ended. Sets $victim.
begin_store() {
  local begun=
  until [ -n "$begun" ]; do
    "$VARVE" store "$repo" "$1" "$src" >"$work/first" 2>&1 &
    victim=$!
    wait_until "the store has begun, or is refused" has_begun_or_ended "$1"
    if [ -e "$mnt/$1" ]; then begun=1; fi
  done
}
is_gone() { [ ! -e "$mnt/$1" ]; }
is_gone_or_sealed() { is_gone "$1" || is_sealed "$1"; }

kill -STOP "$slow"
begin_store s/v5
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
begin_store s/v6
kill -9 "$victim"
wait "$victim" 2>/dev/null || true
sleep 0.5
kill -CONT "$slow"
wait_until "the killed command's store continues" store_again s/v7
wait_until "the killed command's version is sealed or dropped" is_gone_or_sealed s/v6
"$VARVE" umount "$src/zslow"
wait "$slow"
rmdir "$src/zslow"
"$VARVE" -q store "$repo" s/v8 "$src" >"$work/stored"
python3 "$here/tree_state.py" "$src" "$mnt/s/v8"
ok "an interrupted or killed command stops its store, and the next one continues"

names() { (cd "$1" && find . -type d -printf '%P/\n' -o ! -type p -printf '%P %y %s %l\n' | sort); }
tar -C "$src" --format=pax --xattrs --sparse -cf "$work/all.tar" .
tar -C "$src" -czf "$work/all.tgz" .
(cd "$src" && python3 -m zipfile -c "$work/all.zip" d many)
expect_status 0 "$VARVE" store --json --time 2020-01-02 --from-tar "$work/all.tar" "$repo" a/tar
[ "$(json_of state)" = sealed ]
python3 "$here/tree_state.py" "$src" "$mnt/a/tar"
[ "$(readlink "$mnt/a/latest")" = tar ]
"$VARVE" -q store --from-tar - "$repo" a/pipe <"$work/all.tar" >/dev/null
tar -C "$src" --format=pax --xattrs --sparse -cf - . | "$VARVE" -q store --from-tar - "$mnt" a/piped >/dev/null
python3 "$here/tree_state.py" "$src" "$mnt/a/piped"
"$VARVE" -q store --from-tar "$work/all.tgz" "$repo" a/tgz >/dev/null
gzip -dc "$work/all.tgz" | gzip | "$VARVE" -q store --from-tar - "$repo" a/tgz-piped >/dev/null
"$VARVE" -q store --from-tar "$work/all.zip" "$repo" a/zip >/dev/null
for version in pipe tgz tgz-piped; do
  diff <(names "$src") <(names "$mnt/a/$version") || fail "$version differs"
  cmp "$src/d/big" "$mnt/a/$version/d/big"
done
diff -r "$src/many" "$mnt/a/zip/many"
cmp "$src/d/big" "$mnt/a/zip/d/big"
expect_status 1 "$VARVE" store --from-tar - "$repo" a/zip-piped < <(cat "$work/all.zip")
message_says 'zip archive cannot be read from a pipe'
cat "$src/d/big" | "$VARVE" -q store --stdin db/dump.sql "$repo" a/stream >/dev/null
cmp "$src/d/big" "$mnt/a/stream/db/dump.sql"
[ "$(find "$mnt/a/stream" -type f | wc -l)" -eq 1 ]
expect_status 2 "$VARVE" store --stdin ../f "$repo" a/bad <"$work/all.tar"
expect_status 2 "$VARVE" store --stdin f "$repo" a/bad </dev/null
message_says 'a file or a pipe'
expect_status 1 "$VARVE" store --from-tar "$mnt/a/stream/db/dump.sql" "$repo" a/bad
message_says 'in a mount of the repository itself'
[ ! -e "$mnt/a/bad" ]
ok "archives of tar, gzip and zip, and streams, become the versions that they become without a mount"

expect_status 0 "$VARVE" store --stdin one "$repo" a/more.partial <"$work/list"
expect_status 0 "$VARVE" store --stdin two "$repo" a/more.partial <"$work/list"
"$VARVE" -q seal "$mnt/a/more.partial" >/dev/null
cmp "$work/list" "$mnt/a/more/one"
cmp "$work/list" "$mnt/a/more/two"
ok "streams add to a partial version"

head -c 1000000 "$work/all.tar" >"$work/cut.tar"
expect_status 1 "$VARVE" store --from-tar "$work/cut.tar" "$repo" b/cut
message_says 'truncated'
head -c 1000000 "$work/all.tar" | expect_status 1 "$VARVE" store --from-tar - "$repo" b/cut
head -c 900000 "$work/all.tgz" | expect_status 1 "$VARVE" store --from-tar - "$repo" b/cut
expect_status 1 "$VARVE" store --from-tar "$work/list" "$repo" b/cut
[ ! -e "$mnt/b" ] || fail "a cut archive leaves $(ls "$mnt/b")"
ok "a cut archive leaves no version"

mkfifo "$work/pipe"
# The daemon drops the version of the last store a moment before it takes another one.
stalled() {  # VERSION: begins the store of a stream that does not go on. Sets $victim.
  local begun=
  until [ -n "$begun" ]; do
    "$VARVE" store --stdin f "$repo" "$1" <"$work/pipe" >"$work/first" 2>&1 &
    victim=$!
    exec 7>"$work/pipe"
    (trap '' PIPE && echo begin >&7) 2>/dev/null || true
    wait_until "the store has begun, or is refused" has_begun_or_ended "$1"
    if [ -e "$mnt/$1" ]; then begun=1; else exec 7>&-; fi
  done
}
stalled c/stopped
"$VARVE" -q store "$repo" d/other "$src/d" >/dev/null
mkdir "$mnt/d/open.partial"
"$VARVE" -q rm "$repo" d/open.partial >/dev/null
cmp "$src/d/big" "$mnt/d/other/big"
expect_status 1 "$VARVE" store --stdin f "$repo" c/second <"$work/list"
message_says 'under way'
kill -TERM "$victim"
status=0
wait "$victim" || status=$?
[ "$status" -eq 130 ] || fail "status $status: $(cat "$work/first")"
wait_until "the stopped store drops its version" is_gone c/stopped
exec 7>&-
stalled c/killed
kill -9 "$victim"
wait "$victim" 2>/dev/null || true
exec 7>&-  # The daemon sees the end of the stream and that of the command in any order.
wait_until "the killed command's version is dropped" is_gone c/killed
for round in $(seq 10); do
  { echo part; exec sleep 60; } >"$work/pipe" &
  writer=$!
  # The daemon drops the version of the last round a moment before it takes another store.
  begun=
  until [ -n "$begun" ]; do
    "$VARVE" store --stdin f "$repo" "c/round$round" <"$work/pipe" >"$work/first" 2>&1 &
    victim=$!
    wait_until "the store has begun, or is refused" has_begun_or_ended "c/round$round"
    if [ -e "$mnt/c/round$round" ]; then begun=1; fi
  done
  kill -KILL "$writer" "$victim"
  wait "$writer" "$victim" 2>/dev/null || true
  wait_until "round $round is dropped" is_gone "c/round$round"
done
ok "a stalled stream holds up nothing else; a stopped or dead command leaves no version"

stalled c/unmounted
unmount_repo
status=0
wait "$victim" || status=$?
[ "$status" -ne 0 ] || fail "a store ended well although its repository was unmounted"
exec 7>&-
"$VARVE" ls "$repo" >"$work/list"
if grep -q 'unmounted' "$work/list"; then fail "an incomplete stream was sealed: $(cat "$work/list")"; fi
ok "a stalled stream does not hold up an unmount, and leaves no version"

"$VARVE" check --read-data "$repo" >"$work/checked"
grep -q 'no damage' "$work/checked"
ok "the repository is sound"
