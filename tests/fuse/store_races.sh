#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A store that looks for an object first and writes it afterwards acknowledges one head to two
# writers. docs/decisions/160.
limit_s=120
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/store_lib.sh"
start_store

mkdir "$work/source"
head -c 200000 /dev/urandom >"$work/source/file"

# Only some of the races have two winners.
store_command set condition_gap_ms 3 >/dev/null
expect_status 1 "$VARVE" init "$place" --local="$work/refused"
message_says 'does not honour conditional requests'
[ "$(store_command objects)" = "0 0" ] || fail "objects were left: $(store_command objects)"
store_command set condition_gap_ms 0 >/dev/null
"$VARVE" -q init "$place" --local="$repo"
ok "init refuses a store whose condition is not atomic"

"$VARVE" store "$repo" s/v1 "$work/source" >/dev/null 2>"$work/stderr"
! grep -q conditional "$work/stderr" || fail "$(cat "$work/stderr")"
store_command set condition_gap_ms 3 >/dev/null
repo=$work/second
warns() { grep -q 'does not honour conditional requests.*one folder only' "$work/stderr" || fail "no warning: $(cat "$work/stderr")"; }
"$VARVE" attach --write "$place" "$repo" 2>"$work/stderr"
warns
for name in v2 v3; do
  date +%N >"$work/source/changing"
  "$VARVE" store "$repo" "s/$name" "$work/source" >/dev/null 2>"$work/stderr"
  warns
done
expect_status 2 "$VARVE" status "$repo"
expect_status 1 "$VARVE" check "$repo"
ok "a folder that takes over finds it, and each store warns"

store_command set condition_gap_ms 0 >/dev/null
"$VARVE" check "$repo" >"$work/stdout"
date +%N >"$work/source/changing"
"$VARVE" store "$repo" s/v4 "$work/source" >/dev/null 2>"$work/stderr"
! grep -q conditional "$work/stderr" || fail "$(cat "$work/stderr")"
ok "a check of the corrected store ends the warnings"

mount_as_job
cp -a "$work/source" "$mnt/s/v5.partial"
"$VARVE" -q seal "$mnt/s/v5.partial"
[ "$(store_command rot /head/)" -ge 1 ]
date +%N >"$work/source/changing"
cp -a "$work/source" "$mnt/s/v6.partial"
mv -T "$mnt/s/v6.partial" "$mnt/s/v6"
wait_until "the daemon notices" grep -q 'varve repair' "$work/daemon.log"
expect_status 1 "$VARVE" umount "$mnt"
message_says '1 version is not in'
wait "$daemon" || true
expect_status 1 "$VARVE" wait "$repo"
message_says 'varve repair'
"$VARVE" -q repair --yes "$repo"
"$VARVE" -q wait "$repo"
"$VARVE" -q attach "$place" "$work/reader"
for name in v5 v6; do "$VARVE" ls "$work/reader" s | grep -q "$name" || fail "$name is missing"; done
ok "a mount notices an altered head before the next one, and a repair puts it back"
