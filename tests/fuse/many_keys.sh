#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A daemon that may lock 64 KiB serves any number of open versions and staging files of an encrypted
# repository. Each has a key of its own, and 64 KiB have room for 2,048 keys.
limit_s=120
VARVE_TEST_ENCRYPTED=1
. "$(dirname "$0")/lib.sh"
under_sanitizer && skip "sanitizers lock memory of their own"

versions=300
files=8
mkdir "$work/ram"
mount -t tmpfs -o size=2g none "$work/ram"
repo=$work/ram/repo
"$VARVE" init "$repo" 2>/dev/null
ulimit -l 64
# The limit does not hold for a process with CAP_IPC_LOCK.
setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock "$VARVE" mount -f "$repo" "$mnt" 2>"$work/daemon.log" &
daemon=$!
wait_until "the mount appears" mountpoint -q "$mnt"

python3 - "$mnt" $versions $files <<'PY'
import os, resource, sys

mnt, versions, files = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
need = versions * files + 64
resource.setrlimit(resource.RLIMIT_NOFILE, (need, max(need, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
opened = []
for n in range(versions):
    os.makedirs(f"{mnt}/s{n}/v")
    for i in range(files):
        file = os.open(f"{mnt}/s{n}/v/file{i}", os.O_CREAT | os.O_WRONLY)
        os.pwrite(file, b"end", 8192)  # Out of order, so the content is in a staging file.
        os.pwrite(file, f"begin of {i} in {n}".encode(), 0)
        opened.append(file)
for file in opened:
    os.close(file)
PY
locked_kib=$(awk '$1 == "VmLck:" { print $2 }' "/proc/$daemon/status")
[ "$locked_kib" -eq 64 ] || fail "the daemon has locked $locked_kib KiB, not 64"
[ "$(grep -c "raise 'ulimit -l'" "$work/daemon.log")" -eq 1 ] || fail "not one warning: $(cat "$work/daemon.log")"
ok "$((versions * files)) files of $versions open versions are written, with one warning"

for ((n = 0; n < versions; n += 10)); do "$VARVE" seal "$mnt/s$n/v" >/dev/null; done
for n in 0 290; do
  [ "$(tr -d '\0' <"$mnt/s$n/v/file7")" = "begin of 7 in ${n}end" ] || fail "a file of s$n differs"
done
ok "they can be sealed"
unmount_repo
wait "$daemon"
"$VARVE" check "$repo" >/dev/null
ok "they can be unmounted, and the repository has no fault"
