#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# umount(8) returns before the daemon has ended, and the kernel releases files late. Neither makes
# the next command fail.
limit_s=120
. "$(dirname "$0")/lib.sh"

"$VARVE" init "$repo"
head -c 60M /dev/urandom >"$work/data"
mount_repo
for round in 1 2 3 4 5; do
  mkdir "$mnt/s$round" "$mnt/s$round/v.partial"
  cp "$work/data" "$mnt/s$round/v.partial/"
  umount "$mnt"
  mount_repo || fail "round $round: a mount behind umount(8) ended with status $?"
  cmp "$work/data" "$mnt/s$round/v.partial/data"
done
ok "a mount right behind umount(8) waits for the daemon that still writes"

for round in 1 2 3 4 5 6 7 8; do
  cat "$mnt"/s*/v.partial/data >/dev/null
  unmount_repo || fail "round $round: umount right behind a read ended with status $?"
  mount_repo
done
unmount_repo
ok "varve umount right behind the last read succeeds"

mount_repo
mkdir "$work/other"
expect_status 11 timeout 5 "$VARVE" mount "$repo" "$work/other"
unmount_repo
ok "a repository that stays mounted is refused at once"
