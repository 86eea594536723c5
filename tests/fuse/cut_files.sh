#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Segments and volumes that are cut at their end. Each frame whose bytes exist is read; restores, checks
# and repairs agree on what is lost; and padding, which has no data, is written again.
limit_s=900
. "$(dirname "$0")/lib.sh"

umask 077
echo correct-horse-battery-staple >"$work/pass"

mkdir "$work/small"
echo small >"$work/small/file"

# Two versions of files that do not compress, in containers with padding.
for n in 1 2; do
  mkdir -p "$work/versions/v$n"
  python3 - "$work/versions/v$n" $n <<'PYTHON'
import random, sys
folder, n = sys.argv[1], int(sys.argv[2])
for i in range(12):
    rng = random.Random(100 * n + i if i % 3 == 0 else i)
    with open(f"{folder}/file-{i:02}", "wb") as file:
        file.write(rng.randbytes(230_001 if i < 6 else 15_001))
PYTHON
done

make_repository() {  # PLACEMENT plain|encrypted PARITY
  rm -rf "$repo" "$work/like"
  unset VARVE_PASSPHRASE_FILE
  "$VARVE" -q init --placement "$1" --compression none "$repo"
  if [ "$2" = encrypted ]; then
    mv "$repo" "$work/like"
    "$VARVE_INIT_ENCRYPTED" "$repo" "$(cat "$work/pass")" "$work/like"
    export VARVE_PASSPHRASE_FILE=$work/pass
  fi
  [ "$3" = 0 ] || "$VARVE" -q arrange --parity="$3" "$repo"
  for n in 1 2; do "$VARVE" -q store "$repo" "s/v$n" "$work/versions/v$n"; done
  "$VARVE" -q arrange --policy original --window 1 "$repo" s
  "$VARVE" -q check --read-data "$repo"
}

# A mount, a copy and arranging read what is there, too, without a repair. Plain volumes have no padding.
other_readers() {  # plain|encrypted
  local file n
  while read -r file; do truncate -s -1 "$file"; done < <(find "$repo" -name '*.seg')
  if [ "$1" = encrypted ]; then
    while read -r file; do truncate -s -1 "$file"; done < <(find "$repo" -name '*.vol')
  fi
  mount_repo
  for n in 1 2; do diff -r "$work/versions/v$n" "$mnt/s/v$n"; done
  unmount_repo
  rm -rf "$work/other" "$work/restored"
  "$VARVE" -q copy ${VARVE_PASSPHRASE_FILE:+--encrypt} "$repo" "$work/other"
  "$VARVE" -q check --read-data "$work/other"
  "$VARVE" -q store --allow-shrunk --no-arrange "$repo" s/v3 "$work/small"
  "$VARVE" -q arrange "$repo" s
  for n in 1 2; do
    "$VARVE" -q restore "$repo" s/v$n "$work/restored"
    diff -r "$work/versions/v$n" "$work/restored"
    rm -rf "$work/restored"
  done
  expect_status 0 "$VARVE" repair --yes "$repo"
  "$VARVE" -q check --read-data "$repo"
}

for placement in lineage pool; do
  for form in plain encrypted; do
    make_repository $placement $form 0
    VARVE_TEST_PARITY=0 python3 "$here/cut_files.py" "$repo" "$work/versions" "$work"
    ok "$placement, $form: restores, checks and repairs of cut files agree"
    other_readers $form
    ok "$placement, $form: a mount, a copy and arranging read each frame whose bytes exist"
  done
  make_repository $placement encrypted 25
  VARVE_TEST_PARITY=1 python3 "$here/cut_files.py" "$repo" "$work/versions" "$work"
  ok "$placement, with parity: the repair restores what was cut off"
done
