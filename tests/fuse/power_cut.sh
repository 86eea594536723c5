#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Cuts the power of a real file system (ext4, xfs) with a repository: its shutdown call drops
# everything that was not forced to disk. VARVE_TEST_ROUNDS sets the cuts for each (20). A quarter
# as many hit arranging and the writing of parity, which must then repair damage. With a disk that
# ignores syncs, the same test must find losses.
limit_s=400
. "$(dirname "$0")/lib.sh"
: "${VARVE_FAULTY_DISK:?is the path of the library made from faulty_disk.cc}"
rounds=${VARVE_TEST_ROUNDS:-20}
RANDOM=${VARVE_TEST_SEED:-11}
disk=$work/disk
repo=$disk/repo
mkdir "$disk"

shut_down() {  # Acts like the power button: does not even flush the journal.
  python3 -c '
import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack("I", 2))' "$disk"
}

new_disk() {  # TYPE [OPTION-OF-INIT…]
  truncate -s 400M "$work/image"
  case $1 in
    ext4) mkfs.ext4 -q -F -m 0 "$work/image" ;;
    xfs) mkfs.xfs -q -f "$work/image" ;;
  esac
  mount -o loop "$work/image" "$disk" 2>/dev/null || skip "no loop device, or no $1, here"
  rm -f "$work/log"
  "$VARVE" init --compression none "${@:2}" "$repo"
}

arrange_always() {  # Runs as long as the daemon.
  while kill -0 "$daemon"; do "$VARVE" arrange "$repo" || true; done >/dev/null 2>&1
}

# After one arranging, parity protects all files that no open version may extend. It must repair
# damage to a volume or to the oldest segment.
damage_and_repair() {
  local length at file
  "$VARVE" -q arrange "$repo" >/dev/null || { echo "arranging fails"; return 0; }
  "$VARVE" check --quick --json "$repo" | python3 -c '
import json, sys
summary = json.loads(sys.stdin.readlines()[-1])
if summary["parity_files_protected"] < summary["parity_files"]:
    print("unprotected:", summary)
sys.exit(summary["parity_files"] == 0)' || return 0
  read -r length at file < <(python3 "$here/parity.py" containers "$repo/series" | sort -k3 |
    awk '!line || /\.vol$/ { line = $0 } END { print line }')
  at=$((at + length / 2))
  # Inside one block of 16 KiB: a small volume has parity for one block only (10 % of it).
  [ $((at % 16384)) -le $((16384 - 2000)) ] || at=$((at - 2000))
  python3 "$here/parity.py" zero "$file" $at 2000
  "$VARVE" repair --yes "$repo" >"$work/repaired" || { cat "$work/repaired"; return 0; }
  grep -q 'restored from parity' "$work/repaired" || { cat "$work/repaired"; return 0; }
  "$VARVE" check --read-data "$repo" >"$work/check" 2>&1 || { cat "$work/check"; return 0; }
  repaired=$((repaired + 1))
}

# Runs the daemon until a power cut. Prints the promises broken after it.
live_and_cut() {  # SEED [PRELOAD-ENVIRONMENT…]
  local seed=$1 writer arranger=
  shift
  env "$@" "$VARVE" mount -f "$repo" "$mnt" 2>>"$work/daemon.log" &
  daemon=$!
  wait_until "the mount appears" mountpoint -q "$mnt"
  mkdir -p "$mnt/s"
  python3 "$here/restless_writer.py" run "$mnt/s" "$work/log" "$seed" 1000 >"$work/writer.log" &
  writer=$!
  if [ "$parity" -gt 0 ]; then
    arrange_always &
    arranger=$!
    # Parity protects nothing before a version is sealed.
    wait_until "a version is sealed" grep -qs '"version".*"kept"' "$work/log"
  fi
  sleep "0.$((RANDOM % 60 + 30))"
  shut_down
  kill -9 "$daemon"
  wait "$writer" || true
  wait "$daemon" 2>/dev/null || true
  [ -z "$arranger" ] || wait "$arranger"
  umount -l "$mnt"
  umount "$disk"
  mount -o loop "$work/image" "$disk"
  "$VARVE" check --read-data "$repo" >"$work/check" 2>&1 || { cat "$work/check"; return 0; }
  [ "$parity" -eq 0 ] || damage_and_repair
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
  for parity in 0 10; do
    [ $parity -eq 0 ] && cuts=$rounds || cuts=$(((rounds + 3) / 4))
    repaired=0
    new_disk $type --parity $parity
    for ((round = 1; round <= cuts; round++)); do
      live_and_cut $round VARVE_NOTHING= >"$work/broken"
      [ ! -s "$work/broken" ] || fail "$type, parity $parity, cut $round: $(cat "$work/broken")"
    done
    grep -q '"kept"' "$work/log" || fail "nothing was promised, so nothing was tested"
    [ $parity -eq 0 ] || [ $repaired -gt 0 ] || fail "no damage was repaired"
    umount "$disk"
    ok "$cuts power cuts on $type, $parity % parity: all promises kept, check is clean," \
      "$repaired damages repaired"
  done
done

parity=0
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
