#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Versions that start as a sealed one: cloned, kept open at a seal, changed, and interrupted by
# kills. VARVE_TEST_BIG=1 uses a tree of 100,000 files.
limit_s=$([ -n "${VARVE_TEST_BIG:-}" ] && echo 1500 || echo 400)
. "$(dirname "$0")/lib.sh"
files=$([ -n "${VARVE_TEST_BIG:-}" ] && echo 100000 || echo 3000)

# Creates many small files, a file with names in many directories, a long recipe, and all types of
# files.
make_tree() {
  python3 - "$work/tree" "$files" <<'PYTHON'
import os, sys
top, files = sys.argv[1], int(sys.argv[2])
os.makedirs(top + "/moved/deep/er")
for n in range(files):
    folder = f"{top}/d{n // 1000}/e{n // 100 % 10}"
    if n % 100 == 0:
        os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/f{n}", "wb") as file:
        file.write(b"%d\n" % n)
for n in range(0, files // 1000, 2):
    os.link(top + "/d0/e0/f0", f"{top}/d{n}/hard")
blocks = [os.urandom(40000) for _ in range(12)]
with open(top + "/long", "wb") as file:
    for i in range(60):
        file.write(blocks[i if i < 12 else i * 5 % 12])
os.symlink("nowhere", top + "/moved/deep/link")
os.mkfifo(top + "/moved/deep/fifo")
os.setxattr(top + "/moved", "user.note", b"varve")
os.chmod(top + "/moved/deep", 0o2751)
PYTHON
  backdate "$work/tree"
}

# Makes changes that rsync has to transfer: contents, attributes, links, moves, removals.
edit_tree() {  # ROUND
  local round=$1
  echo "round $round" >>"$work/tree/d0/e0/f0"
  rm -r "$work/tree/d1/e$round"
  mv "$work/tree/moved/deep" "$work/tree/deep$round"
  mkdir -p "$work/tree/moved/deep/er"
  ln "$work/tree/d0/e0/f0" "$work/tree/moved/linked$round"
  chmod 0640 "$work/tree/long" "$work/tree/d2/e0/f200$round"
  head -c 100000 /dev/urandom >"$work/tree/d2/new$round"
  backdate "$work/tree"
}

make_tree
"$VARVE" init "$repo"
export VARVE_REPO=$repo
"$VARVE" store laptop/one "$work/tree"
cp -a "$work/tree" "$work/one"
started=$(date +%s%N)
"$VARVE" clone laptop/latest laptop/current.partial
echo "a clone of $files files without a mount took $((($(date +%s%N) - started) / 1000000)) ms"
started=$(date +%s%N)
"$VARVE" seal --keep laptop/current.partial same
echo "sealing it unchanged took $((($(date +%s%N) - started) / 1000000)) ms"
expect_status 1 "$VARVE" clone laptop/one laptop/other
message_says "current.partial is open"
expect_status 1 "$VARVE" clone laptop/one laptop/same
message_says "exists already"
expect_status 1 "$VARVE" clone laptop/absent laptop/other
expect_status 1 "$VARVE" clone laptop/one desktop/other
"$VARVE" check --quick
"$VARVE" restore laptop/same "$work/restored"
same_tree "$work/one" "$work/restored"
rm -r "$work/restored"
ok "an unchanged clone is the same tree"

mount_as_job
same_tree "$work/one" "$mnt/laptop/current.partial"
ok "the version that a seal kept open is the same tree"
edit_tree 1
rsync -aHAX --delete "$work/tree/" "$mnt/laptop/current.partial/"
no_rsync_difference "$work/tree/" "$mnt/laptop/current.partial/"
same_tree "$work/tree" "$mnt/laptop/current.partial"
ok "rsync --delete brings a clone up to date"
exec 8<"$mnt/laptop/current.partial/long"
"$VARVE" seal --keep laptop/current.partial two
sealed "$mnt/laptop/two" || fail "two is not sealed"
[ "$(state_of "$mnt/laptop/current.partial")" = open ] || fail "current.partial is not open"
[ "$(readlink "$mnt/laptop/latest")" = two ]
echo more >"$mnt/laptop/current.partial/at-once"
cmp - "$work/tree/long" <&8
exec 8<&-
expect_status 1 touch "$mnt/laptop/two/at-once"
message_says "read-only"
same_tree "$work/tree" "$mnt/laptop/two"
ok "seal --keep in a mount: the version is sealed, its name goes on at once"

cp -a "$work/tree" "$work/two"
edit_tree 2
for round in 1 2 3; do
  rsync -aHAX --delete "$work/tree/" "$mnt/laptop/current.partial/" 2>/dev/null &
  writer=$!
  sleep "0.$((round * 3))"
  kill_daemon
  # Otherwise rsync's processes sometimes wait for each other forever.
  kill $writer 2>/dev/null || true
  wait $writer 2>/dev/null || true
  mount_as_job
done
rsync -aHAX --delete "$work/tree/" "$mnt/laptop/current.partial/"
find "$mnt/laptop/current.partial" -maxdepth 1 -type d -print0 | xargs -0 sync
kill_daemon
mount_as_job
same_tree "$work/tree" "$mnt/laptop/current.partial"
ok "killed while rsync writes into a clone: it goes on"
started=$(date +%s%N)
"$VARVE" seal --keep "$mnt/laptop/current.partial" three
echo "sealing a clone with few changes took $((($(date +%s%N) - started) / 1000000)) ms"
kill_daemon
mount_as_job
same_tree "$work/tree" "$mnt/laptop/three"
same_tree "$work/two" "$mnt/laptop/two"
same_tree "$work/tree" "$mnt/laptop/current.partial"
ok "killed after seal --keep: sealed, and the clone is open"

mv -T "$mnt/laptop/current.partial" "$mnt/laptop/four"
"$VARVE" clone "$mnt/laptop/latest" "$mnt/laptop/five.partial"
same_tree "$work/tree" "$mnt/laptop/five.partial"
mv -T "$mnt/laptop/five.partial" "$mnt/laptop/five"
ok "cloned by paths in a mount"
started=$(date +%s%N)
"$VARVE" clone laptop/one laptop/old
echo "a clone of an older version of $files files took $((($(date +%s%N) - started) / 1000000)) ms"
same_tree "$work/one" "$mnt/laptop/old"
"$VARVE" open desktop/first
[ "$(state_of "$mnt/desktop/first")" = open ]
expect_status 1 "$VARVE" open desktop/first
"$VARVE" umount "$mnt"
mount_repo
same_tree "$work/one" "$mnt/laptop/old"
"$VARVE" seal laptop/old
same_tree "$work/one" "$mnt/laptop/old"
ok "a clone of an older version is that version's tree, also after a remount and a seal"
"$VARVE" umount "$mnt"
"$VARVE" check --read-data
"$VARVE" clone --json laptop/two laptop/last | python3 -c '
import json, sys
version = json.load(sys.stdin)
assert (version["series"], version["version"], version["state"]) == ("laptop", "last", "open")'
ok "check finds nothing"
