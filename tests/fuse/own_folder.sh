#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `varve store` of a tree that contains the repository.
limit_s=60
. "$(dirname "$0")/lib.sh"

mkdir -p "$work/home/backup" "$work/home/user" "$work/home/mnt"
echo content >"$work/home/user/file"
repo=$work/home/backup/repo
"$VARVE" init "$repo" >/dev/null
"$VARVE" -q config "$repo" guard=off  # Its versions are of different trees.
expect_status 0 "$VARVE" -q store "$repo" s/one "$work/home"
message_says 'backup/repo is this repository'
"$VARVE" -q restore "$repo" s/one "$work/out"
[ "$(cat "$work/out/user/file")" = content ] && [ -d "$work/out/backup/repo" ]
[ -z "$(ls -A "$work/out/backup/repo")" ] || fail "the repository stored itself"
ok "the repository is named and stored as an empty directory"

mnt=$work/home/mnt
mount_repo -o ro
expect_status 0 "$VARVE" -q store "$repo" s/two "$work/home"
message_says 'backup/repo is this repository'
message_says 'mnt is this repository'
unmount_repo
"$VARVE" -q restore "$repo" s/two "$work/out2"
[ "$(cat "$work/out2/user/file")" = content ] && [ -z "$(ls -A "$work/out2/mnt")" ]
ok "so is a place where it is mounted"

mkdir "$work/seen" && mount --bind "$work/home/backup" "$work/seen"
expect_status 0 "$VARVE" -q store "$repo" s/three "$work/seen"
message_says 'repo is this repository'
for source in "$repo" "$repo/series" "$work/seen/../home/backup/repo"; do
  expect_status 1 "$VARVE" -q store "$repo" s/four "$source"
  message_says 'in the repository'
done
"$VARVE" ls "$repo" s | grep -q four && fail "a refused source has opened a version"
"$VARVE" -q store "$repo" s/four "$work/home/user" >"$work/stdout" 2>"$work/stderr"
[ ! -s "$work/stderr" ] || fail "a warning without a cause: $(cat "$work/stderr")"
ok "also under another name; a source inside the repository is refused"

# Bind mounts hide the folders above.
mkdir -p "$work/behind" "$work/behind2" "$work/plain/inner"
mount --bind "$repo/series" "$work/behind"
mount --bind "$work/behind/00000001" "$work/behind2"
for place in "$work/behind/new" "$work/behind2/new/repo" "$work/behind"; do
  expect_status 1 "$VARVE" -q init "$place"
  message_says "is in the repository $repo"
done
expect_status 1 "$VARVE" -q restore "$repo" s/four "$work/behind2/tree"
message_says 'is a folder of the repository, mounted there'
mount --bind "$work/plain/inner" "$work/behind"
"$VARVE" -q init "$work/behind/new"
ok "no repository is made, and no version restored, behind a bind mount of an inner folder of a repository"
