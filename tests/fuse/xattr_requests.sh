#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A mount of one sealed version without extended attributes answers no requests for them. Nothing
# that has attributes loses them, and the commands find such a mount.
. "$(dirname "$0")/lib.sh"

requests() {  # OPERATION...: prints the number of the kernel's requests so far
  "$VARVE" stats "$repo" --live --json | python3 -c '
import json, sys
total = 0
for line in sys.stdin:
    sample = json.loads(line)
    if sample.get("name") == "varve_fuse_request_seconds":
        if sample["labels"]["operation"] in sys.argv[1:]:
            total += sample["count"]
print(total)' "$@"
}

mkdir -p "$work/tree/dir"
for n in $(seq 100); do echo "$n" >"$work/tree/dir/$n"; done
"$VARVE" init "$repo"
"$VARVE" store "$repo" s/plain "$work/tree"
setfattr -n user.note -v kept "$work/tree/dir/50"
"$VARVE" store "$repo" s/noted "$work/tree"
setfattr -x user.note "$work/tree/dir/50"
setfacl -m u:12345:r "$work/tree/dir/60"
"$VARVE" store "$repo" s/acl "$work/tree"

look() {  # lists and copies everything in the mount
  ls -lR "$1" >/dev/null
  rm -rf "$work/copy"
  cp -a "$1" "$work/copy"
}

mount_repo -o series=s,version=plain
look "$mnt"
asked=$(requests getxattr listxattr)
[ "$asked" -le 2 ] || fail "$asked requests for attributes of a version that has none"
[ "$("$VARVE" stat "$mnt" | head -1)" = "$("$VARVE" stat "$repo" s/plain | head -1)" ]
unmount_repo
ok "a version without attributes: $asked requests for 101 entries"

mount_repo -o series=s,version=plain,xattr=on
look "$mnt"
asked=$(requests getxattr listxattr)
[ "$asked" -ge 100 ] || fail "xattr=on: only $asked requests"
[ "$(state_of "$mnt")" = sealed ]
unmount_repo
ok "xattr=on answers each of $asked requests"

mount_repo -o series=s,version=noted
look "$mnt"
[ "$(getfattr --only-values -n user.note "$work/copy/dir/50")" = kept ] || fail "the note is lost"
unmount_repo
mount_repo -o ro,series=s,version=acl
look "$mnt"
getfacl -nc "$work/copy/dir/60" | grep -q '^user:12345:r--' || fail "the ACL is lost"
unmount_repo
ok "one attribute in a version, or one access control list, is enough to answer"

# A read-only mount has no socket: the commands ask the mount itself.
mount_repo -o ro,series=s,version=plain
look "$mnt"
! getfattr -n user.varve.root "$mnt" 2>/dev/null || fail "the daemon answers"
"$VARVE" stat "$mnt" >"$work/by_path"
"$VARVE" stat "$repo" s/plain >"$work/by_name"
cmp "$work/by_path" "$work/by_name"
"$VARVE" restore "$mnt/dir" "$work/restored"
diff -r "$work/restored" "$work/tree/dir"
"$VARVE" umount "$mnt"
! mountpoint -q "$mnt" || fail "still mounted"
ok "the commands find a read-only mount without attributes"

mount_repo -o ro
look "$mnt/s/plain"
"$VARVE" rm "$repo" s/plain
setfattr -n user.late -v seen "$work/tree/dir/70"
"$VARVE" store "$repo" s/late "$work/tree"
[ "$(getfattr --only-values -n user.late "$mnt/s/late/dir/70")" = seen ] ||
  fail "a new version lost its attributes"
unmount_repo
ok "a mount of the repository answers for versions that come later"

mount_repo -o xattr=off
mkdir "$mnt/s/off.partial"
cp "$work/tree/dir/1" "$mnt/s/off.partial/1"
! setfattr -n user.note -v lost "$mnt/s/off.partial/1" 2>"$work/said" || fail "it was set"
grep -qi "not supported" "$work/said"
[ -z "$(getfattr -d "$mnt/s/noted/dir/50" 2>/dev/null)" ] || fail "it answers"
"$VARVE" seal "$mnt/s/off.partial"
"$VARVE" umount "$mnt"
expect_status 2 mount_repo -o xattr=off,allow_other
message_says "access control lists"
expect_status 2 mount_repo -o xattr=maybe
message_says "auto, on or off"
ok "xattr=off refuses to set an attribute, and is refused where the kernel needs them"
