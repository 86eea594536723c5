#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# varve-rm, the command that backup programs call in place of rm.
limit_s=60
. "$(dirname "$0")/../lib.sh"
rm_=$(realpath "$here/../../mount-helpers/varve-rm")

"$VARVE" init "$repo" 2>/dev/null
mount_repo
mkdir "$mnt/s"
for name in one two 'three four' -five six; do
  mkdir "$mnt/s/$name.partial"
  echo text >"$mnt/s/$name.partial/file"
  mv -T -- "$mnt/s/$name.partial" "$mnt/s/$name"
done
mkdir "$work/plain" "$work/-dash"
touch "$work/plain/file" "$work/file"
ln -s "$mnt/s/two" "$work/link"
export VARVE_REPO=$repo
"$rm_" -rf "$mnt/s/one" "$work/plain" "$mnt/s/three four/" "$work/link" "$work/none"
[ ! -e "$work/plain" ] && [ ! -L "$work/link" ] && [ ! -e "$mnt/s/one" ]
(cd "$mnt/s" && "$rm_" -r -f -- -five)
[ "$("$VARVE" ls "$repo" s)" = $'s/two\ns/six' ] || fail "$("$VARVE" ls "$repo" s)"
# A relative path is no version of VARVE_REPO.
mkdir -p "$work/s/two"
(cd "$work" && "$rm_" -rf s/two)
[ ! -e "$work/s/two" ] && [ -e "$mnt/s/two/file" ]
ok "versions go by varve rm, the rest by rm, whatever the names and VARVE_REPO are"

expect_status 1 "$rm_" -rf "$mnt/s/two/file"
expect_status 1 "$rm_" "$mnt/s/two"
message_says 'is a directory'
expect_status 1 "$rm_" "$work/none"
"$VARVE" lock --until 2099-01-01 "$repo" s/two 2>/dev/null
expect_status 1 "$rm_" -rf "$mnt/s/two" "$work/file" "$mnt/s/six"
message_says 'locked'
[ ! -e "$work/file" ] && [ ! -e "$mnt/s/six" ] && [ -e "$mnt/s/two/file" ]
expect_status 2 "$rm_" -rf
expect_status 2 "$rm_" -rf '-x;y' "$work"
unmount_repo
ok "errors end with status 1, and the other paths go"
