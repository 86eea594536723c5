#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measures the cost of an open version before the first write: 5,000 series with one each, in one
# daemon. Uses a tmpfs, since the test is about memory and not about syncs.
limit_s=120
. "$(dirname "$0")/lib.sh"
under_sanitizer && skip "sanitizers take memory of their own"

count=${VARVE_TEST_SERIES:-5000}
mkdir "$work/ram"
mount -t tmpfs -o size=2g none "$work/ram"
repo=$work/ram/repo
"$VARVE" init "$repo" 2>/dev/null
mount_as_job
figure() { awk -v key="$1:" '$1 == key { print $2 }' "/proc/$daemon/status"; }
descriptors() { find "/proc/$daemon/fd" -mindepth 1 | wc -l; }
before_kib=$(figure VmRSS)
python3 - "$mnt" "$count" <<'PY'
import os, sys
for n in range(int(sys.argv[2])):
    os.mkdir(f"{sys.argv[1]}/s{n}")
    os.mkdir(f"{sys.argv[1]}/s{n}/v")
PY
kib=$(figure VmRSS)
[ "$kib" -lt $((600 * 1024)) ] || fail "the daemon has $kib KiB with $count open versions"
each=$(((kib - before_kib) * 1024 / count))
[ $each -le 65536 ] || fail "an open, empty version takes $each bytes"
ok "$count open, empty versions: $((kib / 1024)) MiB, $each bytes each"
threads=$(figure Threads)
[ "$threads" -lt 100 ] || fail "$threads threads"
[ "$(descriptors)" -lt 200 ] || fail "$(descriptors) descriptors"
ok "they have no threads and descriptors of their own: $threads and $(descriptors) in all"
echo text >"$mnt/s17/v/file"
"$VARVE" seal "$mnt/s17/v" >/dev/null
[ "$(cat "$mnt/s17/v/file")" = text ] || fail "the file differs"
mkdir "$mnt/s17/next"
kill_daemon
mount_as_job
[ "$(cat "$mnt/s17/v/file")" = text ] || fail "the file differs after the daemon was killed"
[ -d "$mnt/s18/v" ] || fail "an open, empty version is gone"
echo more >"$mnt/s18/v/file"
"$VARVE" seal "$mnt/s18/v" >/dev/null
[ "$(cat "$mnt/s18/v/file")" = more ] || fail "the file differs"
ok "they are written, sealed, and go on after the daemon was killed"
unmount_repo
