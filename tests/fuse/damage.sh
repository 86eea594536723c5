#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One flipped byte in each region of the repository's files: check names it, reading gives
# EIO for that range and never wrong data, all else is readable.
limit_s=120
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
[ "$(stat_of "$work/copy" unique_bytes)" -lt 11500000 ] || fail "deduplication was lost"
ok "a damaged index snapshot is rebuilt: the next version is whole and deduplicated"
