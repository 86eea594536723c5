#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Kills the daemon at a chosen call that changes the disk, while it writes, seals, arranges or
# deletes. VARVE_TEST_ROUNDS sets the number of rounds (16), VARVE_TEST_SEED the first.
limit_s=300
. "$(dirname "$0")/lib.sh"
: "${VARVE_FAULTY_DISK:?is the path of the library made from faulty_disk.cc}"
rounds=${VARVE_TEST_ROUNDS:-16}
seed=${VARVE_TEST_SEED:-7}
armed=$work/armed

mount_faulty() {  # KILLS_AT
  env LD_PRELOAD="$VARVE_FAULTY_DISK" DISK_BELOW="$repo" DISK_KILLS_AT="$1" DISK_KILLS_ONCE="$armed" \
    DISK_CALLS_IN="$work/calls" \
    "$VARVE" mount -f "$repo" "$mnt" 2>>"$work/daemon.log" &
  daemon=$!
  wait_until "the mount appears" mountpoint -q "$mnt"
}

work_on() {  # SEED: writes for some rounds, and arranges; ends early if the daemon dies
  python3 "$here/restless_writer.py" run "$mnt/s" "$work/log" "$1" 7 >/dev/null || return 0
  "$VARVE" arrange "$repo" >/dev/null 2>&1 || true
}

verify() {
  python3 "$here/restless_writer.py" verify "$mnt/s" "$work/log" >"$work/broken" ||
    fail "$1: $(cat "$work/broken")"
}

"$VARVE" init --compression none "$repo"
mount_faulty 0
mkdir "$mnt/s"
touch "$armed"
work_on "$seed"
calls=$(stat -c %s "$work/calls")
rm "$armed"
unmount_repo
wait "$daemon"
[ "$calls" -gt 100 ] || fail "only $calls calls were counted"

died=0
for ((round = 1; round <= rounds; round++)); do
  at=$(((calls * round / rounds + seed * 37) % calls + 1))
  mount_faulty $at
  touch "$armed"
  work_on $((seed + round))
  rm "$armed"
  if kill -0 "$daemon" 2>/dev/null; then
    kill_daemon
  else
    died=$((died + 1))
    wait "$daemon" 2>/dev/null || true
    umount -l "$mnt"
  fi
  "$VARVE" check --read-data "$repo" >"$work/check" || fail "round $round, call $at: $(cat "$work/check")"
  mount_repo
  verify "round $round, killed at call $at"
  unmount_repo
done
[ $died -gt $((rounds / 3)) ] || fail "the daemon died in $died of $rounds rounds only"
ok "$died of $rounds daemons died at a call of their own: all promises kept, check is clean"
