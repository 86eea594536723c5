#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `varve restore` on a real disk: into a new directory, over an existing one, after an interruption,
# and through tar; with and without a mounted repository.
. "$(dirname "$0")/lib.sh"

make_tree() {  # DIR
  mkdir -p "$1/dir/deep/er" "$1/empty" "$1/swap-to-file" "$1/long"
  local i
  for i in $(seq 300); do printf 'file %d\n' "$i" >"$1/dir/$i"; done
  python3 - "$1" <<'EOF'
import os, random, sys
rng = random.Random(7)
root = sys.argv[1]
open(f"{root}/big", "wb").write(rng.randbytes(24 << 20))
with open(f"{root}/sparse", "wb") as file:
    file.write(rng.randbytes(5000)); file.seek(3 << 20); file.write(rng.randbytes(70000))
    file.truncate(9 << 20)
open(f"{root}/hole", "wb").truncate(1 << 20)
open(f"{root}/long/" + "n" * 200, "w").write("a long name")
open(f"{root}/dir/naïve \xe4\n=%", "w").write("an odd name")
EOF
  ln "$1/big" "$1/dir/hard"
  ln "$1/dir/1" "$1/dir/deep/one"
  ln -s ../big "$1/dir/link"
  ln -s /nowhere "$1/dangling"
  mkfifo "$1/fifo"
  mknod "$1/null" c 1 3
  mknod "$1/block" b 7 200
  echo program >"$1/dir/setuid"
  chown 1001:1002 "$1/dir/setuid" "$1/dir/deep"
  chmod 6755 "$1/dir/setuid"
  chmod 2750 "$1/dir/deep"
  setfattr -n user.note -v "a value" "$1/dir/2"
  setfattr -n user.note -v "of a directory" "$1/dir"
  setfattr -n security.capability -v 0sAQAAAgAgAAAAAAAAAAAAAAAAAAA= "$1/dir/3"
  setfacl -m u:1001:rw,g:1002:r "$1/dir/4"
  setfacl -d -m u:1001:rwx "$1/dir/deep"
  echo file >"$1/swap-to-directory"
  ln -s elsewhere "$1/swap-link"
  touch -h -d '2001-02-03 04:05:06.789012345' "$1/dir/5" "$1/dangling"
  chmod 500 "$1/empty"
}

restore() { "$VARVE" restore "$@" 2>>"$work/messages"; }
make_tree "$work/tree"
backdate "$work/tree"
"$VARVE" init --compression none "$repo" >/dev/null
"$VARVE" store "$repo" s/v1 "$work/tree" >/dev/null

restore "$repo" s/v1 "$work/new"
same_tree "$work/tree" "$work/new"
no_rsync_difference "$work/tree/" "$work/new/"
diff -r --no-dereference "$work/tree/dir" "$work/new/dir"
[ ! -e "$work/new/.varve-restore.log" ] || fail "a log is left"
ok "into a new directory all is as it was"

inode=$(stat -c %i "$work/new/big")
changed=$("$VARVE" restore -n "$repo" s/v1 "$work/new" 2>/dev/null)
[ -z "$changed" ] || fail "a dry run of an equal tree would change: $changed"
restore "$repo" s/latest "$work/new"
[ "$(stat -c %i "$work/new/big")" = "$inode" ] || fail "an unchanged file was written again"
ok "what is there already stays"

# Every possible difference, and every change of type.
cd "$work/new"
echo other >dir/10
printf 'FILE 11\n' >dir/11                      # Same size, other time.
touch -r dir/12 stamp && printf 'FILE 12\n' >dir/12 && touch -r stamp dir/12 && rm stamp
chmod 777 dir/13
setfattr -x user.note dir/2
setfattr -n user.extra -v 1 dir/14
rm -r swap-to-file && echo file >swap-to-file   # Now a file; must become a directory again.
rm swap-to-directory && mkdir -p swap-to-directory/full && echo x >swap-to-directory/full/x
rm swap-link && mkdir swap-link
rm dangling && echo a file >dangling
mkdir -p "$work/outside" && echo victim >"$work/outside/1"
rm -r long && ln -s "$work/outside" long        # A directory is now a link out of the target.
rm dir/hard && echo alone >dir/hard
rm fifo && mknod fifo c 1 5
mkdir -p other/deep && echo mine >other/deep/file
cp dir/15 "$work/kept" && ln -f dir/15 "$work/kept" && printf 'file 0\n' >>dir/15
cd "$work"
find "$work/new" -type f >"$work/before"
"$VARVE" restore -n --delete "$repo" s/v1 "$work/new" >"$work/would" 2>/dev/null
find "$work/new" -type f | cmp - "$work/before" || fail "a dry run changed something"
for line in 'M dir/10' 'M dir/11' 'm dir/13' 'm dir/2' 'm dir/14' 'M long' '- other'; do
  grep -qxF -- "$line" "$work/would" || fail "the dry run does not tell '$line'"
