#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A series, or one version of it, as the root of a mount.
. "$(dirname "$0")/lib.sh"

"$VARVE" init "$repo"
mount_repo
mkdir "$mnt/s" "$mnt/other" "$mnt/s/first" "$mnt/s/first/dir"
echo one >"$mnt/s/first/dir/file"
"$VARVE" seal "$mnt/s/first"
mkdir "$mnt/s/second.partial"
unmount_repo

for wrong in version=first series=s,version=; do
  expect_status 2 mount_repo -o "$wrong"
done
message_says "give a name"
expect_status 1 mount_repo -o series=none
message_says 'no series "none"'
expect_status 1 mount_repo -o series=s,version=none
message_says 'no version "s/none"'
expect_status 2 mount_repo -o version=first
message_says 'series='
expect_status 1 mount_repo -o series=other,version=latest
message_says 'no sealed version'
expect_status 1 mount_repo -o ro,series=s,version=second.partial
message_says 'that is sealed'
! mountpoint -q "$mnt" || fail "something is mounted"
ok "what cannot be the root is named, and nothing is mounted"

mount_repo -o series=s
[ "$(ls "$mnt" | tr '\n' ' ')" = "first latest second.partial " ]
[ "$(cat "$mnt/latest/dir/file")" = one ]
echo two >"$mnt/second.partial/file"
mv -T "$mnt/second.partial" "$mnt/second"
sealed "$mnt/second"
[ "$(cat "$mnt/latest/file")" = two ]
mkdir "$mnt/third"
echo three >"$mnt/third/file"
"$VARVE" seal "$mnt/third"
[ "$(readlink "$mnt/latest")" = third ]
[ "$(cat "$mnt/third/file")" = three ]
mkdir "$mnt/fourth.partial"
unmount_repo
ok "a series as the root: versions are opened, sealed and read"

mount_repo -o series=s,version=fourth.partial
[ "$(state_of "$mnt")" = open ]
mkdir "$mnt/dir"
echo four >"$mnt/dir/file"
exec 7<"$mnt/dir/file"
( cd "$mnt/dir" && ln file link && mv link moved )
[ "$(stat -c %h "$mnt/dir/file")" = 2 ]
unmounted=0; "$VARVE" umount "$mnt" 2>/dev/null || unmounted=$?
[ $unmounted -ne 0 ] || fail "unmounted although a file is open"
"$VARVE" seal "$mnt"
sealed "$mnt"
expect_status 1 touch "$mnt/new"
expect_status 1 rm "$mnt/dir/file"
[ "$(cat <&7)" = four ] || fail "the open file is lost"
exec 7<&-
[ "$(cat "$mnt/dir/moved")" = four ]
unmount_repo
ok "an open version as the root becomes read-only where it is"

for version in fourth latest; do
  mount_repo -o "ro,series=s,version=$version"
  [ "$(cat "$mnt/dir/file")" = four ]
  [ "$(stat -c %F "$mnt")" = directory ]
  expect_status 1 touch "$mnt/new"
  unmount_repo
done
ok "a sealed version as the root"
