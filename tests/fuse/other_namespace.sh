#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The table of readers is in /dev/shm. Processes that do not share /dev/shm, as in two containers,
# never read and write a repository at the same time, and no table stays behind.
. "$(dirname "$0")/lib.sh"

in_own_namespace || skip "needs a mount namespace of its own"
# The tables of this test only.
mount -t tmpfs -o mode=1777 none /dev/shm || skip "cannot mount a tmpfs"
elsewhere() { unshare -m --propagation private sh -ec "mount -t tmpfs -o ${shm_options:-mode=1777} none /dev/shm
${prepare:-}
exec \"\$@\"" sh "$@"; }
tables() { find /dev/shm -type f -path '*/varve-*' | wc -l; }

mkdir "$work/tree"
head -c 3000000 /dev/urandom >"$work/tree/file"
"$VARVE" -q init "$repo"
"$VARVE" -q store "$repo" s/one "$work/tree"
[ "$(tables)" -eq 0 ] || fail "a table stayed: $(find /dev/shm)"
ok "a command leaves no table in /dev/shm"

mount_as_job
cp -r "$work/tree" "$mnt/s/two.partial"
sync -f "$mnt"
[ "$(tables)" -ge 2 ] || fail "the daemon has no tables: $(find /dev/shm)"
[ "$(stat -c %a:%u /dev/shm/varve-0)" = 700:0 ] || fail "the folder is $(stat -c %a:%u /dev/shm/varve-0)"
"$VARVE" -q restore "$repo" s/one "$work/restored"
same_tree "$work/tree" "$work/restored"
rm -rf "$work/restored"
ok "a reader beside the daemon shares its tables"
expect_status 11 elsewhere "$VARVE" -q restore "$repo" s/one "$work/restored"
message_says "/dev/shm"
ok "beside the daemon, a reader with another /dev/shm ends with 11"

mkdir "$work/read-only"
mount --bind "$repo" "$work/read-only"
mount -o remount,bind,ro "$work/read-only"
"$VARVE" -q restore "$work/read-only" s/one "$work/restored"
rm -rf "$work/restored"
expect_status 11 elsewhere "$VARVE" -q restore "$work/read-only" s/one "$work/restored"
umount "$work/read-only"
ok "so does a reader on a read-only mount of the disk"

kill_daemon
[ "$(tables)" -ge 2 ] || fail "expected the tables of a killed daemon"
"$VARVE" -q restore "$repo" s/one "$work/restored"
rm -rf "$work/restored"
elsewhere "$VARVE" -q restore "$repo" s/one "$work/restored"
rm -rf "$work/restored"
"$VARVE" -q init "$work/second"
[ "$(tables)" -eq 0 ] || fail "tables of a killed daemon stay: $(find /dev/shm)"
ok "tables of a killed daemon stop nobody, and later commands remove them"

elsewhere "$VARVE" mount -f -o ro "$repo" "$mnt" 2>>"$work/daemon.log" &
reader=$!
reads_elsewhere() { program=$(pgrep -P $reader) && nsenter -m -t "$program" mountpoint -q "$mnt"; }
wait_until "the reader elsewhere has mounted" reads_elsewhere
expect_status 11 "$VARVE" -q store --lock-wait 0 "$repo" t/three "$work/tree"
message_says "/dev/shm"
"$VARVE" -q restore "$repo" s/one "$work/restored"
rm -rf "$work/restored"
kill "$program"
wait $reader || true
"$VARVE" -q store "$repo" t/three "$work/tree"
ok "beside a reader with another /dev/shm, a writer ends with 11, and a reader reads"

for shm_options in mode=1777,size=4k mode=777; do
  elsewhere "$VARVE" -q restore "$repo" t/three "$work/restored"
  rm -rf "$work/restored"
done
shm_options=
prepare='mkdir -m 700 /dev/shm/varve-0; chown 4001 /dev/shm/varve-0'
elsewhere "$VARVE" -q restore "$repo" t/three "$work/restored"
rm -rf "$work/restored"
mount_as_job
expect_status 11 elsewhere "$VARVE" -q restore "$repo" s/one "$work/restored"
unmount_repo
wait $daemon
ok "a full or unsafe /dev/shm, or another user's folder in it, stops nothing but a second process"
"$VARVE" -q check --read-data "$repo"
