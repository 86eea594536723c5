#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A mount that follows a store shows a version that the store loses. Another machine takes over from
# the older state and stores another version with the same number: the mount does not mix the two.
limit_s=90
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/store_lib.sh"
start_store

"$VARVE" -q init "$place" --local="$repo"
for version in v1 v2 v3; do
  mkdir "$work/$version"
  for i in 1 2; do head -c 100 /dev/urandom >"$work/$version/$version-$i"; done
  "$VARVE" -q store "$repo" s/$version "$work/$version"
done
"$VARVE" -q attach "$place" "$work/reader"
repo=$work/reader
mount_as_job -o ro,follow=1
stat "$mnt/s/v3/"* >/dev/null

# The newest head and its copy.
for number in $(seq 40 -1 1); do
  [ "$(store_command lose "/head/$(printf %010d "$number")")" = 0 ] || break
done
"$VARVE" -q attach --write "$place" "$work/taker" 2>/dev/null || "$VARVE" -q --accept-older attach --write "$place" "$work/taker"
mkdir "$work/new"
for i in 1 2; do head -c 100 /dev/urandom >"$work/new/new-$i"; done
"$VARVE" -q store "$work/taker" s/v3 "$work/new"
wait_until "the mount notices" grep -q 'does not continue head' "$work/daemon.log"
for i in 1 2; do
  # An error is right, too: the store has lost the version.
  cp "$mnt/s/v3/v3-$i" "$work/got" 2>/dev/null || continue
  cmp "$work/v3/v3-$i" "$work/got" || fail "wrong bytes of v3-$i"
done
expect_status 1 "$VARVE" ls "$work/reader" s
message_says 'does not continue head'
"$VARVE" umount "$mnt"
wait "$daemon" || true
"$VARVE" -q attach "$place" "$work/reader2"
"$VARVE" -q restore "$work/reader2" s/v3 "$work/restored"
diff -r "$work/new" "$work/restored"
ok "a mount stays at the history that it shows"