done
expect_status 3 "$VARVE" restore "$repo" s/v1 "$work/new"
message_says "swap-to-directory: .*--delete"
[ "$(cat "$work/new/other/deep/file")" = mine ] || fail "something was removed without --delete"
restore --delete "$repo" s/v1 "$work/new"
[ "$(cat "$work/outside/1")" = victim ] && [ "$(ls "$work/outside")" = 1 ] ||
  fail "the restore went through a symlink"
[ ! -e "$work/new/other" ] || fail "--delete left something"
[ "$(tail -1 "$work/kept")" = "file 0" ] || fail "a link outside of the target was written to"
! same_tree "$work/tree" "$work/new" >/dev/null 2>&1 || fail "dir/12 cannot be told by its time"
restore --checksum "$repo" s/v1 "$work/new"
same_tree "$work/tree" "$work/new"
no_rsync_difference "$work/tree/" "$work/new/"
ok "an existing tree becomes that of the version, whatever it was"

restore "$repo" s/v1/dir/deep s/v1/big "$work/some" || fail "two paths"
[ "$(ls "$work/some")" = "$(printf 'big\ndir')" ] && [ "$(ls "$work/some/dir")" = deep ] ||
  fail "not just the paths: $(find "$work/some")"
cmp "$work/tree/big" "$work/some/big"
mkdir -p "$work/acl/dir"
setfacl -d -m u:1009:rwx "$work/acl" "$work/acl/dir"
getfacl -cp "$work/acl" "$work/acl/dir" >"$work/acl-before"
restore "$repo" s/v1/dir/deep s/v1/dir/4 s/v1/big s/v1/long "$work/acl"
getfacl -cp "$work/acl" "$work/acl/dir" | cmp - "$work/acl-before" || fail "a default ACL is lost"
for name in dir/4 dir/deep big long; do
  [ "$(getfacl -cp "$work/acl/$name")" = "$(getfacl -cp "$work/tree/$name")" ] ||
    fail "$name inherited an ACL"
done
restore "$repo" s/v1/dir/deep "$work/one"
cmp "$work/tree/dir/deep/one" "$work/one/one"
for mask in 022 027 077; do
  (umask $mask && restore "$repo" s/v1/dir/deep/one "$work/file-$mask")
  mkdir "$work/made-$mask" && chmod "$((777 - 10#$mask))" "$work/made-$mask"
  [ "$(stat -c %a "$work/file-$mask")" = "$(stat -c %a "$work/made-$mask")" ] ||
    fail "umask $mask: the directory of one file has mode $(stat -c %a "$work/file-$mask")"
  [ "$(stat -c '%a %u' "$work/file-$mask/one")" = "$(stat -c '%a %u' "$work/tree/dir/deep/one")" ]
done
expect_status 1 "$VARVE" restore "$repo" s/v1/missing "$work/none"
[ ! -e "$work/none" ]
expect_status 2 "$VARVE" restore --engine nonsense "$repo" s/v1 "$work/none"
message_says "engine"
ok "parts of a version, and what is not there"

# After a kill at any place, the same command continues and does not repeat finished work.
log=$work/cut/.varve-restore.log
restore_below_faults() {  # ENVIRONMENT…
  env LD_PRELOAD="$VARVE_FAULTY_DISK" DISK_BELOW="$work/cut" \
    "$@" "$VARVE" restore --segment 1M "$repo" s/v1 "$work/cut" 2>>"$work/messages"
}
restore_below_faults DISK_CALLS_IN="$work/calls"
calls=$(stat -c %s "$work/calls")
for part in 3 5 7 9; do
  rm -rf "$work/cut"
  status=0
  restore_below_faults DISK_KILLS_AT=$((calls * part / 10)) || status=$?
  [ $status -eq 137 ] || fail "it was not killed at $part tenths of $calls calls: $status"
  [ ! -e "$work/cut/big" ] || cmp "$work/tree/big" "$work/cut/big" || fail "half a file"
  restore --segment 1M "$repo" s/v1 "$work/cut"
  same_tree "$work/tree" "$work/cut"
