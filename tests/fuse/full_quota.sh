#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A quota group of Btrfs refuses LMDB's meta page in the middle of a commit. The daemon opens the
# catalog again: it reads on, and writes once there is space.
limit_s=180
. "$(dirname "$0")/lib.sh"
command -v mkfs.btrfs >/dev/null || skip "no btrfs-progs"

disk=$work/disk
repo=$disk/repo
mkdir "$disk" "$work/one"
head -c 3000000 /dev/urandom >"$work/one/x"
truncate -s 600M "$work/image"
mkfs.btrfs -q "$work/image" >/dev/null 2>&1
mount -o loop "$work/image" "$disk" 2>"$work/stderr" || skip "cannot mount Btrfs: $(cat "$work/stderr")"
limit=$((60 << 20))
btrfs quota enable "$disk"
btrfs qgroup limit $limit "$disk"
"$VARVE" -q init --compression none "$repo"
for n in 1 2 3 4 5 6; do "$VARVE" -q store "$repo" s/$n "$work/one"; done
mount_as_job

take_the_last_byte() {
  mkdir -p "$disk/ballast" 2>/dev/null || true
  for bytes in 1M 64k 4k; do
    dd if=/dev/zero of="$disk/ballast/large" bs=$bytes oflag=append conv=notrunc status=none 2>/dev/null || true
    sync -f "$disk" || true
  done
  for n in $(seq 1 3000); do head -c 2000 /dev/zero 2>/dev/null >"$disk/ballast/$n" || break; done
  sync -f "$disk" || true
}
opened_again() { grep -q 'opened again' "$work/daemon.log"; }

# Each lock is later than the one before, so no lock changes nothing.
for round in $(seq 1 40); do
  rm -f "$repo/reserve"
  take_the_last_byte
  limit=$((limit + (round % 12 + 1) * 4096))
  btrfs qgroup limit $limit "$disk"
  for n in 1 2 3 4 5 6; do
    status=0
    "$VARVE" lock "$repo" s/$n --for ${round}h >"$work/stdout" 2>"$work/stderr" || status=$?
    ! grep -q MDB_PANIC "$work/stderr" || fail "round $round: $(cat "$work/stderr")"
    [ $status -eq 0 ] || grep -qiE 'quota|space' "$work/stderr" || fail "round $round: $(cat "$work/stderr")"
  done
  ! opened_again || break
done
"$VARVE" ls "$repo" >"$work/listed"
[ "$(wc -l <"$work/listed")" -eq 6 ] || fail "$(cat "$work/listed")"
cmp "$mnt/s/1/x" "$work/one/x"
rm -rf "$disk/ballast"
btrfs qgroup limit none "$disk"
"$VARVE" lock "$repo" s/1 --for 1000h
"$VARVE" -q rm "$repo" s/6 >"$work/stdout" 2>&1 || grep -q 'cannot be deleted' "$work/stdout" || fail "$(cat "$work/stdout")"
"$VARVE" -q store "$repo" s/7 "$work/one"
unmount_repo
"$VARVE" -q check --read-data "$repo"
opened_again || skip "no write of a meta page failed in $round rounds"
ok "after a refused meta page in round $round, the daemon reads on, and writes once there is space"
