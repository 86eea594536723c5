#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# link(2) and copy_file_range(2) put files of a sealed version into the next one without reading or
# storing their data again. So do cp -al, cp and rsync --link-dest.
. "$(dirname "$0")/lib.sh"

"$VARVE" init "$repo"
mount_as_job
mkdir "$mnt/s" "$mnt/other" "$mnt/s/old.partial" "$work/tree" "$work/tree/dir"
head -c 20M /dev/urandom >"$work/tree/big"
truncate -s 5M "$work/tree/sparse"
echo end >>"$work/tree/sparse"
for i in $(seq 50); do echo "file $i" >"$work/tree/dir/$i"; done
ln "$work/tree/big" "$work/tree/dir/hard"
ln -s big "$work/tree/link"
mkfifo "$work/tree/fifo"
setfattr -n user.colour -v red "$work/tree/dir/7"
cp -a "$work/tree/." "$mnt/s/old.partial/"
mv -T "$mnt/s/old.partial" "$mnt/s/old"
stored_before=$(stat_of "$repo" chunk_bytes)
read_bytes() { awk '/^read_bytes/ {print $2}' "/proc/$daemon/io"; }

mkdir "$mnt/s/new.partial"
drop_caches
before=$(read_bytes)
cp -al "$mnt/s/old/." "$mnt/s/new.partial/"
after=$(read_bytes)
[ $((after - before)) -lt 4000000 ] || under_sanitizer ||
  fail "linking read $((after - before)) bytes"
# cp creates the top directory itself; everything else must be equal.
same_tree --ignore mtime "$work/tree" "$mnt/s/new.partial"
[ "$(stat -c %i "$mnt/s/new.partial/big")" = "$(stat -c %i "$mnt/s/new.partial/dir/hard")" ]
echo changed >"$mnt/s/new.partial/dir/1"
echo more >>"$mnt/s/new.partial/big"
[ "$(cat "$mnt/s/old/dir/1")" = "file 1" ]
cmp "$mnt/s/old/big" "$work/tree/big"
ok "link(2) makes files of their own"

cp --reflink=auto "$mnt/s/old/big" "$mnt/s/new.partial/copy"
cmp "$work/tree/big" "$mnt/s/new.partial/copy"
cp "$mnt/s/new.partial/copy" "$mnt/s/new.partial/copy of copy"
cmp "$work/tree/big" "$mnt/s/new.partial/copy of copy"
ok "copies inside the mount are the same"

mkdir "$mnt/other/v.partial"
! ln "$mnt/s/old/big" "$mnt/other/v.partial/big" 2>"$work/stderr" || fail "a link across series"
grep -q "Invalid cross-device link" "$work/stderr" || fail "$(cat "$work/stderr")"
! ln "$mnt/s/new.partial/copy" "$mnt/s/old/x" 2>"$work/stderr" || fail "a link into a sealed version"
grep -q "Read-only file system" "$work/stderr" || fail "$(cat "$work/stderr")"
cp "$mnt/s/old/dir/7" "$mnt/other/v.partial/7"
cmp "$work/tree/dir/7" "$mnt/other/v.partial/7"
ok "between series bytes are copied, and a sealed version takes no links"

mv -T "$mnt/s/new.partial" "$mnt/s/new"
mkdir "$mnt/s/third.partial"
backdate "$work/tree"
rsync -aHAX --link-dest="$mnt/s/old/" "$work/tree/" "$mnt/s/third.partial/"
mv -T "$mnt/s/third.partial" "$mnt/s/third"
no_rsync_difference "$work/tree/" "$mnt/s/third/"
unmount_repo
wait "$daemon"
grown=$(($(stat_of "$repo" chunk_bytes) - stored_before))
[ $grown -lt 1000000 ] || fail "the repository grew by $grown bytes"
"$VARVE" check "$repo" >/dev/null
mount_repo -o ro
cmp "$work/tree/big" "$mnt/s/new/copy of copy"
no_rsync_difference "$work/tree/" "$mnt/s/third/"
unmount_repo
ok "nothing was stored twice"