done
for _ in 1 2 3; do
  rm -rf "$work/cut"
  "$VARVE" restore --segment 1M "$repo" s/v1 "$work/cut" 2>>"$work/messages" &
  child=$!
  until [ -s "$log" ] || ! kill -0 $child 2>/dev/null; do :; done
  kill -INT $child 2>/dev/null || true
  status=0
  wait $child || status=$?
  [ $status -eq 130 ] || [ $status -eq 0 ] || fail "status $status"
  restore --segment 1M "$repo" s/v1 "$work/cut"
  same_tree "$work/tree" "$work/cut"
done
grep -q "after an interruption" "$work/messages" || fail "nothing was continued"
ok "interrupted and continued"

# The restore reads a lost segment again: it must notice zeros in the partial file. The log has a
# point inside a file only if the disk was fast enough, so this may take several attempts.
zeroed=0
for part in 5 10 15 20 25 30 35 40 45 50 55; do
  rm -rf "$work/cut"
  restore_below_faults DISK_KILLS_AT=$((calls * part / 100)) || true
  partial=$(find "$work/cut" -maxdepth 1 -name '.varve-*.part' -print -quit)
  offset=$(tail -1 "$log" 2>/dev/null | cut -d' ' -f2) || true
  if [ -n "$partial" ] && [[ $offset =~ ^[0-9]+$ ]] && [ "$offset" -ge 65536 ] &&
    [ "$(stat -c %s "$partial")" -ge "$offset" ]; then
    dd if=/dev/zero of="$partial" bs=4096 seek=$((offset / 4096 - 10)) count=5 conv=notrunc status=none
    zeroed=$((zeroed + 1))
  fi
  restore --segment 1M "$repo" s/v1 "$work/cut"
  same_tree "$work/tree" "$work/cut"
  [ $zeroed -lt 2 ] || break
done
if [ $zeroed -gt 0 ]; then
  ok "the last segment is verified before it is built on"
else
  echo "no point inside a file was noted in time: the last segment was not damaged"
fi

# Restores in the order of the disk, from versions whose data arranging has scattered.
cp -a "$work/tree" "$work/tree5"
for i in 2 3 4 5; do
  python3 - "$work/tree5" $i <<'PYTHON'
import random, sys
rng = random.Random(int(sys.argv[2]))
with open(f"{sys.argv[1]}/big", "r+b") as file:
    for _ in range(40):
        file.seek(rng.randrange(23 << 20)); file.write(rng.randbytes(50000))
PYTHON
  rm "$work/tree5/dir/$i" && echo "new $i" >"$work/tree5/dir/new$i"
  backdate "$work/tree5"
  "$VARVE" store "$repo" s/v$i "$work/tree5" >/dev/null
done
"$VARVE" arrange "$repo" >/dev/null
for version in v1:tree v5:tree5; do
  restore --scatter --delete "$repo" "s/${version%:*}" "$work/scattered"
  same_tree "$work/${version#*:}" "$work/scattered"
  no_rsync_difference "$work/${version#*:}/" "$work/scattered/"
done
[ -z "$(restore --scatter -n --checksum "$repo" s/v5 "$work/scattered")" ] || fail "it differs"
(ulimit -n 256 && restore --scatter "$repo" s/v1 "$work/narrow")
same_tree "$work/tree" "$work/narrow"
for _ in 1 2 3; do
  "$VARVE" restore --scatter "$repo" s/v5 "$work/scut" 2>/dev/null & child=$!
  until [ -e "$work/scut/big" ]; do kill -0 $child 2>/dev/null || break; done
  kill -KILL $child 2>/dev/null || true
  wait $child 2>/dev/null || true
done
restore --scatter "$repo" s/v5 "$work/scut"
same_tree "$work/tree5" "$work/scut"
expect_status 2 "$VARVE" restore --scatter --to-tar - "$repo" s/v1
ok "in the order of the disk all is the same"

