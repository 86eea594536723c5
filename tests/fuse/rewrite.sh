#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs write an open version in every way that POSIX allows. The seal keeps the result.
limit_s=150
. "$(dirname "$0")/lib.sh"

"$VARVE" init "$repo"
mount_repo
mkdir "$mnt/s" "$mnt/s/v.partial" "$work/plain"
v=$mnt/s/v.partial

python3 "$here/rewrite.py" "$v/special"
for seed in 1 2 3; do
  mkdir "$v/random-$seed" "$work/plain/random-$seed"
  VARVE_TEST_SEED=$((seed + ${VARVE_TEST_SEED:-0})) python3 "$here/random_ops.py" 2500 \
    "$work/plain/random-$seed" "$v/random-$seed"
  same_tree --ignore holes "$work/plain/random-$seed" "$v/random-$seed"
done
ok "after random operations the trees are the same"

cp -a /usr/include/linux "$work/source"
rsync -aHX "$work/source/" "$v/synced/"
find "$work/source" -name '*.h' | sort | awk 'NR % 10 == 0' | while read -r file; do
  echo "/* changed */" >>"$file"
done
mv "$work/source/usb" "$work/source/moved"
backdate "$work/source"
rsync -aHX --delete "$work/source/" "$v/synced/"
no_rsync_difference "$work/source/" "$v/synced/"
ok "a second run of rsync into the open version (temporary files, renames, --delete)"
find "$work/source" -name '*.h' | sort | awk 'NR % 10 == 5' | while read -r file; do
  sed -i '1i // in front' "$file"
done
backdate "$work/source"
rsync -aHX --inplace --no-whole-file "$work/source/" "$v/synced/"
no_rsync_difference "$work/source/" "$v/synced/"
ok "a run of rsync --inplace"

head -c 5000000 /dev/urandom >"$work/plain/image"
cp "$work/plain/image" "$v/image"
for target in "$work/plain/image" "$v/image"; do
  head -c 300000 /dev/zero | tr '\0' m | dd of="$target" bs=1000 seek=1234 count=300 iflag=fullblock conv=notrunc status=none
  dd if="$work/source/fs.h" of="$target" bs=7 seek=100 conv=notrunc status=none
  echo end >>"$target"
  chmod 640 "$target"
  touch -d '2001-02-03 04:05:06.789' "$target"
done
cmp "$work/plain/image" "$v/image"
ok "dd conv=notrunc into the middle, twice, and an append"
tar -C /usr/include --format=posix -cf - asm-generic | tar -C "$v" -xpf -
no_rsync_difference /usr/include/asm-generic/ "$v/asm-generic/"
ok "tar into the open version"

cp -a "$v" "$work/before"
unmount_repo
mount_repo
same_tree --ignore holes,mtime "$work/before" "$v"
ok "a remount leaves the open version as it was"
echo "after the remount" >>"$v/image"
echo "after the remount" >>"$work/plain/image"
touch -d '2001-02-03 04:05:06.789' "$v/image" "$work/plain/image"
mv -T "$v" "$mnt/s/v"
for seed in 1 2 3; do
  same_tree --ignore holes "$work/plain/random-$seed" "$mnt/s/v/random-$seed"
done
same_tree "$work/plain/image" "$mnt/s/v/image"
no_rsync_difference "$work/source/" "$mnt/s/v/synced/"
[ "$(stat -c %b "$mnt/s/v/special/sparse")" -lt 2000 ] || fail "holes take blocks"
ok "sealing keeps all of it, holes too"
unmount_repo
mount_repo -o ro
for seed in 1 2 3; do
  same_tree --ignore holes "$work/plain/random-$seed" "$mnt/s/v/random-$seed"
done
diff -r "$work/before/special" "$mnt/s/v/special"
ok "and a remount shows it"
unmount_repo
"$VARVE" check --read-data "$repo"
ok "check finds nothing"
