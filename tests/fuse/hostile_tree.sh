#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Stores everything that a file system allows, by cp and by rsync, and seals it. The open version,
# the sealed one, a remount and a restore must return it unchanged.
limit_s=100
. "$(dirname "$0")/lib.sh"

python3 "$here/hostile_tree.py" "$work/tree" huge
"$VARVE" init "$repo"
mount_repo
mkdir "$mnt/s"

cp -a "$work/tree" "$mnt/s/by-cp.partial"
same_tree "$work/tree" "$mnt/s/by-cp.partial"
ok "an open version shows all that cp -a wrote"
mv -T "$mnt/s/by-cp.partial" "$mnt/s/by-cp"
same_tree "$work/tree" "$mnt/s/by-cp"
ok "the sealed version in the same mount is identical"

rm "$work/tree/holes/huge"
# rsync compares the times of directories by seconds only, so the last change must be older.
touch -d "1 hour ago" "$work/tree/holes"
mkdir "$mnt/s/by-rsync.partial"
rsync -aHAXS "$work/tree/" "$mnt/s/by-rsync.partial/"
same_tree --ignore holes "$work/tree" "$mnt/s/by-rsync.partial"
ok "an open version shows all that rsync -aHAXS wrote"
mv -T "$mnt/s/by-rsync.partial" "$mnt/s/by-rsync"
for name in start middle end only; do
  whole=$(stat -c %s "$mnt/s/by-rsync/holes/$name")
  blocks=$(stat -c %b "$mnt/s/by-rsync/holes/$name")
  [ $((blocks * 512)) -lt $((whole / 2)) ] || fail "$name is not sparse: $blocks of $whole"
done
ok "files that rsync -S wrote are sparse"

unmount_repo
mount_repo -o ro
same_tree --ignore holes "$work/tree" "$mnt/s/by-rsync"
no_rsync_difference "$work/tree/" "$mnt/s/by-rsync/"
ok "after a remount rsync -aHAXnc sees no difference"
python3 "$here/hostile_tree.py" "$work/again" huge
same_tree --ignore mtime "$work/again" "$mnt/s/by-cp"
ok "after a remount the version of cp is identical, a hole of a tebibyte included"

"$VARVE" restore "$repo" s/by-cp "$work/restored"
same_tree "$mnt/s/by-cp" "$work/restored"
ok "varve restore gives the same tree, holes included"
cp -a "$mnt/s/by-rsync" "$work/copied"
same_tree --ignore holes "$work/tree" "$work/copied"
ok "cp -a out of the mount gives the same tree"
unmount_repo

"$VARVE" store "$repo" bulk/one "$work/again"
"$VARVE" restore "$repo" bulk/one "$work/bulk"
same_tree "$work/again" "$work/bulk"
ok "varve store and restore keep the tree without a mount"
"$VARVE" check "$repo"
ok "check finds nothing"
