#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Holes of any origin have whole blocks, as on ext4; tar stores and extracts files with holes.
. "$(dirname "$0")/lib.sh"
which rsync bsdtar >/dev/null || skip "rsync and bsdtar are not installed"

"$VARVE" init "$repo" >/dev/null
mount_repo
mkdir "$work/tree" "$work/out"
python3 "$here/sparse.py" make "$work/tree"
mkdir -p "$mnt/s/plain"
cp --sparse=never "$work"/tree/* "$mnt/s/plain/"
"$VARVE" seal "$mnt/s/plain"
mkdir "$mnt/s/sparse"
rsync -aS --whole-file "$work/tree/" "$mnt/s/sparse/"
python3 "$here/sparse.py" blocks "$work/tree" "$mnt/s/sparse"
ok "rsync -S leaves holes of whole blocks only"
"$VARVE" seal "$mnt/s/sparse"
python3 "$here/sparse.py" blocks "$work/tree" "$mnt/s/sparse"
unique=$(getfattr --absolute-names --only-values -n user.varve.unique_bytes "$mnt/s/sparse")
[ "$unique" -eq 0 ] || fail "$unique bytes are stored again with -S"
ok "a file without a block of zeros has the same chunks with -S and without"

mkdir "$mnt/s/holes"
python3 "$here/sparse.py" holes "$mnt/s/holes" "$work/ext"
ok "holes made in any way are those of the local file system"
"$VARVE" seal "$mnt/s/holes"
python3 "$here/sparse.py" same "$mnt/s/holes" "$work/ext"
ok "a seal leaves them alone"
unmount_repo

for program in tar bsdtar python; do
  for version in plain sparse holes; do
    from=$work/tree
    [ $version != holes ] || from=$work/ext
    rm -rf "$work/out" && mkdir "$work/out"
    "$VARVE" -q restore --to-tar "$work/$version.tar" --force "$repo" "s/$version"
    case $program in
      tar) tar -C "$work/out" -xf "$work/$version.tar" ;;
      bsdtar) bsdtar -C "$work/out" -xf "$work/$version.tar" ;;
      python) (cd "$work/out" && python3 -m tarfile -e "$work/$version.tar" . >/dev/null) ;;
    esac
    python3 "$here/sparse.py" bytes "$from" "$work/out"
  done
  ok "$program unpacks the same bytes"
done

archive=$work/new.tar
"$VARVE" -q restore --to-tar "$archive" "$repo" s/holes
[ "$(stat -c %a "$archive")" = 600 ] || fail "mode $(stat -c %a "$archive")"
expect_status 1 "$VARVE" -q restore --to-tar "$archive" "$repo" s/holes
message_says "--force"
chmod 644 "$archive" && ln "$archive" "$work/other name"
echo precious >"$work/precious" && ln -s precious "$work/link"
for force in "" --force; do
  expect_status 1 "$VARVE" -q restore --to-tar "$work/link" $force "$repo" s/holes
  message_says "symbolic link"
done
[ "$(cat "$work/precious")" = precious ] || fail "a link was followed"
"$VARVE" -q restore --to-tar "$archive" --force "$repo" s/plain
[ "$(stat -c %a "$archive")" = 600 ] || fail "an old mode stayed"
cmp -s "$work/other name" "$work/holes.tar" || fail "the file under another name was overwritten"
mkfifo "$work/fifo"
cat "$work/fifo" >"$work/through" & reader=$!
"$VARVE" -q restore --to-tar "$work/fifo" "$repo" s/plain
wait $reader
cmp "$work/through" "$archive"
"$VARVE" -q restore --to-tar /dev/stdout "$repo" s/plain | cmp - "$archive"
"$VARVE" -q restore --to-tar >(cat >"$work/substituted") "$repo" s/plain
wait_until "the other process has written it" cmp -s "$work/substituted" "$archive"
ok "an archive is a new file of mode 0600, never through a link; pipes are written to"

mkdir "$work/full" && mount -t tmpfs -o size=256k none "$work/full"
expect_status 1 "$VARVE" -q restore --to-tar "$work/full/tar" "$repo" s/plain
[ ! -e "$work/full/tar" ] || fail "a part of an archive stayed"
echo old >"$work/full/tar"
expect_status 1 "$VARVE" -q restore --to-tar "$work/full/tar" --force "$repo" s/plain
[ "$(cat "$work/full/tar")" = old ] || fail "the old archive is gone"
[ "$(ls "$work/full")" = tar ] || fail "a part of an archive stayed: $(ls "$work/full")"
expect_status 1 "$VARVE" -q restore --to-tar /dev/full "$repo" s/plain
ok "what could not be written as a whole is removed, and replaces nothing"
