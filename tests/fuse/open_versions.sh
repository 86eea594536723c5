#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measures the cost of an open version that has a small file: 500 of them in one daemon. Uses a tmpfs,
# since the test is about memory and not about syncs. The pages of an overlay's file that LMDB has mapped
# are the kernel's page cache, so the memory is the daemon's own (RssAnon).
limit_s=120
. "$(dirname "$0")/lib.sh"
unset MALLOC_PERTURB_  # Meson's value fills each new block, and LMDB leaves most of its tables untouched.
under_sanitizer && skip "sanitizers take memory of their own"

count=${VARVE_TEST_VERSIONS:-500}
each_kib_max=96
threads_max=64
mkdir "$work/ram"
mount -t tmpfs -o size=4g none "$work/ram"
repo=$work/ram/repo
"$VARVE" init "$repo" 2>/dev/null
mount_as_job
figure() { awk -v key="$1:" '$1 == key { print $2 }' "/proc/$daemon/status"; }
threads_of() { cat "/proc/$daemon/task"/*/comm 2>/dev/null | grep -cx "$1" || true; }
containers_are_written() { [ "$(find "$repo/series" -name '*.seg' -size +0 | wc -l)" -ge "$count" ]; }
container_threads_end() { [ "$(threads_of varve-container)" -eq 0 ]; }
before_kib=$(figure RssAnon)
before_threads=$(figure Threads)
python3 - "$mnt" "$count" <<'PY'
import os, sys
for n in range(int(sys.argv[2])):
    os.makedirs(f"{sys.argv[1]}/s{n}/v")
    with open(f"{sys.argv[1]}/s{n}/v/file", "w") as file:
        file.write(f"text {n}\n")
        file.flush()
        os.fsync(file.fileno())
PY
wait_until "each version has a container" containers_are_written
wait_until "the writers of containers have no thread" container_threads_end
each=$((($(figure RssAnon) - before_kib) / count))
[ $each -le $each_kib_max ] || fail "an open version with a file takes $each KiB"
ok "$count open versions with a file take at most $each_kib_max KiB each"
threads=$(($(figure Threads) - before_threads))
[ $threads -le $threads_max ] || fail "$count open versions with a file have $threads threads"
ok "they have at most $threads_max threads together"
for n in 0 17 $((count - 1)); do
  echo more >>"$mnt/s$n/v/file"
  "$VARVE" seal "$mnt/s$n/v" >/dev/null
  [ "$(cat "$mnt/s$n/v/file")" = "text $n"$'\nmore' ] || fail "the file of s$n differs"
done
ok "they are changed and sealed"
unmount_repo
