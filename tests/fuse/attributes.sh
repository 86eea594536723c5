#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Extended attributes: the names that belong to users, the number that fits, the callers that see
# trusted.*.
limit_s=60
. "$(dirname "$0")/lib.sh"

"$VARVE" init "$repo" >/dev/null
mkdir -p "$work/tree/dir" && touch "$work/tree/file" "$work/tree/dir/file"
for name in file dir dir/file .; do
  setfattr -n user.varve.state -v mine "$work/tree/$name"
  setfattr -n user.varve.note -v "of $name" "$work/tree/$name"
done
kept() {  # DIR: checks that all files below it have the attributes of the source
  local name
  for name in file dir dir/file; do
    [ "$(getfattr --only-values -n user.varve.state "$1/$name" 2>/dev/null)" = mine ] ||
      fail "user.varve.state of $1/$name was lost"
    [ "$(getfattr --only-values -n user.varve.note "$1/$name" 2>/dev/null)" = "of $name" ] ||
      fail "user.varve.note of $1/$name was lost"
  done
}
"$VARVE" -q store "$repo" s/stored "$work/tree" >/dev/null
"$VARVE" -q restore "$repo" s/stored "$work/restored"
kept "$work/restored"
mkdir "$work/untarred"
"$VARVE" -q restore --to-tar - "$repo" s/stored |
  tar -x --xattrs --xattrs-include='*' -C "$work/untarred" -f -
kept "$work/untarred"
[ -z "$(getfattr -m '^user.varve' "$work/restored")" ] ||
  fail "the root's user.varve.* were stored"
ok "store, restore and tar keep user.varve.* of files; those of a version's root are Varve's"

mount_repo -o allow_other
kept "$mnt/s/stored"
[ "$(state_of "$mnt/s/stored")" = sealed ] || fail "a stored attribute passes for the state"
mkdir "$mnt/s/copied.partial"
cp -a "$work/tree/." "$mnt/s/copied.partial/" 2>/dev/null || true  # The mount refuses the root's.
kept "$mnt/s/copied.partial"
rsync -rlptX --delete "$work/tree/dir" "$work/tree/file" "$mnt/s/copied.partial/"
kept "$mnt/s/copied.partial"
expect_status 1 setfattr -n user.varve.state -v mine "$mnt/s/copied.partial"
message_says 'not permitted'
"$VARVE" -q seal "$mnt/s/copied.partial" >/dev/null
kept "$mnt/s/copied"
"$VARVE" -q store "$work/other" s/again "$mnt/s/copied" 2>/dev/null && fail "no repository is there"
"$VARVE" init "$work/other" >/dev/null
"$VARVE" -q store "$work/other" s/again "$mnt/s/copied" >/dev/null
"$VARVE" -q restore "$work/other" s/again "$work/again"
kept "$work/again"
ok "so do cp, rsync, a seal and a copy of a mounted version"

mkdir "$mnt/s/many" && touch "$mnt/s/many/file"
python3 - "$mnt/s/many/file" <<'EOF'
import errno, os, sys
path, names = sys.argv[1], []
def name(number): return f"user.{number:0245}"
try:
    while len(names) < 300:
        os.setxattr(path, name(len(names)), b"")
        names.append(name(len(names)))
except OSError as error:
    assert error.errno == errno.E2BIG, error
listed = sum(len(each) + 1 for each in names)
assert 65536 - 256 < listed <= 65536, listed
os.setxattr(path, "user." + "x" * (65536 - listed - 6), b"")  # Fills the limit exactly.
assert len(os.listxattr(path)) == len(names) + 1
try:
    os.setxattr(path, "user.y", b"")
    raise SystemExit("one name more was taken")
except OSError as error:
    assert error.errno == errno.E2BIG, error
os.setxattr(path, name(7), b"new value")
os.removexattr(path, name(8))
os.setxattr(path, name(9999), b"")
assert os.getxattr(path, name(7)) == b"new value"
EOF
"$VARVE" -q seal "$mnt/s/many" >/dev/null
[ "$(python3 -c 'import os, sys; print(len(os.listxattr(sys.argv[1])))' "$mnt/s/many/file")" -ge 255 ]
ok "names beyond 64 KiB are refused with E2BIG, and all that were taken are listed"

mkdir -m 755 "$mnt/s/trusted" && touch "$mnt/s/trusted/file" "$work/local"
chmod 755 "$work"
for file in "$mnt/s/trusted/file" "$work/local"; do
  setfattr -n trusted.secret -v x "$file"
  setfattr -n user.open -v y "$file"
  chmod 666 "$file"
  [ "$(getfattr -m - "$file" 2>/dev/null | grep -c '^trusted\.secret')" -eq 1 ] || fail "root sees no $file"
  for who in "--reuid=12345 --regid=12345 --clear-groups" "--bounding-set=-sys_admin"; do
    # shellcheck disable=SC2086
    setpriv $who /usr/bin/python3 - "$file" <<'EOF'
import errno, os, sys
path = sys.argv[1]
assert os.listxattr(path) == ["user.open"], os.listxattr(path)
for call, want in ((lambda: os.getxattr(path, "trusted.secret"), errno.ENODATA),
                   (lambda: os.setxattr(path, "trusted.other", b""), errno.EPERM),
                   (lambda: os.removexattr(path, "trusted.secret"), errno.EPERM)):
    try:
        call()
        raise SystemExit("allowed")
    except OSError as error:
        assert error.errno == want, error
