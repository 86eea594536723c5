#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The store accepts requests and never answers them, while programs read what only it has. The mount
# can be unmounted soon all the same, and loses nothing; umount says what it waits for.
limit_s=400
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
start_store

hang_store() { store_command fault hang 0 1000000000 >/dev/null; }
requests_wait() { [ "$(store_command requests)" -gt 0 ]; }
# Runs a command that must end with a status within some seconds.
ends_within() {  # SECONDS STATUS COMMAND…
  local seconds=$1 begin=$SECONDS
  shift
  expect_status "$@"
  [ $((SECONDS - begin)) -le "$seconds" ] || fail "$((SECONDS - begin)) seconds: $* ($message)"
}
daemon_ends() {
  local status=0
  wait "$daemon" || status=$?
  [ $status -le 1 ] || [ $status -eq 130 ] || fail "the daemon's status is $status: $(cat "$work/daemon.log")"
}
# Reads a file in the background until the read waits for the store. Sets $reader.
read_hanging() {  # FILE
  hang_store
  dd if="$1" of=/dev/null bs=64K 2>"$work/dd" &
  reader=$!
  wait_until "the read waits" requests_wait
}
kill_reader() {
  kill -9 "$reader"
  wait "$reader" 2>/dev/null || true
}

mkdir -p "$work/source"
head -c 8M /dev/urandom >"$work/source/data"
"$VARVE" -q init "$place" --cache-size=0 --local="$repo"
"$VARVE" -q store "$place" s/one "$work/source"

mount_as_job
mkdir "$mnt/t" "$mnt/t/open.partial"
head -c 3M "$work/source/data" >"$mnt/t/open.partial/new"
"$VARVE" -q clone "$mnt/s/one" "$mnt/s/two.partial" >/dev/null
read_hanging "$mnt/s/one/data"
ends_within 5 1 "$VARVE" umount --no-wait "$mnt"
message_says 'is in use'
kill_reader
printf 'changed' | dd of="$mnt/s/two.partial/data" bs=1 seek=5000 conv=notrunc status=none
echo more >>"$mnt/t/open.partial/new"
ends_within 8 0 "$VARVE" umount --no-wait "$mnt"
daemon_ends
ok "umount --no-wait ends while a read waits for the store"

hang_store
mount_as_job
echo sealed >"$mnt/t/open.partial/last"
mv -T "$mnt/t/open.partial" "$mnt/t/one"
read_hanging "$mnt/s/one/data"
kill_reader
ends_within 12 0 "$VARVE" umount --no-wait "$mnt"
daemon_ends
ok "so it does while a sealed version waits for the store, too"

# A signal to the daemon ends a read that a living program waits for.
mount_as_job
read_hanging "$mnt/s/one/data"
kill "$daemon"
status=0
wait "$reader" || status=$?
[ $status -eq 1 ] || fail "status $status"
grep -q 'error reading' "$work/dd" || fail "$(cat "$work/dd")"
kill "$daemon" 2>/dev/null || true
daemon_ends
ok "a read that waits fails when the daemon is told to end"

# Without --no-wait, the wait for the store goes on, and the command says so.
mount_as_job
read_hanging "$mnt/s/one/data"
kill_reader
"$VARVE" umount "$mnt" 2>"$work/stderr" &
unmounting=$!
wait_until "umount waits for the network" grep -qE '(is|are) missing there.*--no-wait' "$work/stderr"
kill "$daemon"
status=0
wait "$unmounting" || status=$?
[ $status -eq 1 ] || fail "status $status: $(cat "$work/stderr")"
daemon_ends
ok "umount waits for what is sealed, and says how to end that"

# The kernel gives the number of the file system that has ended to the next one.
device_of() { awk -v point="$1" '$5 == point { print $3 }' /proc/self/mountinfo; }
"$VARVE" -q init "$work/other"
mkdir "$work/elsewhere"
hang_store
mount_as_job
device=$(device_of "$mnt")
"$VARVE" umount "$mnt" 2>"$work/stderr" &
unmounting=$!
wait_until "it is unmounted" eval '! mountpoint -q "$mnt"'
"$VARVE" mount "$work/other" "$work/elsewhere"
[ "$(device_of "$work/elsewhere")" = "$device" ] || echo "# other numbers: $device"
wait_until "umount waits for the network" grep -q -- '--no-wait' "$work/stderr"
! grep -q 'still mounted' "$work/stderr" || fail "$(cat "$work/stderr")"
kill "$daemon"
wait "$unmounting" || true
daemon_ends
"$VARVE" umount "$work/elsewhere"
ok "umount takes no other file system for the one that it unmounts"

# What keeps the daemon changes: first another mount namespace, then the store.
if unshare -m true 2>/dev/null; then
  hang_store
  mount_as_job
  unshare -m sleep 30 &
  holder=$!
  wait_until "the namespace has the mount" grep -q " $mnt " "/proc/$holder/mountinfo"
  "$VARVE" umount "$mnt" 2>"$work/stderr" &
  unmounting=$!
  wait_until "umount names the namespace" grep -q "process $holder (sleep) has a mount namespace" "$work/stderr"
  kill "$holder"
  wait "$holder" || true
  wait_until "umount waits for the network" grep -q -- '--no-wait' "$work/stderr"
  [ "$(grep -c 'mount namespace' "$work/stderr")" = 1 ] || fail "$(cat "$work/stderr")"
  kill "$daemon"
  wait "$unmounting" || true
  daemon_ends
  ok "umount says what it waits for when that changes"
else
  skip_part "umount beside another namespace: none can be made here"
fi

# An attached folder reads only.
start_store_again
"$VARVE" -q wait "$repo"
"$VARVE" -q attach "$place" "$work/reader"
"$VARVE" mount -o ro "$work/reader" "$mnt"
read_hanging "$mnt/s/one/data"
kill_reader
ends_within 8 0 "$VARVE" umount --no-wait "$mnt"
start_store_again
"$VARVE" mount -o ro "$work/reader" "$mnt"
read_hanging "$mnt/s/one/data"
kill_reader
ends_within 8 0 "$VARVE" umount "$mnt"
ok "a folder that only reads is unmounted at once"

start_store_again
mount_repo
cmp "$mnt/t/one/new" <(head -c 3M "$work/source/data"; echo more)
[ "$(cat "$mnt/t/one/last")" = sealed ]
cp "$work/source/data" "$work/changed"
printf 'changed' | dd of="$work/changed" bs=1 seek=5000 conv=notrunc status=none
cmp "$mnt/s/two.partial/data" "$work/changed"
"$VARVE" -q seal "$mnt/s/two.partial" >/dev/null
cmp "$mnt/s/two/data" "$work/changed"
cmp "$mnt/s/one/data" "$work/source/data"
"$VARVE" umount "$mnt"
"$VARVE" -q check --read-data "$repo"
ok "nothing that was accepted is lost"
