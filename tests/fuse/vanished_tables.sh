#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# systemd-logind removes a user's files from /dev/shm when the user logs out (RemoveIPC=), and with them the table of
# readers, while a daemon or a reader runs on. A later process makes a table of its own, in which LMDB would not see the
# older processes. So it must read without the table, or end with 11, until they have ended. The same holds where the
# tables are in /run, because /dev/shm is on a disk.
limit_s=240
. "$(dirname "$0")/lib.sh"

in_own_namespace || skip "needs a mount namespace of its own"
tables() { find "$place" -type f -path '*/varve-*' 2>/dev/null | wc -l; }
log_out() {
  [ "$(tables)" -ge 1 ] || fail "there is no table to remove"
  rm -rf "${place:?}"/varve-*
}

mkdir -p "$work/versions/one" "$work/tree"
head -c 3000000 /dev/urandom >"$work/versions/one/file"
head -c 3000000 /dev/urandom >"$work/tree/file"

tables_vanish() {  # PLACE: the tables are in this folder
  place=$1
  "$VARVE" -q init "$repo"
  "$VARVE" -q store "$repo" s/one "$work/versions/one"

  mount_as_job
  mkdir "$mnt/s/two.partial"
  cp "$work/tree/file" "$mnt/s/two.partial/before"
  sync -f "$mnt"
  log_out
  expect_status 11 "$VARVE" -q restore "$repo" s/one "$work/restored"
  message_says "/dev/shm"
  expect_status 11 "$VARVE" -q ls "$repo"
  "$VARVE" -q store "$repo" t/two "$work/tree"
  ok "$place: beside a daemon whose table is gone, readers end with 11, and the daemon stores for a writer"

  # The daemon writes on, and opens environments whose tables are new.
  cp "$work/tree/file" "$mnt/s/two.partial/after"
  sync -f "$mnt"
  "$VARVE" seal "$mnt/s/two.partial"
  mkdir "$mnt/s/three.partial"
  cp "$work/tree/file" "$mnt/s/three.partial/file"
  sync -f "$mnt"
  expect_status 11 "$VARVE" -q restore "$repo" s/two "$work/restored"
  cmp "$work/tree/file" "$mnt/s/two/before"
  cmp "$work/tree/file" "$mnt/s/two/after"
  ok "$place: the daemon stores and seals on"
  unmount_repo
  wait $daemon
  restored_is_stored one
  "$VARVE" -q check --read-data "$repo"
  ok "$place: once the daemon has ended, readers read and a check finds nothing"

  mount_as_job -o ro
  log_out
  expect_status 11 "$VARVE" -q store --lock-wait 0 "$repo" t/three "$work/tree"
  message_says "/dev/shm"
  restored_is_stored one
  cmp "$work/versions/one/file" "$mnt/s/one/file"
  ok "$place: beside a reader whose table is gone, a writer ends with 11, and a reader reads"
  kill_daemon
  "$VARVE" -q store "$repo" t/three "$work/tree"
  [ "$(tables)" -eq 0 ] || fail "tables stay: $(find "$place")"
  "$VARVE" -q check --read-data "$repo"
  ok "$place: after a kill, a writer writes again"

  # Two users, whose tables vanish one after the other.
  mount_as_job
  log_out
  expect_status 11 "$VARVE" -q ls "$repo"
  ! [ -e "$place/varve-0" ] || rm -rf "$place/varve-0"
  expect_status 11 "$VARVE" -q ls "$repo"
  unmount_repo
  wait $daemon
  "$VARVE" ls "$repo" >"$work/listed"
  for name in s/one s/two t/three; do grep -q "$name" "$work/listed" || fail "$name is not listed"; done
  ok "$place: a refused process leaves nothing that stops the next one"
}

# The tables of this test only.
mount -t tmpfs -o mode=1777 none /dev/shm || skip "cannot mount a tmpfs"
tables_vanish /dev/shm

mkdir "$work/disk"
mount --bind "$work/disk" /dev/shm
mount -t tmpfs -o mode=755 none /run
rm -rf "${repo:?}"
tables_vanish /run
[ -z "$(ls -A "$work/disk")" ] || fail "a table is on a disk: $(find "$work/disk")"
