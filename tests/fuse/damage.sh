#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Flips one byte in each region of the repository's files. check must name it; reading must give EIO
# for that range and never wrong data; everything else must be readable.
limit_s=300
. "$(dirname "$0")/lib.sh"

mkdir "$work/tree"
python3 - "$work/tree" <<'PYTHON'
import os, random, sys
rng = random.Random(8)
for n in range(12):
    with open(f"{sys.argv[1]}/large-{n:02}", "wb") as file:
        file.write(rng.randbytes(900_000))
os.mkdir(f"{sys.argv[1]}/small")
for n in range(60):
    with open(f"{sys.argv[1]}/small/{n:02}", "wb") as file:
        file.write(rng.randbytes(3000))
PYTHON
for compression in none zstd; do
  rm -rf "$repo"
  "$VARVE" init --compression $compression "$repo"
  "$VARVE" store "$repo" s/one "$work/tree"
  python3 "$here/damage.py" "$repo" "$work/tree" "$mnt" $compression
done

rm -rf "$work/copy"
cp -a "$repo" "$work/copy"
for snapshot in $(find "$work/copy" -name '*.snap'); do
  printf 'damage' | dd of="$snapshot" bs=1 seek=$(($(stat -c %s "$snapshot") / 2)) conv=notrunc \
    status=none
  flipped=1
done
[ -n "${flipped:-}" ] || fail "there is no index snapshot to damage"
echo more >"$work/tree/more"
"$VARVE" store "$work/copy" s/two "$work/tree"
"$VARVE" restore "$work/copy" s/two "$work/restored"
same_tree "$work/tree" "$work/restored"
"$VARVE" check "$work/copy"
[ "$(stat_of "$work/copy" chunk_bytes)" -lt 11500000 ] || fail "deduplication was lost"
ok "a damaged index snapshot is rebuilt: the next version is whole and deduplicated"

rm -rf "$work/copy"
cp -a "$repo" "$work/copy"
rm -r "$work/copy/catalog" "$work/copy"/series/*/manifests
expect_status 1 "$VARVE" check --outer "$work/copy"
grep -q 'it is missing: run `varve repair`' "$work/stdout"
grep -q ': 1 damaged places' "$work/stdout"
segment=$(find "$work/copy" -name '*.seg' | sort | head -1)
python3 - "$segment" <<'PYTHON'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(300_000)
    byte = file.read(1)
    file.seek(300_000)
    file.write(bytes([byte[0] ^ 1]))
PYTHON
status=0
"$VARVE" check --outer "$work/copy" >"$work/outer" || status=$?
[ $status -eq 1 ] || fail "check --outer ends with $status"
grep -q "^damaged: $segment: container at offset 0" "$work/outer" || fail "$(cat "$work/outer")"
ok "check --outer finds a changed byte without the catalog"

# Returns whether the process has read something. It reports its progress on a signal.
has_read_some() {
  kill -USR1 "$checking"
  grep -qE 'checking: [1-9]' "$work/progress"
}
rm -rf "$work/copy"
cp -a "$repo" "$work/copy"
summary() { tail -1 "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$2"; }
"$VARVE" check --read-data --json "$work/copy" >"$work/whole"
"$VARVE" check --read-data --resume --rate 100K --json "$work/copy" \
  >"$work/first" 2>"$work/progress" &
checking=$!
wait_until "the check knows where it is" [ -s "$work/copy/scrub" ]
wait_until "the check has read something" has_read_some
kill -TERM "$checking"
status=0
wait "$checking" || status=$?
[ $status -eq 3 ] || fail "a check that was stopped ends with $status"
[ "$(summary "$work/first" finished)" = False ] || fail "a check that was stopped came to the end"
"$VARVE" check --read-data --resume --json "$work/copy" >"$work/second"
[ "$(summary "$work/second" finished)" = True ] || fail "the second check does not come to the end"
read_whole=$(summary "$work/whole" read_bytes)
[ "$(summary "$work/second" read_bytes)" -lt "$read_whole" ] || fail "it did not go on"
"$VARVE" check --read-data --resume --json "$work/copy" >"$work/third"
[ "$(summary "$work/third" read_bytes)" -eq "$read_whole" ] || fail "the third did not begin again"
expect_status 2 "$VARVE" check --read-data=50% --resume "$work/copy"
message_says "percentage"
"$VARVE" scrub --restart "$work/copy"
ok "a check of all data that is stopped goes on where it was"
