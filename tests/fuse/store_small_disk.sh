#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The writer's folder is on a disk that is smaller than its backups. What the object store has makes
# room for what is new, and a writer waits for the store rather than to fail. Nothing is lost.
limit_s=240
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
start_store

repo_on_disk 96
mkdir "$work/source"
fresh() { head -c "$1" /dev/urandom >"$work/source/$2"; }  # BYTES NAME
left() { df --output=avail -B1K "$work/disk" | tail -1; }
"$VARVE" -q init "$place" --local="$repo"
for version in one two three; do
  fresh 40M "$version"
  "$VARVE" -q store "$place" "s/$version" "$work/source" || fail "$version: $(df -h "$work/disk")"
done
ok "versions of more than the disk are stored, one after the other"

mount_repo
mkdir "$mnt/t" "$mnt/t/one.partial"
fresh 150M large
cp "$work/source/large" "$mnt/t/one.partial/large" || fail "$(df -h "$work/disk")"
cmp "$mnt/t/one.partial/large" "$work/source/large"
mv -T "$mnt/t/one.partial" "$mnt/t/one"
ok "a mount takes a file that is larger than the disk"

# Several writers at once, and readers of what was evicted: their cache leaves room on the disk.
mkdir "$mnt/t/four.partial"
for n in 1 2 3 4; do
  head -c 40M /dev/urandom >"$work/w$n"
  cp "$work/w$n" "$mnt/t/four.partial/$n" 2>"$work/cp$n" &
  writers[n]=$!
done
for n in 1 2 3 4; do wait "${writers[n]}" || fail "$(cat "$work/cp$n"; df -h "$work/disk")"; done
for n in 1 2 3 4; do cmp "$work/w$n" "$mnt/t/four.partial/$n"; done
cmp "$mnt/t/one/large" "$work/source/large"
[ "$(left)" -gt 10000 ] || fail "the cache fills the disk: $(df -h "$work/disk")"
mv -T "$mnt/t/four.partial" "$mnt/t/four"
ok "several writers wait for room, and readers leave some"

stop_store
mkdir "$mnt/t/two.partial"
fresh 90M more
cp "$work/source/more" "$mnt/t/two.partial/more" 2>"$work/stderr" &
copying=$!
wait_until "the disk is nearly full" sh -c "[ \$(df --output=avail -B1K '$work/disk' | tail -1) -lt 40000 ]"
sleep 3
kill -0 "$copying" || fail "the writer does not wait: $(cat "$work/stderr"; df -h "$work/disk")"
start_store_again
wait "$copying" || fail "$(cat "$work/stderr")"
mv -T "$mnt/t/two.partial" "$mnt/t/two"
"$VARVE" -q wait "$repo"
ok "while the store refuses, a writer waits"

# Another program takes what evictions have left free.
mkdir "$mnt/t/three.partial"
fresh 30M ours
dd if="$work/source/ours" of="$mnt/t/three.partial/ours" bs=1M count=20 status=none
sync "$mnt/t/three.partial/ours"
"$VARVE" -q wait "$repo"
fallocate -l $(($(left) - 6000))K "$work/disk/ballast"
dd if="$work/source/ours" of="$mnt/t/three.partial/ours" bs=1M status=none || fail "$(df -h "$work/disk"; find "$repo" -size +1M -ls)"
rm "$work/disk/ballast"
mv -T "$mnt/t/three.partial" "$mnt/t/three"
"$VARVE" -q wait "$repo"
"$VARVE" umount "$mnt"
ok "replicated data makes room when another program fills the disk"

"$VARVE" -q attach "$place" "$work/reader"
"$VARVE" -q restore "$work/reader" s/three "$work/s"
for version in one two three; do cmp "$work/s/$version" "$work/source/$version"; done
for version in one two three; do "$VARVE" -q restore "$work/reader" "t/$version" "$work/t"; done
cmp "$work/t/large" "$work/source/large"
cmp "$work/t/more" "$work/source/more"
cmp "$work/t/ours" "$work/source/ours"
"$VARVE" -q check --read-data "$work/reader"
ok "nothing is lost"

fallocate -l $(($(left) - 100))K "$work/disk/ballast"
expect_status 1 "$VARVE" attach "$place" "$work/disk/reader"
message_says 'No space left on device'
rm "$work/disk/ballast"
"$VARVE" -q attach "$place" "$work/disk/reader"
"$VARVE" -q restore "$work/disk/reader" s/one "$work/one"
cmp "$work/one/one" "$work/source/one"
ok "a folder that finds no room on its disk says so, and can be attached later"
