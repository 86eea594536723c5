#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The bound on data that waits for the object store: while the store refuses, programs that write to
# a mount wait at the bound, can be interrupted, and go on when the store answers. `varve store`
# waits, too. Nothing is lost.
limit_s=240
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
start_store

staged() {  # prints the bytes of segments in the folder
  find "$repo" -name '*.seg' -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }'
}

mkdir -p "$work/source"
head -c 96M /dev/urandom >"$work/source/data"
"$VARVE" -q init "$place" --local="$repo" --staging-size=4M
"$VARVE" mount "$place" "$mnt"
mkdir "$mnt/s" && mkdir "$mnt/s/one.partial"

stop_store
dd if="$work/source/data" of="$mnt/s/one.partial/data" bs=1M 2>"$work/dd" &
writing=$!
wait_until "the writer waits at the bound" sh -c "[ \"\$(find '$repo' -name '*.seg' -printf '%s\n' \
  | awk '{ sum += \$1 } END { print sum + 0 }')\" -gt 4194304 ]"
sleep 5
before=$(staged)
sleep 3
after=$(staged)
kill -0 "$writing" || fail "the writer did not wait: $(cat "$work/dd")"
[ "$before" = "$after" ] || fail "$before bytes, then $after: the writer went on"
[ "$after" -lt 48000000 ] || fail "$after bytes wait for the store, with a bound of 4 MiB"
ls "$mnt/s" >/dev/null
head -c 100000 "$mnt/s/one.partial/data" | cmp -n 100000 - "$work/source/data"
ok "a writer waits at the bound, and others can read"

kill -TERM "$writing"
status=0
wait "$writing" || status=$?
[ "$status" -eq 143 ] || fail "dd ended with status $status"
ok "the wait can be interrupted"

dd if="$work/source/data" of="$mnt/s/one.partial/data" bs=1M 2>"$work/dd" &
writing=$!
sleep 3
kill -0 "$writing" || fail "the writer did not wait: $(cat "$work/dd")"
start_store_again
wait "$writing" || fail "$(cat "$work/dd")"
cmp "$mnt/s/one.partial/data" "$work/source/data"
mv -T "$mnt/s/one.partial" "$mnt/s/one"
"$VARVE" -q wait "$place" s/one
"$VARVE" umount "$mnt"
ok "the writer goes on when the store answers"

head -c 96M /dev/urandom >"$work/source/data"
stop_store
"$VARVE" store "$place" s/two "$work/source" 2>"$work/stderr" &
storing=$!
wait_until "store says what it waits for" grep -q "writers wait" "$work/stderr"
sleep 2
kill -0 "$storing" || fail "store did not wait: $(cat "$work/stderr")"
start_store_again
wait "$storing" || fail "$(cat "$work/stderr")"
"$VARVE" -q attach "$place" "$work/reader"
"$VARVE" -q restore "$work/reader" s/two "$work/restored"
cmp "$work/restored/data" "$work/source/data"
"$VARVE" -q check --read-data "$work/reader"
ok "store waits at the bound, too, and the store has the whole version"
