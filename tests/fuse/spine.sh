#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The main walk on a real tree: mount, copy, seal, edit, rsync, seal, browse, restore.
# VARVE_TEST_BIG=1 uses all of /usr/share.
limit_s=$([ -n "${VARVE_TEST_BIG:-}" ] && echo 900 || echo 150)
. "$(dirname "$0")/lib.sh"

# Chooses a real tree of at most about 100 MB: folders of /usr/share and /usr/include, in listing
# order.
choose_tree() {
  local folder used=0 size
  mkdir "$work/tree"
  if [ -n "${VARVE_TEST_BIG:-}" ]; then
    cp -a /usr/share "$work/tree/share"
    return
  fi
  for folder in /usr/share/*/ /usr/include/; do
    size=$(du -sm "$folder" | cut -f1)
    [ $((used + size)) -le 80 ] || continue
    used=$((used + size))
    cp -a "$folder" "$work/tree/"
  done
}

edit_tree() {
  local file
  find "$work/tree" -type f -size +2k | sort | awk 'NR % 150 == 0' >"$work/edited"
  while read -r file; do
    { echo "a line in front" && cat "$file"; } >"$work/new"
    cat "$work/new" >"$file"
  done <"$work/edited"
  find "$work/tree" -type f | sort | awk 'NR % 400 == 7' | xargs -d '\n' rm -f
  mkdir "$work/tree/added"
  head -c 3000000 /dev/urandom >"$work/tree/added/random"
  ln "$work/tree/added/random" "$work/tree/added/linked"
  mv "$work/tree/$(ls "$work/tree" | grep -v added | head -1)" "$work/tree/moved"
  backdate "$work/tree"
}

choose_tree
entries=$(find "$work/tree" | wc -l)
echo "tree: $entries entries, $(du -sm "$work/tree" | cut -f1) MB"
"$VARVE" init "$repo"
mount_repo
mkdir -p "$mnt/laptop"

cp -a "$work/tree" "$mnt/laptop/monday.partial"
mv -T "$mnt/laptop/monday.partial" "$mnt/laptop/monday"
ok "cp -a into a partial version, sealed by mv -T"
sealed "$mnt/laptop/monday" || fail "monday is not sealed"
[ ! -e "$mnt/laptop/monday.partial" ]
[ "$(readlink "$mnt/laptop/latest")" = monday ]
diff -r --no-dereference "$work/tree" "$mnt/laptop/monday"
ok "diff -r in the same mount prints nothing"
no_rsync_difference "$work/tree/" "$mnt/laptop/monday/"
ok "rsync -aHAXnc --delete in the same mount prints nothing"
cp -a "$work/tree" "$work/monday"

edit_tree
mkdir "$mnt/laptop/tuesday"
rsync -aHX "$work/tree/" "$mnt/laptop/tuesday/"
[ "$(state_of "$mnt/laptop/tuesday")" = open ]
"$VARVE" seal "$mnt/laptop/tuesday"
sealed "$mnt/laptop/tuesday" || fail "tuesday is not sealed"
[ "$(readlink "$mnt/laptop/latest")" = tuesday ]
ok "rsync of an edited tree the naive way, sealed by its path while mounted"

mkdir "$mnt/laptop/wednesday"
cp -a "$work/tree/added" "$mnt/laptop/wednesday/"
"$VARVE" seal "$repo" laptop/wednesday
sealed "$mnt/laptop/wednesday" || fail "wednesday is not sealed"
ok "sealed by SERIES/VERSION while mounted"
mkdir "$mnt/laptop/thursday"
echo text >"$mnt/laptop/thursday/file"
[ "$(stat -c %b "$mnt/laptop/tuesday/added/random")" -gt 0 ] || fail "st_blocks is zero"
(cd "$mnt/laptop/tuesday" && find . -printf '%p %i\n' | sort) >"$work/inodes"
unmount_repo
mountpoint -q "$mnt" && fail "still mounted"
"$VARVE" seal "$repo" laptop/thursday
ok "a version that was open at the unmount is sealed without a mount"

mount_repo -o ro
(cd "$mnt/laptop/tuesday" && find . -printf '%p %i\n' | sort) | diff "$work/inodes" -
ok "inode numbers are the same after a remount"
[ "$(readlink "$mnt/laptop/latest")" = thursday ]
[ "$(cat "$mnt/laptop/latest/file")" = text ]
diff -r --no-dereference "$work/monday" "$mnt/laptop/monday"
diff -r --no-dereference "$work/tree" "$mnt/laptop/tuesday"
ok "diff -r of both versions prints nothing after a remount"
no_rsync_difference "$work/monday/" "$mnt/laptop/monday/"
no_rsync_difference "$work/tree/" "$mnt/laptop/tuesday/"
ok "rsync -aHAXnc --delete of both versions prints nothing after a remount"
same_tree --ignore holes "$work/tree" "$mnt/laptop/tuesday"
ok "attributes, links and contents are identical"
tar -C "$mnt/laptop" --format=posix -cf "$work/tar" monday
mkdir "$work/untarred"
tar -C "$work/untarred" -xpf "$work/tar"
no_rsync_difference "$work/monday/" "$work/untarred/monday/"
ok "tar out of the mount gives the same tree"
df "$mnt" >/dev/null
[ "$(stat -f -c %b "$mnt")" -gt 0 ] || fail "statfs tells of no blocks"

"$VARVE" restore "$repo" laptop/monday "$work/restored"
same_tree --ignore holes "$work/monday" "$work/restored"
ok "varve restore beside a read-only mount gives the same tree"
unmount_repo

"$VARVE" ls "$repo" | tee "$work/ls"
VARVE_REPO=$repo "$VARVE" ls --json >"$work/ls.json"
for name in monday tuesday wednesday thursday; do
  grep -q "laptop/$name" "$work/ls" || fail "ls lacks $name"
  grep -q "\"$name\"" "$work/ls.json" || fail "ls --json lacks $name"
done
[ "$("$VARVE" ls "$repo" laptop/thursday)" = file ]
ok "ls shows the versions, as text and as JSON"
"$VARVE" stats "$repo"
logical=$(stat_of "$repo" logical_bytes)
unique=$(stat_of "$repo" chunk_bytes)
[ "$logical" -gt $((unique * 17 / 10)) ] || fail "no deduplication: $logical / $unique"
ok "stats: $logical bytes in $unique unique bytes"
"$VARVE" check "$repo"
ok "check finds nothing"