for how in unmounted mounted; do
  [ $how = unmounted ] || mount_repo -o ro,spin=50
  mkdir "$work/$how"
  "$VARVE" restore --to-tar - "$repo" s/v1 2>>"$work/messages" |
    tar -xp --xattrs --xattrs-include='*' --acls --numeric-owner -C "$work/$how" -f -
  same_tree "$work/tree" "$work/$how"
  restore "$repo" s/v1 "$work/again-$how"
  same_tree "$work/tree" "$work/again-$how"
done
no_rsync_difference "$mnt/s/v1/" "$work/again-mounted/"
unmount_repo
ok "tar gives the same, and a mount is not in the way"

# Another user than root cannot give files away.
user=12345
mkdir "$work/user"
chown $user:$user "$work/user"
chmod a+x "$work"
as_user() { setpriv --reuid=$user --regid=$user --clear-groups env HOME="$work/user" XDG_STATE_HOME="$work/user" "$@"; }
mkdir "$work/mine"
echo root >"$work/mine/root"
echo user >"$work/mine/user"
chown $user "$work/mine/user"
chmod 4755 "$work/mine/root" "$work/mine/user"
as_user "$VARVE" -q init "$work/user/repo"
as_user "$VARVE" -q store "$work/user/repo" s/v1 "$work/mine" >/dev/null
expect_status 0 as_user "$VARVE" restore "$work/user/repo" s/v1 "$work/user/out"
message_says 'owners are not restored'
[ "$(grep -c 'owners are not restored' "$work/stderr")" -eq 1 ]
[ "$(stat -c '%U %a' "$work/user/out/root")" = "$(stat -c %U "$work/user") 755" ]
# Nor may such a user set attributes of root.
mkdir "$work/rooted"
for i in 1 2 3; do
  echo $i >"$work/rooted/$i"
  setfattr -n user.mine -v $i "$work/rooted/$i"
  setfattr -n trusted.other -v $i "$work/rooted/$i"
done
setcap cap_net_raw+ep "$work/rooted/3"
"$VARVE" -q store "$repo" rooted/1 "$work/rooted"
cp -a "$repo" "$work/user/rooted"
chown -R $user:$user "$work/user/rooted" "$work/rooted"
expect_status 0 as_user "$VARVE" restore "$work/user/rooted" rooted/1 "$work/user/unrooted"
message_says 'trusted.* and security.* are not restored: only root may set them \(3 files, the first is'
[ "$(getfattr --absolute-names --only-values -n user.mine "$work/user/unrooted/2")" = 2 ]
# Root without the right fails: the restore of root should be complete.
expect_status 3 setpriv --bounding-set=-sys_admin "$VARVE" restore "$repo" rooted/1 "$work/less-root"
message_says 'trusted.other not set'
expect_status 0 as_user "$VARVE" -q restore --no-owner "$work/user/repo" s/v1 "$work/user/plain"
[ ! -s "$work/stderr" ] || fail "$message"
[ "$(stat -c '%u %a' "$work/user/plain/user")" = "$user 755" ]
expect_status 0 as_user "$VARVE" restore -n --no-owner "$work/user/repo" s/v1 "$work/user/plain"
[ "$(grep -c root "$work/stdout")" -eq 0 ] || fail "$(cat "$work/stdout")"
ok "a user who cannot set owners restores the rest, and is told"

# A setgid directory gives its group to all that is made in it.
mkdir -p "$work/shared/d/new" "$work/share/d"
echo x >"$work/shared/d/new/file"
chmod 2755 "$work/shared/d"
chgrp 777 "$work/share/d"
chmod 2775 "$work/share/d"
"$VARVE" -q store "$repo" shared/v "$work/shared"
"$VARVE" -q restore --no-owner "$repo" shared/v "$work/share"
stat -c '%n %a %g' "$work/share/d" "$work/share/d/new" "$work/share/d/new/file" |
  diff - <(printf "%s\n" "$work/share/d 2755 777" "$work/share/d/new 2755 777" "$work/share/d/new/file 644 777")
"$VARVE" -q restore "$repo" shared/v "$work/fresh"
"$VARVE" -q restore --no-owner "$repo" shared/v "$work/fresh"
[ "$(stat -c %a "$work/fresh/d") $(stat -c %a "$work/fresh/d/new")" = "2755 755" ] || fail "$(stat -c '%n %a' "$work"/fresh/d{,/new})"
ok "--no-owner leaves a directory its setgid bit, and new directories below get it"
