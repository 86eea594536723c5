#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A disk that stops accepting writes stalls only the writers. While they wait, other programs can
# read sealed versions and list directories. When the disk works again, nothing is lost.
limit_s=500
. "$(dirname "$0")/lib.sh"

: "${VARVE_FAULTY_DISK:?is the path of the library made from faulty_disk.cc}"
stalled=$work/stalled

"$VARVE" init "$repo"
LD_PRELOAD=$VARVE_FAULTY_DISK DISK_BELOW=$repo DISK_STALLS_WHILE=$stalled \
  "$VARVE" mount -f -o cache=16M "$repo" "$mnt" &
daemon=$!
wait_until "the mount appears" mountpoint -q "$mnt"
mkdir "$mnt/a" "$mnt/b" "$mnt/a/old.partial"
head -c 8M /dev/urandom >"$work/old"
for i in $(seq 200); do echo "$i" >"$work/small.$i"; done
cp "$work/old" "$work"/small.* "$mnt/a/old.partial/"
mv -T "$mnt/a/old.partial" "$mnt/a/old"
mkdir "$mnt/a/new.partial" "$mnt/b/new.partial"
# The first change creates an open version's files, which a stalled disk would block.
echo first | tee "$mnt/a/new.partial/first" >"$mnt/b/new.partial/first"
head -c 200M /dev/urandom >"$work/big"
drop_caches

touch "$stalled"
writers=()
# More writers than the reading pool has threads: no thread of that pool may wait here.
for series in a b; do
  cp "$work/big" "$mnt/$series/new.partial/big" &
  writers+=($!)
  for i in 1 2 3 4 5 6; do
    { echo more >"$mnt/$series/new.partial/more.$i" && sync "$mnt/$series/new.partial/more.$i"; } &
    writers+=($!)
  done
done
# A writer waits once its process no longer writes into the mount.
chars_written() { awk '/^wchar/ {print $2}' "/proc/$1/io"; }
last=
settled() {
  local now
  kill -0 "${writers[0]}" || fail "the writer did not wait: nothing is tested"
  now=$(chars_written "${writers[0]}")
  [ "$now" != 0 ] && [ "$now" = "$last" ] && return 0
  last=$now
  sleep 0.3
  return 1
}
wait_until "the writers wait" settled

timeout 90 cmp "$work/old" "$mnt/a/old/old" || fail "a sealed version cannot be read: $?"
timeout 90 bash -c "for i in \$(seq 200); do cmp '$work'/small.\$i '$mnt'/a/old/small.\$i || exit 1; done" ||
  fail "small files of a sealed version cannot be read"
[ "$(timeout 90 ls "$mnt/a/old" | wc -l)" -eq 201 ] || fail "a sealed version cannot be listed"
timeout 90 ls "$mnt" "$mnt/a" "$mnt/b" >/dev/null || fail "the series cannot be listed"
timeout 90 stat "$mnt/a/latest/old" "$mnt/b" >/dev/null || fail "stat waits"
kill -0 "${writers[0]}" || fail "the writer did not wait: nothing was tested"
ok "readers do not wait for a disk that takes no writes"

rm "$stalled"
wait "${writers[@]}" || fail "a writer failed"
for series in a b; do
  cmp "$work/big" "$mnt/$series/new.partial/big"
  mv -T "$mnt/$series/new.partial" "$mnt/$series/new"
done
[ "$(cat "$mnt/b/new/more.6")" = more ]
ok "the writers go on when the disk does"

mkdir "$mnt/b/last.partial"
echo first >"$mnt/b/last.partial/first"
head -c 200M /dev/urandom >"$work/big"
touch "$stalled"
cp "$work/big" "$mnt/b/last.partial/big" &
writers=($!)
last=
wait_until "the writer waits" settled
kill "$daemon"
rm "$stalled"
wait "${writers[0]}" 2>/dev/null || true
wait_until "the daemon ends" bash -c "! kill -0 $daemon 2>/dev/null"
wait "$daemon" || fail "the daemon ended with an error"
"$VARVE" check "$repo" >/dev/null
ok "a daemon that is told to end while writers wait ends well"
