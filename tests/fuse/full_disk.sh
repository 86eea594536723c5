#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The disk fills up in the middle of a copy: the copy gets ENOSPC, and no sealed version is damaged.
# When there is space again, the same partial version continues.
limit_s=100
. "$(dirname "$0")/lib.sh"

repo_on_disk 260
mkdir "$work/one" "$work/two"
for n in 1 2 3 4; do head -c 8000000 /dev/urandom >"$work/one/$n"; done
for n in 1 2 3 4 5 6 7 8 9; do head -c 9000000 /dev/urandom >"$work/two/$n"; done
cp "$work/one/1" "$work/two/known"
backdate "$work/two"

"$VARVE" init --compression none "$repo"
mount_repo
mkdir "$mnt/s"
cp -a "$work/one" "$mnt/s/one.partial"
mv -T "$mnt/s/one.partial" "$mnt/s/one"
available=$(df --output=avail -B1M "$work/disk" | tail -1)
fallocate -l $((available - 45))M "$work/disk/ballast"

v=$mnt/s/two.partial
mkdir "$v"
copied=0
cp -a "$work/two/." "$v/" 2>"$work/stderr" || copied=$?
[ $copied -ne 0 ] || { sync "$v"/* 2>"$work/stderr" && fail "90 MB were taken on a full disk"; }
grep -q 'No space left' "$work/stderr" || fail "not ENOSPC: $(head -3 "$work/stderr")"
ok "the writer gets ENOSPC: $(head -1 "$work/stderr")"
diff -r "$work/one" "$mnt/s/one"
ok "the sealed version is readable in the same mount"
ls -l "$v" >/dev/null
[ -e "$v" ] || fail "the partial is gone"

rm "$work/disk/ballast"
rsync -aHX "$work/two/" "$v/"
no_rsync_difference "$work/two/" "$v/"
mv -T "$v" "$mnt/s/two"
diff -r "$work/two" "$mnt/s/two"
ok "after space was freed the partial goes on, and is sealed"
unmount_repo

# The disk is full again when the daemon ends. This must lose nothing, either.
available=$(df --output=avail -B1M "$work/disk" | tail -1)
fallocate -l $((available - 14))M "$work/disk/ballast"
mount_repo
mkdir "$mnt/s/three.partial"
for n in 1 2 3; do head -c 9000000 /dev/urandom >"$mnt/s/three.partial/$n" || true; done 2>/dev/null
unmount_repo || true
mountpoint -q "$mnt" && fail "a full disk keeps the mount from being unmounted"
"$VARVE" ls "$repo" >/dev/null
mount_repo -o ro
diff -r "$work/one" "$mnt/s/one"
diff -r "$work/two" "$mnt/s/two"
ok "a repository on a full disk can be unmounted, mounted and read"
unmount_repo
rm "$work/disk/ballast"
mount_repo
head -c 9000000 /dev/urandom >"$work/three"
cp "$work/three" "$mnt/s/three.partial/again"
mv -T "$mnt/s/three.partial" "$mnt/s/three"
cmp "$work/three" "$mnt/s/three/again"
unmount_repo
"$VARVE" check --read-data "$repo"
ok "check finds nothing"
