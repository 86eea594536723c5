#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A path names the version that it shows and no other. This holds for a mount that another user made
# or that only claims to be Varve's, for a mount of a part, and for any name in the mount table.
. "$(dirname "$0")/lib.sh"

chmod 711 "$work"
user=65534
forge() { python3 "$here/forged_mount.py" "$@" >"$work/forged.log" 2>&1 & }
versions() { "$VARVE" ls "$repo" s | awk 'NR > 1 { print $1 }' | tr '\n' ' '; }
in_mount_table() { grep -qF " $1 " /proc/self/mountinfo; }
has_all() { [ "$("$VARVE" ls --json "$repo" s | wc -l)" = 3 ]; }

"$VARVE" init "$repo" >/dev/null
mount_repo
mkdir -p "$mnt/s"
for version in one two three; do
  mkdir "$mnt/s/$version"
  echo $version >"$mnt/s/$version/file"
  "$VARVE" seal "$mnt/s/$version" >/dev/null
done
unmount_repo
has_all

# An ordinary user's mount without access for others, which names root's repository.
mkdir "$work/theirs"
chown $user "$work/theirs"
forge "$work/theirs" "$repo" 1 $user
wait_until "the forged mount appears" in_mount_table "$work/theirs"
refused() {  # WORD COMMAND…: fails with status 1 and deletes nothing
  local word=$1
  shift
  expect_status 1 timeout 60 "$VARVE" "$@"
  message_says "$word"
  has_all || fail "it did something: varve $*"
}
all_refused() {  # WORD MOUNT: every command that takes a path
  refused "$1" rm "$2/s/one"
  refused "$1" lock --for 1d "$2/s/one"
  refused "$1" prune --keep-last 1 "$2/s"
  refused "$1" seal "$2/s/one"
}
for how in alone mounted; do
  [ $how = alone ] || mount_repo
  all_refused "user $user" "$work/theirs"
  refused "user $user" stat "$work/theirs/s/one"
  refused "user $user.*to unmount it, .*as that user, or umount" umount "$work/theirs"
  [ $how = alone ] || unmount_repo
done
umount "$work/theirs"
ok "a mount that another user made is not believed, and nothing behind its claim is touched"

# A mount of root, such as root makes by running a user's program.
mkdir "$work/ours"
forge "$work/ours" "$repo" 0 0
wait_until "the forged mount appears" in_mount_table "$work/ours"
for how in alone mounted; do
  [ $how = alone ] || mount_repo
  all_refused "does not know the mount" "$work/ours"
  [ $how = alone ] || unmount_repo
done
umount "$work/ours"
ok "nor one that the daemon of the repository does not know"

# Other users may see root's mount, but its daemon does not obey them.
cp "$VARVE" "$work/varve"
as_other() { expect_status 1 setpriv --reuid=$user --regid=$user --clear-groups env HOME=/none XDG_STATE_HOME=/none "$work/varve" "$@"; }
mount_repo -o allow_other
for mode in 700 755; do
  chmod $mode "$repo"
  for line in "rm $mnt/s/one" "rm -n $mnt/s/one" "seal $mnt/s/one" "lock --for 1d $mnt/s/one" "mv $mnt/s/one other" \
    "clone $mnt/s/one $mnt/s/x" "open $mnt/s/x" "prune --keep-last 1 $mnt/s" "arrange $mnt" "umount $mnt"; do
    # shellcheck disable=SC2086
    as_other $line
    message_says 'permission denied: user 0 mounted .*, and only that user and root can'
  done
  for line in "ls $repo" "rm $repo s/one" "umount $repo"; do
    # shellcheck disable=SC2086
    as_other $line
    message_says 'permission denied'
  done
done
chmod 755 "$repo"
has_all
unmount_repo
ok "another user is told that a change is a matter of permission"

"$VARVE" mount -o ro "$repo" "$mnt"
"$VARVE" stat "$mnt/s/one" >/dev/null
refused "read-only" rm "$mnt/s/one"
unmount_repo
ok "a read-only mount names versions to look at, not to delete"

# x/y and bound/x/y name different versions.
mount_repo
mkdir -p "$mnt/x/y" "$mnt/s/x.partial/y"
echo y >"$mnt/x/y/file"
"$VARVE" seal "$mnt/x/y" >/dev/null
mv -T "$mnt/s/x.partial" "$mnt/s/x"
mkdir "$work/bound"
mount --bind "$mnt/s" "$work/bound"
expect_status 2 "$VARVE" rm "$work/bound/x/y"
[ "$(cat "$mnt/x/y/file")" = y ] || fail "another version than the named one is gone"
"$VARVE" rm "$work/bound/x" >/dev/null
[ ! -e "$mnt/s/x" ]
umount "$work/bound"
unmount_repo
mount_repo -o series=s
"$VARVE" stat "$mnt/one" | grep -q s/one
mkdir "$mnt/four"
"$VARVE" seal "$mnt/four" >/dev/null
"$VARVE" rm "$mnt/four" >/dev/null
unmount_repo
has_all
ok "a path in a mount of a part, or a part that is bound elsewhere, names the whole path"

mount_repo -o fsname=the,subtype=backup
sed -n "s|.* $mnt .* - ||p" /proc/self/mountinfo | cut -d' ' -f1,2 | grep -qx 'fuse.backup the'
mkdir "$mnt/s/four"
"$VARVE" seal "$mnt/s/four" >/dev/null
"$VARVE" rm "$mnt/s/four" >/dev/null
has_all
unmount_repo
mount_repo -o "fsname=$work/bound"
"$VARVE" stat "$mnt/s/one" >/dev/null
unmount_repo
ok "fsname= and subtype= change what the mount table shows, and nothing else"

mount_repo -o fsname=varve-of-root
umount varve-of-root
! mountpoint -q "$mnt" || fail "umount left the mount"
mount_repo
"$VARVE" umount "$repo"
! mountpoint -q "$mnt" || fail "varve umount REPO left the mount"
mkdir "$work/again"
mount_repo -o ro
"$VARVE" mount -o ro "$repo" "$work/again"
expect_status 1 "$VARVE" umount "$repo"
message_says "more than once.*$work/again"
"$VARVE" umount "$work/again"
"$VARVE" umount "$repo"
expect_status 1 "$VARVE" umount "$repo"
message_says "not mounted"
ok "umount takes the name that fsname= gave, varve umount the repository's path"
