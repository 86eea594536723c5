#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Commands give a clear message and exit code for a folder that is not a repository, not a mount
# point, or in use.
limit_s=60
. "$(dirname "$0")/lib.sh"

# Changes one line of the superblock of $work/copy and corrects the checksum.
edit_superblock() {  # SED-EXPRESSION
  sed -i "$1" "$work/copy/varve.repo"
  python3 - "$work/copy/varve.repo" <<'PYTHON'
import ctypes, sys
with open(sys.argv[1], "rb") as file:
    body = file.read()
at = body.rindex(b"\n", 0, -1) + 1
key = body[at:].split(b" = ")[0]
hashing = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
hashing.restype, hashing.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
with open(sys.argv[1], "wb") as file:
    file.write(body[:at] + key + b" = %016x\n" % hashing(body[:at], at))
PYTHON
}

fresh_copy() {
  rm -rf "$work/copy"
  cp -a "$repo" "$work/copy"
}

all_commands_refuse() {  # STATUS WORD REPOSITORY
  local command
  for command in "mount $3 $mnt" "ls $3" "stats $3" "check $3" "restore $3 s/one $work/out" \
    "seal $3 s/one" "store $3 s/new $work/tree"; do
    # shellcheck disable=SC2086
    expect_status "$1" "$VARVE" $command
    message_says "$2"
  done
  mountpoint -q "$mnt" && fail "it was mounted all the same"
  [ ! -e "$work/out" ] || rmdir "$work/out"
}

mkdir "$work/tree" "$work/plain"
echo text >"$work/tree/file"
"$VARVE" init "$repo"
"$VARVE" store "$repo" s/one "$work/tree"

all_commands_refuse 10 'repository' "$work/plain"
all_commands_refuse 10 'repository' "$work/absent"
all_commands_refuse 10 'repository' "$work/tree/file"
ok "what is not a repository: exit code 10"

fresh_copy
edit_superblock 's/^format_version = .*/format_version = 99/'
all_commands_refuse 1 'newer|99' "$work/copy"
state_of_copy() { (cd "$work/copy" && find . -type f -printf '%p %T@\n' -exec sha256sum {} + | sort); }
before=$(state_of_copy)
for command in "repair --yes" "repair -n" scrub arrange "prune --keep-last 1" "check --read-data --resume"; do
  # shellcheck disable=SC2086
  expect_status 1 "$VARVE" $command "$work/copy"
  message_says 'newer Varve'
done
expect_status 1 "$VARVE" rm "$work/copy" s/one
message_says 'newer Varve'
[ "$(state_of_copy)" = "$before" ] || fail "a repository of a newer format was changed"
ok "a newer format is named, and nothing is changed"
fresh_copy
edit_superblock 's/^features_required = .*/features_required = time-travel/'
all_commands_refuse 1 'time-travel' "$work/copy"
ok "an unknown feature is named"
for bytes in 0 1 40 200; do
  fresh_copy
  truncate -s "$bytes" "$work/copy/varve.repo"
  all_commands_refuse 1 'varve.repo' "$work/copy"
done
fresh_copy
sed -i 's/^chunk_bytes_avg = ./chunk_bytes_avg = 7/' "$work/copy/varve.repo"
all_commands_refuse 1 'checksum' "$work/copy"
ok "a truncated or edited superblock is named"

fresh_copy
rm -r "$work/copy/catalog"
all_commands_refuse 1 'catalog' "$work/copy"
[ ! -e "$work/copy/catalog/data.mdb" ] || fail "a new catalog was made over the lost one"
fresh_copy
rm "$work/copy/catalog/data.mdb"
all_commands_refuse 1 'catalog' "$work/copy"
[ ! -e "$work/copy/catalog/data.mdb" ] || fail "a new catalog was made over the lost one"
ok "a missing catalog is named, and not replaced by a new one"

expect_status 1 "$VARVE" mount "$repo" "$work/tree/file/absent"
message_says 'absent'
expect_status 1 "$VARVE" mount "$repo" "$work/tree/file"
message_says 'directory'
expect_status 2 "$VARVE" mount -o nonsense "$repo" "$mnt"
message_says 'nonsense'
expect_status 1 "$VARVE" umount "$work/plain"
ok "a missing mount point, a file, an unknown option"