EOF
  done
done
"$VARVE" -q seal "$mnt/s/trusted" >/dev/null
[ "$(setpriv --reuid=12345 --regid=12345 --clear-groups getfattr -m - "$mnt/s/trusted/file" 2>/dev/null |
  grep -c "^trusted")" -eq 0 ] || fail "a sealed file shows trusted.*"
ok "trusted.* is hidden from callers without CAP_SYS_ADMIN, as on the local file system"

# Names outside of the namespaces: as the local file system, which `varve store` may not have read.
mkdir "$mnt/s/foreign.partial"
touch "$mnt/s/foreign.partial/file" "$work/names"
cat >"$work/names.py" <<'EOF'
import errno, os, sys
def answer(call, *arguments):
    try:
        call(*arguments)
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]
for name in ("foo.bar", "foo", "user", "user.", "user.a", "trusted.", "trusted.a", "security.", "security.a",
             "system.", "system.other", "system.nfs4_acl", "USER.a", "btrfs.compression"):
    print(name, answer(os.setxattr, sys.argv[1], name, b"x"), answer(os.getxattr, sys.argv[1], name),
          answer(os.removexattr, sys.argv[1], name), answer(os.removexattr, sys.argv[1], name))
EOF
python3 "$work/names.py" "$mnt/s/foreign.partial/file" >"$work/names.varve"
grep -qx 'foo.bar ENOTSUP ENOTSUP ENOTSUP ENOTSUP' "$work/names.varve" || fail "$(cat "$work/names.varve")"
grep -qx 'user. EINVAL EINVAL EINVAL EINVAL' "$work/names.varve" || fail "$(cat "$work/names.varve")"
grep -qx 'user.a done done done ENODATA' "$work/names.varve" || fail "$(cat "$work/names.varve")"
case $(stat -f -c %T "$work") in
  ext2/ext3 | xfs)
    python3 "$work/names.py" "$work/names" | diff - "$work/names.varve" || fail "the local file system differs"
    ;;
esac
rm -rf "$mnt/s/foreign.partial"
ok "an attribute outside of the namespaces is refused, as by ext4"

python3 - "$work/foreign.tar" <<'EOF'
import io, sys, tarfile
with tarfile.open(sys.argv[1], "w", format=tarfile.PAX_FORMAT) as archive:
    member = tarfile.TarInfo("file")
    member.size = 4
    member.pax_headers = {"SCHILY.xattr.foo.bar": "kept", "SCHILY.xattr.user.too": "kept"}
    archive.addfile(member, io.BytesIO(b"data"))
EOF
"$VARVE" -q store --from-tar "$work/foreign.tar" "$repo" s/foreign
[ "$(getfattr --absolute-names --only-values -n foo.bar "$mnt/s/foreign/file")" = kept ]
getfattr --absolute-names -m - "$mnt/s/foreign/file" | grep -qx 'foo.bar'
expect_status 0 "$VARVE" restore "$repo" s/foreign "$work/foreign"
message_says 'attribute foo.bar is not restored'
[ "$(getfattr --absolute-names --only-values -n user.too "$work/foreign/file")" = kept ]
"$VARVE" -q restore --to-tar "$work/again.tar" "$repo" s/foreign
python3 -c 'import sys, tarfile
assert tarfile.open(sys.argv[1]).getmember("file").pax_headers["SCHILY.xattr.foo.bar"] == "kept"' "$work/again.tar"
"$VARVE" -q clone "$mnt/s/foreign" "$mnt/s/edited.partial" >/dev/null
setfattr -x foo.bar "$mnt/s/edited.partial/file"
"$VARVE" -q seal "$mnt/s/edited.partial" >/dev/null
! getfattr --absolute-names -n foo.bar "$mnt/s/edited/file" 2>/dev/null || fail "it was not removed"
ok "one that an archive had is kept, read, removed, and restored where that is possible"
unmount_repo

# The limits that README states. chattr(1) is refused by some file systems, such as tmpfs.
mkdir "$work/limits"
echo x >"$work/limits/file"
touch -a -d 2001-01-01 "$work/limits/file"
touch -m -d 2002-02-02T02:02:02.123456789 "$work/limits/file"
chattr +d "$work/limits/file" 2>/dev/null || true
mkfifo "$work/limits/pipe"
truncate -s 10M "$work/limits/holes"
"$VARVE" -q store "$repo" limits/v "$work/limits"
"$VARVE" -q restore "$repo" limits/v "$work/limited"
[ "$(stat -c %y "$work/limited/file")" = "$(stat -c %y "$work/limits/file")" ]
[ -p "$work/limited/pipe" ] && [ "$(stat -c %b "$work/limited/holes")" -lt 1000 ]
[ "$(stat -c %X "$work/limited/file")" -gt "$(date -d 2020-01-01 +%s)" ] || fail "access times are kept: say so in README"
! lsattr "$work/limited/file" 2>/dev/null | grep -q '^[^ ]*d' || fail "flags of chattr are kept: say so in README"
ok "modification times, pipes and holes are kept, access times and flags are not"
