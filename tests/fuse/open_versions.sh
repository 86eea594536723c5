#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measures the cost of thousands of open versions that have a small file, in one daemon; kills the daemon, and
# continues them. Uses a tmpfs, since the test is about memory and not about syncs. The pages of an overlay's file
# that LMDB has mapped are the kernel's page cache, so the memory is the daemon's own (RssAnon).
#
# VARVE_TEST_VERSIONS=N: the number of versions. VARVE_TEST_SEALED=N: every N-th is sealed.
limit_s=120
. "$(dirname "$0")/lib.sh"
unset MALLOC_PERTURB_  # Meson's value fills each new block, and LMDB leaves most of its tables untouched.
under_sanitizer && skip "sanitizers take memory of their own"

count=${VARVE_TEST_VERSIONS:-2500}
sealed_step=${VARVE_TEST_SEALED:-100}
each_kib_max=48
threads_max=64
descriptors=$(ulimit -Hn)
[ "$descriptors" = unlimited ] || [ "$descriptors" -gt $((count + 1500)) ] || skip "the hard limit is $descriptors open files"
mkdir "$work/ram"
mount -t tmpfs -o size=8g none "$work/ram"
repo=$work/ram/repo
"$VARVE" init "$repo" 2>/dev/null
mount_as_job
figure() { awk -v key="$1:" '$1 == key { print $2 }' "/proc/$daemon/status"; }
mappings() { wc -l <"/proc/$daemon/maps"; }
descriptors() { find "/proc/$daemon/fd" -mindepth 1 2>/dev/null | wc -l; }
threads_of() { cat "/proc/$daemon/task"/*/comm 2>/dev/null | grep -cx "$1" || true; }
containers_are_written() { [ "$(find "$repo/series" -name '*.seg' -size +0 | wc -l)" -ge "$count" ]; }
container_threads_end() { [ "$(threads_of varve-container)" -eq 0 ]; }
append() {  # TEXT: appends a line to the file of each version
  python3 - "$mnt" "$count" "$1" <<'PY'
import os, sys
for n in range(int(sys.argv[2])):
    os.makedirs(f"{sys.argv[1]}/s{n}/v", exist_ok=True)
    with open(f"{sys.argv[1]}/s{n}/v/file", "a") as file:
        file.write(f"{sys.argv[3]} {n}\n")
        file.flush()
        os.fsync(file.fileno())
PY
}
all_have() {  # TEXT…: compares the lines of each version's file
  python3 - "$mnt" "$count" "$@" <<'PY'
import sys
for n in range(int(sys.argv[2])):
    want = "".join(f"{text} {n}\n" for text in sys.argv[3:])
    with open(f"{sys.argv[1]}/s{n}/v/file") as file:
        if (got := file.read()) != want:
            sys.exit(f"s{n} has {got!r}, not {want!r}")
PY
}

before_kib=$(figure RssAnon)
before_threads=$(figure Threads)
before_mappings=$(mappings)
append first
wait_until "each version has a container" containers_are_written
wait_until "the writers of containers have no thread" container_threads_end
each=$((($(figure RssAnon) - before_kib) / count))
[ $each -le $each_kib_max ] || fail "an open version with a file takes $each KiB"
ok "$count open versions with a file take at most $each_kib_max KiB each"
threads=$(($(figure Threads) - before_threads))
[ $threads -le $threads_max ] || fail "$count open versions with a file have $threads threads"
ok "they have at most $threads_max threads together"
more=$(($(mappings) - before_mappings))
[ $more -le $((count / 4 + 500)) ] || fail "$count open versions with a file have $more mappings"
[ "$(descriptors)" -le $((count + 600)) ] || fail "$count open versions with a file have $(descriptors) descriptors"
ok "they have few mappings, and one descriptor each"

# The daemon knows the sizes, so that a list reads no version's files, and a version at rest writes none.
overlays=("$repo"/staging/*/overlay)
overlays=("${overlays[@]:0:1000}")
lists_alone() { [ "$(python3 "$here/count_opens.py" "${overlays[@]}" -- "$VARVE" ls "$repo")" -eq 0 ]; }
wait_until "a list opens no file of open versions" lists_alone
[ "$("$VARVE" ls "$repo" | grep -c ', 1 entries)$')" -eq "$count" ] || fail "$("$VARVE" ls "$repo" | tail -n 3)"
ok "a list of them opens none of their files"

kill_daemon
mount_as_job
all_have first
append second
all_have first second
ok "a killed daemon loses nothing, and the next one continues all versions"

for ((n = 0; n < count; n += sealed_step)); do "$VARVE" seal "$mnt/s$n/v" >/dev/null; done
sealed "$mnt/s0/v" || fail "s0/v is not sealed"
unmount_repo
wait "$daemon"
mount_as_job
all_have first second
[ "$(figure Threads)" -le $((before_threads + threads_max)) ] || fail "$(figure Threads) threads after mounting again"
unmount_repo
wait "$daemon"
"$VARVE" check "$repo" >"$work/checked" || fail "check: $(tail -n 5 "$work/checked")"
ok "they are sealed, unmounted and mounted again, and the repository has no fault"

# What a version keeps in memory grows with its chunks, but no buffer of a writer stays.
mount_as_job
before_kib=$(figure RssAnon)
large=40
large_kib_max=400
for ((n = 0; n < large; n++)); do
  mkdir -p "$mnt/large$n/v"
  head -c 8M /dev/urandom >"$mnt/large$n/v/file"
done
buffers_are_freed() { [ $((($(figure RssAnon) - before_kib) / large)) -le $large_kib_max ]; }
wait_until "an open version with a file of 8 MiB takes $large_kib_max KiB" buffers_are_freed
ok "open versions with a file of 8 MiB keep no buffers"
unmount_repo
