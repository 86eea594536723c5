#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The power goes while a real file system (ext4, xfs) holds the repository: its shutdown call drops
# everything that was not forced to disk. VARVE_TEST_ROUNDS cuts each (20). With a disk that
# ignores syncs the same test must find losses.
limit_s=400
. "$(dirname "$0")/lib.sh"
: "${VARVE_FAULTY_DISK:?is the path of the library made from faulty_disk.cc}"
rounds=${VARVE_TEST_ROUNDS:-20}
RANDOM=${VARVE_TEST_SEED:-11}
disk=$work/disk
repo=$disk/repo
mkdir "$disk"

shut_down() {  # As the power button: the journal is not flushed either.
  python3 -c '
import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack("I", 2))' "$disk"
}

new_disk() {  # TYPE
  truncate -s 400M "$work/image"
  case $1 in
    ext4) mkfs.ext4 -q -F -m 0 "$work/image" ;;
    xfs) mkfs.xfs -q -f "$work/image" ;;
  esac
  mount -o loop "$work/image" "$disk" 2>/dev/null || skip "no loop device, or no $1, here"
  rm -f "$work/log"
  "$VARVE" init --compression none "$repo"
}

# One life between two cuts: prints what is broken after it.
live_and_cut() {  # SEED [PRELOAD-ENVIRONMENT…]
  local seed=$1 writer
  shift
  env "$@" "$VARVE" mount -f "$repo" "$mnt" 2>>"$work/daemon.log" &
  daemon=$!
  wait_until "the mount appears" mountpoint -q "$mnt"
  mkdir -p "$mnt/s"
  python3 "$here/restless_writer.py" run "$mnt/s" "$work/log" "$seed" 1000 >"$work/writer.log" &
  writer=$!
  sleep "0.$((RANDOM % 60 + 30))"
  shut_down
  kill -9 "$daemon"
  wait "$writer" || true
  wait "$daemon" 2>/dev/null || true
  umount -l "$mnt"
  umount "$disk"
  mount -o loop "$work/image" "$disk"
  "$VARVE" check --read-data "$repo" >"$work/check" 2>&1 || { cat "$work/check"; return 0; }
  if ! mount_repo 2>"$work/stderr"; then
    cat "$work/stderr"
    return 0
  fi
  [ -d "$mnt/s" ] || mkdir "$mnt/s"
  python3 "$here/restless_writer.py" verify "$mnt/s" "$work/log" || true
  unmount_repo
}

for type in ext4 xfs; do
  command -v mkfs.$type >/dev/null || skip "mkfs.$type is missing"
  new_disk $type
  for ((round = 1; round <= rounds; round++)); do
    live_and_cut $round VARVE_NOTHING= >"$work/broken"
    [ ! -s "$work/broken" ] || fail "$type, cut $round: $(cat "$work/broken")"
  done
  grep -q '"kept"' "$work/log" || fail "nothing was promised, so nothing was tested"
  umount "$disk"
  ok "$rounds power cuts on $type: all promises kept, check is clean"
done

lost=0
new_disk ext4
for round in 1 2 3 4 5; do
  live_and_cut $round LD_PRELOAD="$VARVE_FAULTY_DISK" DISK_BELOW="$repo" DISK_IGNORES_SYNCS=1 \
    >"$work/broken" || true
  if [ -s "$work/broken" ]; then
    lost=$round
    break
  fi
done
[ $lost -ne 0 ] || fail "a disk that ignores syncs went unnoticed: the cuts above show nothing"
ok "without syncs, cut $lost shows losses"
umount "$disk"
