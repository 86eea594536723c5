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
before=
rests() {
  after=$(staged)
  [ "$after" != "$before" ] || return 0
  before=$after
  sleep 2
  return 1
}
wait_until "the writer stops at the bound" rests
kill -0 "$writing" || fail "the writer did not wait: $(cat "$work/dd")"
# On its way through memory were up to 48 MiB of chunks and 32 MiB of containers.
[ "$after" -lt 90000000 ] || fail "$after bytes wait for the store, with a bound of 4 MiB"
ls "$mnt/s" >/dev/null
head -c 100000 "$mnt/s/one.partial/data" | cmp -n 100000 - "$work/source/data"
ok "a writer waits at the bound, and others can read"

"$VARVE" status "$repo" >"$work/stdout" || true
grep -qE 'staged +[0-9.]+ MiB of 4.0 MiB' "$work/stdout" || fail "$(cat "$work/stdout")"
"$VARVE" status --json "$repo" >"$work/json" || true
python3 - "$work/json" <<'END' || fail "$(cat "$work/json")"
import json, sys
store = [one for one in map(json.loads, open(sys.argv[1])) if one["message_type"] == "object_store"][0]
assert store["staging_max_bytes"] == 4 << 20 and store["staged_bytes"] > 4 << 20, store
END
ok "status shows what is staged, and the bound"

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

# Data that is written out of order is not cut before its file rests, and counts as well.
"$VARVE" mount "$place" "$mnt"
mkdir "$mnt/s/three.partial"
stop_store
cat >"$work/out_of_order.py" <<'END'
import os, sys
with open(sys.argv[1], "wb", buffering=0) as file:
    for block in reversed(range(48)):
        os.pwrite(file.fileno(), os.urandom(1 << 20), block << 20)
END
python3 "$work/out_of_order.py" "$mnt/s/three.partial/data" 2>"$work/python" &
writing=$!
sleep 6
kill -0 "$writing" || fail "the writer did not wait: $(cat "$work/python")"
kill -TERM "$writing"
wait "$writing" || true
start_store_again
python3 "$work/out_of_order.py" "$mnt/s/three.partial/data" || fail "the writer does not go on"
mv -T "$mnt/s/three.partial" "$mnt/s/three"
"$VARVE" umount "$mnt"
ok "a writer that writes out of order waits, too, and goes on when the store answers"

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