mount_repo
mkdir "$work/mnt2"
expect_status 11 "$VARVE" mount "$repo" "$work/mnt2"
message_says 'mounted|another process|locked'
expect_status 2 "$VARVE" store --stdin file "$repo" s/two </dev/null
message_says 'from a file or a pipe only'
expect_status 1 "$VARVE" mount -o ro "$repo" "$mnt"
message_says 'mounted|busy|in use'
ok "a second writable mount: exit code 11; a busy mount point is refused"
mkdir "$mnt/s/open.partial"
"$VARVE" mount -o ro "$repo" "$work/mnt2"
[ "$(cat "$work/mnt2/s/one/file")" = text ]
(: >"$work/mnt2/s/one/file") 2>/dev/null && fail "a read-only mount was written"
mkdir "$work/mnt2/s/two" 2>/dev/null && fail "a read-only mount took a version"
[ ! -e "$work/mnt2/s/open.partial" ]
mv -T "$mnt/s/open.partial" "$mnt/s/two"
appears() { [ -e "$work/mnt2/s/two" ] && [ "$(readlink "$work/mnt2/s/latest")" = two ]; }
wait_until "a version that was just sealed in the read-only mount" appears
"$VARVE" ls "$repo" | grep -q s/two
"$VARVE" umount "$work/mnt2"
ok "a read-only mount beside the writable one shows the sealed versions, the newest too"
(cd "$mnt/s" && expect_status 1 "$VARVE" umount "$mnt" && message_says 'busy|in use')
unmount_repo
mount_repo
unmount_repo
ok "umount of a busy mount says so; after it the repository can be mounted at once"

# A chroot's root is no mount point, so unshare(1) cannot make its mounts private there. Leaving
# them shared would hide the host's /dev.
if unshare -m true 2>/dev/null; then
  hide_fuse='mount -t tmpfs none /dev && mknod /dev/null c 1 3 && mknod /dev/urandom c 1 9'
  # shellcheck disable=SC2016
  expect_status 1 unshare -m sh -c "$hide_fuse"' && exec "$VARVE" mount "$0" "$1"' "$repo" "$mnt"
  message_says '/dev/fuse'
  ok "without /dev/fuse the message says so"
  unshare -m sh -c "$hide_fuse"' && "$VARVE" store "$0" s/three "$1" &&
    "$VARVE" restore "$0" s/three "$2"' "$repo" "$work/tree" "$work/bulk"
  same_tree "$work/tree" "$work/bulk"
  ok "and the bulk path works without it"
else
  skip_part "without /dev/fuse: a private mount namespace cannot be made here"
fi

expect_status 1 "$VARVE" init "$work/tree"
message_says 'empty'
expect_status 2 "$VARVE" init --compression lead "$work/new"
[ ! -e "$work/new" ] || fail "a bad option has left something behind"
expect_status 2 "$VARVE" nonsense
expect_status 2 "$VARVE" ls --nonsense "$repo"
expect_status 2 "$VARVE" restore "$repo" "$work/tree"
message_says 'missing'
expect_status 2 "$VARVE" restore "$repo" s/one s/three "$work/tree"
message_says 'the same version'
expect_status 1 "$VARVE" restore --to-tar "$work/no/such/place" "$repo" s/one
[ "$(cat "$work/tree/file")" = text ]
ok "bad arguments change nothing"

ln -s "$VARVE" "$work/mount.fuse.varve"
"$work/mount.fuse.varve" "$repo" "$mnt" -o ro,nofail,_netdev,user,noauto,dev,suid
[ "$(cat "$mnt/s/one/file")" = text ]
[ "$(findmnt -no FSTYPE "$mnt")" = fuse.varve ]
[ "$(findmnt -no SOURCE "$mnt")" = "$repo" ]
umount "$mnt"
ok "the mount helper takes what mount(8) passes on"
"$VARVE" check "$repo"
for bytes in 0 4096 20000; do
  fresh_copy
  truncate -s $bytes "$work/copy/catalog/data.mdb"
  all_commands_refuse 1 'catalog' "$work/copy"
  [ "$(stat -c %s "$work/copy/catalog/data.mdb")" -eq $bytes ] || fail "the catalog was changed"
done
ok "an empty or truncated catalog is named, and not replaced by a new one"
