#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The content of a backup gives no user any privileges. Varve keeps set-user-id bits, file
# capabilities and device nodes, but they have no effect in a mount unless requested.
. "$(dirname "$0")/lib.sh"

chmod 755 "$work"
mkdir "$work/tree"
cp /usr/bin/id "$work/tree/id"
cp /usr/bin/cat "$work/tree/cat"
chmod 6755 "$work/tree/id"
# CAP_CHOWN, permitted and effective (linux/capability.h).
python3 -c '
import os, struct, sys
os.setxattr(sys.argv[1], "security.capability", struct.pack("<5I", 0x02000001, 1, 0, 0, 0))
' "$work/tree/cat"
mknod -m 666 "$work/tree/null" c 1 3
mknod -m 666 "$work/tree/disk" b 7 0

as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
effective_of() { as_nobody "$1/cat" /proc/self/status | awk '/^CapEff/ { print $2 }'; }
gains() {  # DIR: prints what an unprivileged user gains from the files there
  local got=
  [ "$(as_nobody "$1/id" -u)" = 65534 ] || got+=" user"
  [ "$(as_nobody "$1/id" -g)" = 65534 ] || got+=" group"
  [ "$(effective_of "$1")" = 0000000000000000 ] || got+=" capability"
  # Not even root may open a device there.
  ! head -c 0 "$1/null" 2>/dev/null || got+=" device"
  echo "$got"
}
option_of() { awk -v at="$mnt" '$2 == at { print "," $4 "," }' /proc/mounts; }
has_both() {
  case $(option_of) in *,nosuid,*) ;; *) return 1 ;; esac
  case $(option_of) in *,nodev,*) ;; *) return 1 ;; esac
}

# Proves that the checks below can fail.
[ "$(gains "$work/tree")" = " user group capability device" ] ||
  skip "the disk of $work gives no privileges either"

"$VARVE" init "$repo"
mount_repo -o allow_other
mkdir -p "$mnt/s/one.partial"
has_both || fail "the mount has the options $(option_of)"
cp -a "$work/tree/." "$mnt/s/one.partial/"
[ -z "$(gains "$mnt/s/one.partial")" ] || fail "an open version gives$(gains "$mnt/s/one.partial")"
mv -T "$mnt/s/one.partial" "$mnt/s/one"
[ -z "$(gains "$mnt/s/one")" ] || fail "a sealed version gives$(gains "$mnt/s/one")"
expect_status 1 head -c 0 "$mnt/s/one/null"
message_says "permission denied"
expect_status 1 head -c 0 "$mnt/s/one/disk"
same_tree "$work/tree" "$mnt/s/one"
unmount_repo
ok "set-user-id files, capabilities and devices are kept, and do not work in a mount"

ln -s "$VARVE" "$work/mount.fuse.varve"
gives_nothing_with() {  # COMMAND…: mounts
  "$@"
  has_both || fail "$*: the mount has the options $(option_of)"
  [ -z "$(gains "$mnt/s/one")" ] || fail "$*: gives$(gains "$mnt/s/one")"
  unmount_repo
}
gives_nothing_with mount_repo -o ro,allow_other
gives_nothing_with mount_repo -o allow_other,suid,dev,nosuid,nodev
gives_nothing_with "$work/mount.fuse.varve" "$repo" "$mnt" -o rw,allow_other
gives_nothing_with "$work/mount.fuse.varve" "$repo" "$mnt" -o ro,allow_other,user,nofail
ok "nor in a read-only one, nor one by mount(8)'s helper, nor where the last option forbids it"

mount_repo -o allow_other,suid,dev
[ "$(gains "$mnt/s/one")" = " user group capability device" ] ||
  fail "with suid and dev it gives only$(gains "$mnt/s/one")"
unmount_repo
"$VARVE" restore "$repo" s/one "$work/restored"
[ "$(gains "$work/restored")" = " user group capability device" ] || fail "a restore lost some"
ok "they work where suid and dev are given, and in what is restored"
