#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An open version, mounted as a root of its own for all users, answers as a local file system
# does: errno, owners, modes, ACLs and times of some thousand calls, side by side.
limit_s=400
. "$(dirname "$0")/lib.sh"

"$VARVE" init "$repo"
mount_repo
mkdir "$mnt/s" "$mnt/s/v.partial"
unmount_repo

# The reference is this folder's own file system, or ext4 if a loop device is available.
reference=$work/reference
mkdir "$reference"
truncate -s 64M "$work/reference.img"
if mkfs.ext4 -q -b 4096 -I 256 "$work/reference.img" 2>/dev/null; then
  mount -o loop "$work/reference.img" "$reference" 2>/dev/null || true
fi
mkdir "$reference/root"

mount_repo -o series=s,version=v.partial,allow_other,suid,dev
chmod 755 "$work" "$mnt"
mkdir "$mnt/root"
python3 "$here/posix.py" "$mnt/root" "$reference/root" "$@" || fail "the answers differ"
ok "an open version answers as $(stat -f -c %T "$reference") does"

cp -a "$mnt/root" "$work/copy"
unmount_repo
mount_repo -o series=s,version=v.partial
same_tree --ignore holes "$work/copy" "$mnt/root"
"$VARVE" seal "$repo" s/v.partial
sealed "$mnt" || fail "the root is not sealed"
same_tree --ignore holes "$work/copy" "$mnt/root"
expect_status 1 touch "$mnt/root"
unmount_repo
ok "what it left survives a remount and is sealed in place"
