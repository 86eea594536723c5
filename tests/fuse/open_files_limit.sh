#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A daemon that may open 512 files refuses further open versions and staging files with a clear error before its
# descriptors are used up. Then reads, writes to the other versions, seals and the unmount still work.
limit_s=60
. "$(dirname "$0")/lib.sh"
under_sanitizer && skip "sanitizers open files of their own"

"$VARVE" init "$repo" 2>/dev/null
mount_limited() {
  (ulimit -n 512 && exec "$VARVE" mount -f "$repo" "$mnt" 2>>"$work/daemon.log") &
  daemon=$!
  wait_until "the mount appears" mountpoint -q "$mnt"
}
mount_limited
python3 - "$mnt" >"$work/made" <<'PY'
import errno, os, sys
mnt = sys.argv[1]
for n in range(600):
    os.makedirs(f"{mnt}/s{n}/v")
    try:
        with open(f"{mnt}/s{n}/v/file", "w") as file:
            file.write(f"first {n}\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if error.errno != errno.EMFILE:
            sys.exit(f"s{n}: {error}")
        print(n)
        break
PY
made=$(cat "$work/made")
[ "${made:-0}" -ge 200 ] || fail "the daemon refuses version ${made:-none}"
ok "$made versions are written, and the next one gets EMFILE"
grep -q 'seal open versions' "$work/daemon.log" || fail "the log does not say what to do: $(tail -n 3 "$work/daemon.log")"
grep -q 'ulimit -n' "$work/daemon.log" || fail "the log does not name the limit: $(tail -n 3 "$work/daemon.log")"
ok "the log says what to do"

python3 - "$mnt" "$made" <<'PY'
import errno, os, sys
mnt, made = sys.argv[1], int(sys.argv[2])
# Content out of order goes to staging files.
refused = 0
opened = []
for n in range(made):
    file = os.open(f"{mnt}/s{n}/v/other", os.O_CREAT | os.O_WRONLY)
    try:
        os.pwrite(file, b"end", 8192)
        os.pwrite(file, f"begin {n}".encode(), 0)
    except OSError as error:
        if error.errno != errno.EMFILE:
            sys.exit(f"s{n}/v/other: {error}")
        refused += 1
    opened.append(file)
for file in opened:
    try:
        os.close(file)
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
if refused == 0:
    sys.exit("no staging file is refused")
for n in range(made):
    with open(f"{mnt}/s{n}/v/file", "a") as file:
        file.write(f"second {n}\n")
        file.flush()
        with open(f"{mnt}/s{n}/v/file") as reader:  # While the file is written.
            if (got := reader.read()) != f"first {n}\nsecond {n}\n":
                sys.exit(f"s{n} has {got!r}")
        file.write(f"third {n}\n")
        file.flush()
        os.fsync(file.fileno())
    with open(f"{mnt}/s{n}/v/file") as file:
        if (got := file.read()) != f"first {n}\nsecond {n}\nthird {n}\n":
            sys.exit(f"s{n} has {got!r}")
PY
ok "staging files are refused, and the versions can be read and written"

for ((n = 0; n < made; n += 10)); do "$VARVE" seal "$mnt/s$n/v" >/dev/null; done
echo text >"$mnt/s$made/v/file"
ok "versions can be sealed, and then another one can be written"
unmount_repo
wait "$daemon"
grep -q 'Too many open files' "$work/daemon.log" || fail "no message"
! grep 'Too many open files' "$work/daemon.log" | grep -v 'seal open versions' || fail "work of the daemon lacks descriptors"
"$VARVE" check "$repo" >"$work/checked" || fail "check: $(tail -n 5 "$work/checked")"
[ "$("$VARVE" ls "$repo" | grep -c open)" -ge 1 ] || fail "no version is open"
mount_limited
for ((n = 0; n < made; n += 7)); do
  [ "$(cat "$mnt/s$n/v/file")" = "first $n"$'\n'"second $n"$'\n'"third $n" ] || fail "the file of s$n differs"
done
ok "the repository has no fault, and can be mounted again"
unmount_repo
