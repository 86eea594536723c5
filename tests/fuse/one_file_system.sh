#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `varve store -x` leaves other devices out, also subvolumes of Btrfs, and names each of them. It stores
# what a bind mount shows of the same file system.
. "$(dirname "$0")/lib.sh"

in_own_namespace || skip "needs a mount namespace of its own"
src=$work/src
"$VARVE" -q init "$repo"

# Stores the source here or in a daemon. Prints the names that were left out.
left_out() {  # VERSION OPTION…
  local version=$1
  shift
  expect_status 0 "$VARVE" store -x "$@" "$repo" "$version" "$src"
  sed -n 's/^varve: \(.*\) is another file system or subvolume.*/\1/p' "$work/stderr" | sort | tr '\n' ' '
}
files_of() {  # VERSION
  rm -rf "$work/out"
  "$VARVE" -q restore "$repo" "$1" "$work/out"
  (cd "$work/out" && find . -type f | sort | tr '\n' ' ')
}

# The source is not the root of its disk, so that a bind mount can show another part of the disk.
fill() {
  mkdir -p "$src/plain" "$src/tmpfs/below" "$src/bound" "${src%/*}/elsewhere"
  echo a >"$src/plain/file"
  echo b >"${src%/*}/elsewhere/other"
  mount -t tmpfs none "$src/tmpfs"
  mkdir "$src/tmpfs/below"
  echo c >"$src/tmpfs/below/file"
  mount --bind "${src%/*}/elsewhere" "$src/bound"
}

fill
[ "$(left_out s/1)" = "tmpfs " ] || fail "left out: $(left_out s/2)"
[ "$(files_of s/1)" = "./bound/other ./plain/file " ] || fail "$(files_of s/1)"
[ -d "$work/out/tmpfs" ] && [ -z "$(ls "$work/out/tmpfs")" ]
[ "$(left_out s/3 -q)" = "" ] || fail "-q is not quiet"
[ "$(left_out s/4 -n)" = "tmpfs " ]
expect_status 0 "$VARVE" store "$repo" s/5 "$src"
[ "$(files_of s/5)" = "./bound/other ./plain/file ./tmpfs/below/file " ] || fail "$(files_of s/5)"
ok "a mounted file system is left out and named, and a bind mount of the same one is stored"
mount_as_job
[ "$(left_out s/6)" = "tmpfs " ] || fail "$(cat "$work/stderr")"
[ "$(left_out s/7 -q)" = "" ] || fail "-q is not quiet"
unmount_repo
[ "$(files_of s/6)" = "./bound/other ./plain/file " ] || fail "$(files_of s/6)"
ok "a daemon does the same"
umount "$src/tmpfs" "$src/bound"

if ! command -v mkfs.btrfs >/dev/null; then
  skip_part "no btrfs-progs"
  exit 0
fi
mkdir "$work/disk"
truncate -s 300M "$work/image"
if ! mkfs.btrfs -q "$work/image" >/dev/null 2>&1 || ! mount -o loop "$work/image" "$work/disk" 2>"$work/stderr"; then
  skip_part "cannot mount Btrfs: $(cat "$work/stderr")"
  exit 0
fi
src=$work/disk/src
btrfs -q subvolume create "$src"
fill
btrfs -q subvolume create "$src/plain/nested"
echo d >"$src/plain/nested/file"
btrfs -q subvolume create "$src/plain/nested/deep"
btrfs -q subvolume snapshot -r "$src" "$src/snapshot"
# The directory above the source is in another subvolume, so the bind mount has another device here.
[ "$(left_out b/1)" = "bound plain/nested snapshot tmpfs " ] || fail "left out: $(left_out b/2)"
[ "$(files_of b/1)" = "./plain/file " ] || fail "$(files_of b/1)"
mkdir "$src/within"
echo e >"$src/within/file"
umount "$src/bound"
mount --bind "$src/within" "$src/bound"
[ "$(left_out b/3)" = "plain/nested snapshot tmpfs " ] || fail "left out: $(left_out b/4)"
[ "$(files_of b/3)" = "./bound/file ./plain/file ./within/file " ] || fail "$(files_of b/3)"
"$VARVE" -q store "$repo" b/5 "$src"
[ "$(files_of b/5)" = "./bound/file ./plain/file ./plain/nested/file ./snapshot/plain/file ./tmpfs/below/file ./within/file " ] || fail "$(files_of b/5)"
umount "$src/tmpfs" "$src/bound" "$work/disk"
ok "subvolumes and snapshots of Btrfs are left out and named, and without -x they are stored"
