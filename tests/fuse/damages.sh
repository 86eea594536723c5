#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Many random damages to a repository's files, one at a time: `varve check --read-data` finds them,
# and a restore gives right bytes or none. VARVE_DAMAGES sets their number (25, and 10 with
# the placement pool, with frames that have prefixes, and in an encrypted repository), VARVE_TEST_SEED their choice.
limit_s=3000
. "$(dirname "$0")/lib.sh"

# Makes the repository with five versions of one tree, or more if it joins the volumes of eight deaths. With a pool, another series has some of its
# files, so that the series share them.
make_repository() {  # PLACEMENT [encrypted|delta]
  local last=5
  rm -rf "$repo" "$work/tree" "$work/versions"
  mkdir "$work/tree" "$work/versions"
  python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(0).randbytes(600000))' \
    >"$work/tree/static"
  if [ "${2:-}" = encrypted ]; then
    "$VARVE_INIT_ENCRYPTED" "$repo" "$(cat "$VARVE_PASSPHRASE_FILE")"
  else
    "$VARVE" -q init --placement "$1" "$repo"
  fi
  if [ "${2:-}" = delta ]; then
    "$VARVE" config "$repo" delta=1 window=1
    last=12
  fi
  if [ "$1" != lineage ]; then "$VARVE" -q store "$repo" other/v1 "$work/tree"; fi
  for ((n = 1; n <= last; n++)); do
    python3 - "$work/tree" "$n" <<'PYTHON'
import os, random, sys
tree, n = sys.argv[1], int(sys.argv[2])
rng = random.Random(n)
for name in (f"new-{n}", "changing"):
    with open(f"{tree}/{name}", "wb") as file:
        file.write(rng.randbytes(150_000))
pages = bytearray(random.Random(99).randbytes(100_000))
for at in range(500, len(pages), 4000):
    pages[at:at + 8] = rng.randbytes(8)
with open(f"{tree}/pages", "wb") as file:
    file.write(pages)
with open(f"{tree}/text", "w") as file:
    file.writelines(f"line {i} of version {n}\n" for i in range(5000))
os.makedirs(f"{tree}/small", exist_ok=True)
for i in range(n, n + 20):
    with open(f"{tree}/small/{i:02}", "wb") as file:
        file.write(rng.randbytes(2000))
if n > 2:
    os.unlink(f"{tree}/new-{n - 2}")
PYTHON
    cp -a "$work/tree" "$work/versions/v$n"
    "$VARVE" -q store "$repo" "s/v$n" "$work/tree"
  done
}

make_repository lineage
"$VARVE" arrange --policy original --window 1 "$repo" s
[ -n "$(find "$repo" -name "*.vol")" ] || fail "nothing was archived"
"$VARVE" -q check --read-data "$repo"
python3 "$here/damages.py" "$repo" "$work/versions" "$work/tree" "$work/copy" "${VARVE_DAMAGES:-25}"
make_repository pool
[ -n "$(find "$repo/pool" -name "*.seg")" ] || fail "nothing is in the pool"
"$VARVE" -q check --read-data "$repo"
python3 "$here/damages.py" "$repo" "$work/versions" "$work/tree" "$work/copy" "${VARVE_DAMAGES:-10}"
make_repository lineage delta
"$VARVE" arrange --policy original --window 1 "$repo" s
python3 -c 'import sys; sys.path[:0] = [sys.argv[1]]; import kept_states
sys.exit(kept_states.containers_with_prefixes(sys.argv[2]) == 0)' "$here" "$repo" || fail "no frame has a prefix"
"$VARVE" -q check --read-data "$repo"
python3 "$here/damages.py" "$repo" "$work/versions" "$work/tree" "$work/copy" "${VARVE_DAMAGES:-10}"
umask 077
echo correct-horse-battery-staple >"$work/pass"
export VARVE_PASSPHRASE_FILE=$work/pass
make_repository lineage encrypted
"$VARVE" arrange --policy original --window 1 "$repo" s
"$VARVE" -q check --read-data "$repo"
python3 "$here/damages.py" "$repo" "$work/versions" "$work/tree" "$work/copy" "${VARVE_DAMAGES:-10}"
