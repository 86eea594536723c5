#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# mount -o remount, and file handles.
limit_s=60
. "$(dirname "$0")/lib.sh"

"$VARVE" init "$repo" >/dev/null
mkdir "$work/sbin" && ln -s "$VARVE" "$work/sbin/mount.fuse.varve"
# Calls the helper like mount(8), which finds helpers in /sbin only.
remount() { "$work/sbin/mount.fuse.varve" "$repo" "$mnt" -o "remount,$1"; }
has() { awk -v at="$mnt" '$5 == at { print $6 }' /proc/self/mountinfo | tr , '\n' | grep -qx "$1"; }

mount_repo -o nosuid,nodev,noexec
mkdir -p "$mnt/s/v.partial"
exec 9>"$mnt/s/v.partial/file"
expect_status 1 remount ro
message_says 'open for writing'
has rw || fail "read-only all the same"
exec 9>&-
remount ro
has ro && has nosuid && has nodev && has noexec || fail "$(grep "$mnt" /proc/self/mountinfo)"
expect_status 1 touch "$mnt/s/v.partial/more"
message_says 'read-only'
remount rw,exec
has rw && has nosuid && has nodev || fail "$(grep "$mnt" /proc/self/mountinfo)"
has noexec && fail "noexec stayed"
touch "$mnt/s/v.partial/more"
expect_status 1 "$work/sbin/mount.fuse.varve" "$repo" "$work" -o remount,ro
message_says 'not inside a Varve mount'
rm "$mnt/s/v.partial/file" "$mnt/s/v.partial/more"
ok "remount changes ro, rw and the like, and keeps what is not named"

# A mount namespace of its own keeps the machine's /sbin unchanged.
mkdir "$work/upper" "$work/index"
as_helper() {
  # shellcheck disable=SC2016
  unshare -m bash -euc '
    sbin=$(realpath /sbin)
    mount -t overlay -o "lowerdir=$sbin,upperdir=$1/upper,workdir=$1/index" none "$sbin" || exit 77
    ln -sf "$VARVE" "$sbin/mount.fuse.varve"  # The machine may have one.
    has() { awk -v at="$2" "\$5 == at { print \$6 }" /proc/self/mountinfo | tr , "\n" | grep -qx "$1"; }
    mount -o remount,ro "$2"
    has ro "$2" && has nodev "$2"
    mount -o remount,rw "$2"
    has rw "$2"' - "$work" "$mnt"
}
if unshare -m true 2>/dev/null; then
  status=0
  as_helper 2>"$work/stderr" || status=$?
  case $status in
  0) ok "so does mount(8)" ;;
  77) skip_part "mount(8): nothing can be mounted over /sbin here: $(tail -n 1 "$work/stderr")" ;;
  *) fail "mount(8): $status $(cat "$work/stderr")" ;;
  esac
else
  skip_part "mount(8): a private mount namespace cannot be made here"
fi

python3 "$here/handles.py" "$mnt" make "$work/handles"
python3 "$here/handles.py" "$mnt" use "$work/handles"
ok "file handles work while the mount lives, with nothing in the kernel's caches"
unmount_repo

mount_repo
python3 "$here/handles.py" "$mnt" use "$work/handles"
ok "they work in the next mount, of sealed versions and of the open one"
python3 "$here/handles.py" "$mnt" forge "$work/handles"
ok "forged ones are refused with ESTALE"
unmount_repo

mount_repo -o ro
python3 "$here/handles.py" "$mnt" use "$work/handles" sealed
expect_status 1 remount rw
message_says 'mounted read-only'
unmount_repo
ok "they work in a read-only mount, which remount does not make writable"

"$VARVE" mount -o ro,series=s,version=sealed "$repo" "$mnt"
python3 "$here/handles.py" "$mnt" inside "$work/handles"
unmount_repo
ok "in the mount of one version they lead to nothing else"

"$VARVE" rm "$repo" s/sealed >/dev/null
mount_repo
python3 "$here/handles.py" "$mnt" gone "$work/handles"
unmount_repo
ok "those of a deleted version are stale"
