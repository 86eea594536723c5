#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Names that differ only in upper and lower case, restored to a disk that does not tell them apart: each restore keeps
# one of them, names the other, and ends with 3.
. "$(dirname "$0")/lib.sh"
: "${VARVE_FOLDING_DISK:?is the program that serves such a disk}"

src=$work/src
mkdir -p "$src/DIR" "$src/dir" "$src/plain" "$work/disk" "$work/folding"
printf upper >"$src/FILE"
printf lower >"$src/file"
printf same >"$src/Same"
printf same >"$src/same"
printf upper >"$src/DIR/upper"
printf lower >"$src/dir/lower"
ln -s upper "$src/LINK"
ln -s lower "$src/link"
mkfifo "$src/PIPE" "$src/pipe"
printf hard >"$src/HARD"
ln "$src/HARD" "$src/hard"
head -c 300000 /dev/urandom >"$src/BIG"
head -c 300000 /dev/urandom >"$src/big"
printf one >"$src/plain/One"
printf two >"$src/plain/Two"
# The content alone tells some of the pairs apart.
find "$src" -exec touch -h -d 2024-01-01 {} +
"$VARVE" -q init "$repo"
"$VARVE" -q store "$repo" s/v "$src"
"$VARVE_FOLDING_DISK" "$work/disk" "$work/folding"
touch "$work/folding/Case"
[ -e "$work/folding/cASE" ] || fail "the disk tells case apart"
rm "$work/folding/case"

restore_folded() { expect_status 3 "$VARVE" restore --segment=64K "$@" "$repo" s/v "$work/folding/out"; }
names_twins() {
  local name
  for name in file same dir link pipe hard big; do
    grep -q "varve: $name: " "$work/stderr" || fail "$name is not named: $message"
  done
  ! grep -q 'plain' "$work/stderr" || fail "others are named: $message"
}
has_upper() {
  (cd "$work/disk/out" && find . -mindepth 1 | LC_ALL=C sort | xargs) >"$work/names"
  [ "$(cat "$work/names")" = "./BIG ./DIR ./DIR/upper ./FILE ./HARD ./LINK ./PIPE ./Same ./plain ./plain/One ./plain/Two" ] ||
    fail "the target has $(cat "$work/names")"
  [ "$(cat "$work/disk/out/FILE")" = upper ] && cmp "$src/BIG" "$work/disk/out/BIG"
  [ "$(readlink "$work/disk/out/LINK")" = upper ]
}
restore_folded
names_twins
has_upper
ok "a restore keeps the first of two names and names the other"
for how in '' --checksum --delete -n; do
  # shellcheck disable=SC2086  # Nothing or one word.
  restore_folded $how
  names_twins
  message_says 'file: left out: the target does not tell it from "FILE" of the version'
  has_upper
done
ok "so do the next restores, which change nothing"

# A target whose name is neither of the two, and one that has another case than the version.
mv "$work/disk/out/FILE" "$work/disk/out/File"
mv "$work/disk/out/plain/One" "$work/disk/out/plain/oNE"
printf old >"$work/disk/out/File"
printf old >"$work/disk/out/plain/oNE"
restore_folded
names_twins
[ "$(cat "$work/folding/out/file")" = upper ] || fail "FILE was replaced"
[ "$(cat "$work/folding/out/plain/one")" = one ] || fail "One was not restored"
ok "a name in a third case takes the first of two names; one of the version alone is no problem"

expect_status 0 "$VARVE" restore "$repo" s/v "$work/out"
expect_status 0 "$VARVE" restore "$repo" s/v "$work/out"
diff -r --no-dereference "$src/dir" "$work/out/dir"
[ "$(cat "$work/out/file")" = lower ]
umount "$work/folding"
ok "elsewhere both are restored"
