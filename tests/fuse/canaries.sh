#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Nothing that a user stores in an encrypted repository is in the clear on the disk: also after the
# daemon was killed at any moment, and in no core. VARVE_TEST_KILLS sets the number of kills (12),
# VARVE_TEST_SEED the first.
limit_s=400
. "$(dirname "$0")/lib.sh"
: "${VARVE_FAULTY_DISK:?is the path of the library made from faulty_disk.cc}"
: "${VARVE_INIT_ENCRYPTED:?is the program that makes an encrypted repository}"
kills=${VARVE_TEST_KILLS:-12}
seed=${VARVE_TEST_SEED:-1}
echo "$kills kills from seed $seed"
armed=$work/armed
umask 077
echo correct-horse-battery-staple >"$work/pass"
python3 "$here/canaries.py" tree "$work/tree" "$seed"
export TMPDIR=$work/temporary
mkdir "$TMPDIR"

search() { python3 "$here/canaries.py" search "${1:-0}" "$repo" "$TMPDIR" "$work/daemon.log"; }

mount_now() {  # KILLS_AT
  local at=$1
  env LD_PRELOAD="$VARVE_FAULTY_DISK" DISK_BELOW="$repo" DISK_KILLS_AT="$at" DISK_KILLS_ONCE="$armed" \
    DISK_CALLS_IN="$work/calls" "$VARVE" mount -f -d -o 'beside=beside-*' "$repo" "$mnt" 2>>"$work/daemon.log" &
  daemon=$!
  wait_until "the mount appears" mountpoint -q "$mnt"
}

# Works on the mount. Kills the daemon after a while if it does not end at a call of its own.
kill_at_work() {  # NUMBER MILLISECONDS
  touch "$armed"
  python3 "$here/canaries.py" work "$mnt" "$work/tree" "$1" "$repo" &
  worker=$!
  sleep "$(($2 / 1000)).$(printf %03d $(($2 % 1000)))"
  if kill -STOP "$daemon" 2>/dev/null; then
    # Its open files, also deleted ones, are searched as they are at this moment.
    [ -n "${control:-}" ] || search "$daemon" >"$work/found" || fail "kill $1: $(cat "$work/found")"
    kill -KILL "$daemon" 2>/dev/null || true  # It may end by itself at this moment.
  fi
  wait "$daemon" 2>/dev/null || true
  rm -f "$armed"
  umount -l "$mnt"
  kill "$worker" 2>/dev/null || true
  wait "$worker" 2>/dev/null || true
}

# The search finds what a plain repository has: else it would prove nothing.
"$VARVE" -q init --compression none "$repo"
control=1
mount_now 0
kill_at_work "$seed" 2500
if search >"$work/found"; then fail "no canary is in a plain repository: $(cat "$work/found")"; fi
for kind in '\.seg: ' 'catalog/data\.mdb: ' 'overlay/data\.mdb: \|labels: '; do
  grep "$kind" "$work/found" >/dev/null || fail "the search does not find $kind: $(cat "$work/found")"
done
control=
rm -rf "$repo"
: >"$work/daemon.log"
ok "the search finds contents and names in a plain repository: $(tail -1 "$work/found")"

"$VARVE_INIT_ENCRYPTED" "$repo" correct-horse-battery-staple
export VARVE_PASSPHRASE_FILE=$work/pass
own=0
calls=0
for ((number = seed; number < seed + kills; number++)); do
  # Every second daemon ends at a call, of those that the first one made in its time.
  at=0
  if [ $((number % 2)) -eq 0 ] && [ "$calls" -gt 50 ]; then at=$(((number * 7919) % calls + 1)); fi
  : >"$work/calls"
  mount_now $at
  kill_at_work "$number" $((200 + number * 389 % 2100))
  if [ $calls -eq 0 ] || [ $((number % 2)) -eq 1 ]; then calls=$(stat -c %s "$work/calls"); fi
  if [ $at -ne 0 ] && [ "$(stat -c %s "$work/calls")" -eq $at ]; then own=$((own + 1)); fi
  search >"$work/found" || fail "kill $number: $(cat "$work/found")"
  if grep correct-horse "$work/daemon.log"; then fail "the passphrase is in the log"; fi
  : >"$work/daemon.log"
  if [ "$(du -sm "$repo" | cut -f1)" -gt 100 ]; then
    rm -rf "$repo"
    "$VARVE_INIT_ENCRYPTED" "$repo" correct-horse-battery-staple
  fi
done
"$VARVE" check --read-data "$repo" >"$work/check" || fail "the check: $(cat "$work/check")"
ok "after $kills kills, $own of them at a call of the daemon's own, no part of 8 bytes is in the clear: $(tail -1 "$work/found")"

mount_now 0
mkdir "$mnt/other"
"$VARVE" store "$repo" other/one "$work/tree"
"$VARVE" restore "$repo" other/one "$work/restored"
same_tree --ignore holes "$work/tree" "$work/restored"
"$VARVE" umount "$mnt"
wait "$daemon"
search >"$work/found" || fail "after a clean end: $(cat "$work/found")"
"$VARVE" mount "$repo" "$mnt"
"$VARVE" umount "$mnt"
search >"$work/found" || fail "after another mount: $(cat "$work/found")"
ok "nor after clean ends; what was stored comes back"

# A killed daemon leaves no core, where another program does.
case $(cat /proc/sys/kernel/core_pattern) in
*[/\|]*) skip_part "cores do not go to the folder of the program here" ;;
*)
  mkdir "$work/cores"
  cd "$work/cores"
  ulimit -c unlimited
  cat >"$work/abort.py" <<'END'
import os
os.abort()
END
  python3 "$work/abort.py" 2>/dev/null || true
  [ -n "$(ls)" ] || fail "no program leaves a core here"
  rm -f ./*
  "$VARVE" mount "$repo" "$mnt"
  daemon=$(pgrep -f "mount .*$mnt" | head -1)
  cat "$mnt"/other/one/*/small-* >/dev/null
  ls -la "/proc/$daemon/cwd" >/dev/null
  kill -ABRT "$daemon"
  wait_until "the daemon ends" bash -c "! kill -0 $daemon 2>/dev/null"
  umount -l "$mnt"
  mount_now 0
  kill -SEGV "$daemon"
  wait "$daemon" 2>/dev/null || true
  umount -l "$mnt"
  [ -z "$(ls)" ] || fail "the daemon left $(ls)"
  [ -z "$(find / -xdev -maxdepth 1 -name 'core*' -newer "$work/abort.py")" ] || fail "a core is in /"
  cd "$here"
  ok "a daemon that a signal ends leaves no core, where another program does"
  ;;
esac
