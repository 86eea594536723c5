#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No restore, copy, import or archive removes or changes a repository, a mount of one, Varve's memory
# or a mount point, wherever these are in the target.
limit_s=90
. "$(dirname "$0")/lib.sh"

home=$work/home
repo=$home/backup/repo
second=$home/second
memory=$home/.local/state/varve
mkdir -p "$home/backup" "$home/user" "$home/ram" "$home/mnt" "$memory" "$work/plain/user"
echo content | tee "$home/user/file" >"$work/plain/user/file"
"$VARVE" init "$repo" >/dev/null
"$VARVE" -q config "$repo" guard=off  # Its versions are of different trees.
"$VARVE" init "$second" >/dev/null
"$VARVE" -q store "$second" t/one "$home/user" >/dev/null
mount -t tmpfs -o size=1m none "$home/ram"
echo of-the-version >"$home/ram/file"
expect_status 0 "$VARVE" -q store "$repo" s/whole "$home"   # With backup/repo as an empty directory.
"$VARVE" -q store "$repo" s/plain "$work/plain"
echo 'varve-sequence 1 7' >"$memory/0123456789abcdef0123456789abcdef"
touch "$memory/lock"
echo other >"$home/ram/other"
mkdir "$home/extra" "$work/outside"
echo outside >"$work/outside/file"

# Prints what must not change: the repositories, Varve's memory and what is mounted. The lock of a
# repository and the mode of its reader's table change with each use.
protected() {
  local folder
  for folder in "$repo" "$second" "$memory" "$work/outside" "$@"; do
    (cd "$folder" && find . -not -name lock.mdb -printf '%p %y %m %U %T@ %s\n' | sort)
    (cd "$folder" && find . -type f -not -name lock.mdb -exec sha256sum {} + | sort)
  done
}
unchanged() { protected "$@" | cmp -s - "$work/before" || fail "changed: $(protected "$@" | diff - "$work/before")"; }
# Restores in a dry run and really. Both must leave something, name it, and change nothing of Varve.
leaves() {  # ARGUMENTS…: sets $message to that of the dry run, and checks that the other is equal
  protected >"$work/before"
  expect_status 3 "$VARVE" -v restore -n "$@"
  cp "$work/stdout" "$work/planned"
  local planned=$message
  ! grep -qE 'varve\.repo|data\.mdb|varve-sequence' "$work/planned" || fail "-n plans to remove a repository"
  unchanged
  expect_status 3 "$VARVE" -v restore "$@"
  [ "$(grep -c 'kept: it' <<<"$planned")" = "$(grep -c 'kept: it' <<<"$message")" ] ||
    fail "the dry run leaves other entries: $planned; $message"
  cmp "$work/stdout" "$work/planned" || fail "the dry run does not show the same changes"
  unchanged
}

leaves --delete "$repo" s/whole "$home"
message_says 'backup/repo: kept: it is the repository'
message_says 'second: kept: it is a Varve repository'
message_says 'local/state/varve: kept: it is where Varve remembers'
message_says 'ram/other: kept: it is on another file system'
[ ! -e "$home/extra" ] && [ "$(cat "$home/user/file")" = content ] || fail "not restored"
[ "$(cat "$home/ram/other")" = other ]
"$VARVE" -q check "$repo" && "$VARVE" -q check "$second"
ok "--delete of a tree with repositories keeps and names them"

# A repository whose superblock is lost has all its data, and a repair brings it back.
mkdir "$work/torn" "$work/torn/home"
"$VARVE" init -q "$work/torn/repo" && "$VARVE" store -q "$work/torn/repo" t/v1 "$home/user"
for gone in varve.repo catalog; do
  cp -a "$work/torn/repo" "$work/torn/home/repo"
  rm -r "$work/torn/home/repo/varve.repo"
  rm -rf "$work/torn/home/repo/$gone"
  find "$work/torn/home" -type f | sort >"$work/torn/before"
  for target in home home/repo home/repo/series home/repo/series/00000001 home/repo/series/00000001/active; do
    status=0
    "$VARVE" restore --delete "$second" t/one "$work/torn/$target" >"$work/stdout" 2>"$work/stderr" || status=$?
    [ "$status" -ne 0 ] || fail "a restore to $target of a repository without $gone ends with 0"
    grep -q 'data of a Varve repository' "$work/stderr" || fail "the restore to $target does not say why"
    find "$work/torn/home" -type f | sort | comm -23 "$work/torn/before" - >"$work/torn/lost"
    [ ! -s "$work/torn/lost" ] || fail "a restore to $target removes $(cat "$work/torn/lost")"
  done
  "$VARVE" repair -q --yes "$work/torn/home/repo" || [ $? -eq 3 ]
  "$VARVE" restore -q "$work/torn/home/repo" t/v1 "$work/torn/back"
  diff -r "$home/user" "$work/torn/back"
  rm -rf "$work/torn/home/repo" "$work/torn/back"
done
ok "--delete removes nothing of a repository whose superblock is lost"

mkdir "$home/extra" "$home/again" "$home/inner" "$home/seen" "$home/backup/beside"
mount --bind "$repo" "$home/again"
mount --bind "$repo/series" "$home/inner"
mount --bind "$work/outside" "$home/seen"
touch "$home/mounted-file" && mount --bind "$repo/varve.repo" "$home/mounted-file"
"$VARVE" mount -o ro "$repo" "$home/mnt"
leaves --delete "$repo" s/plain "$home"
for line in 'again: kept: it is the repository' 'inner: kept: it is a folder of the repository' \
  'seen: kept: it is a mount point' 'mounted-file: kept: it is a mount point' 'mnt: kept: it is a mount of a Varve' \
  'ram: kept: it is a mount point' 'backup/repo: kept: it is the repository' 'second: kept: it is a Varve'; do
  message_says "$line"
done
! grep -q 'backup: ' <<<"$message" || fail "the directory above is named, too: $message"
[ ! -e "$home/backup/beside" ] && [ ! -e "$home/extra" ] || fail "something else was kept"
[ "$(ls "$home/ram")" = "$(printf 'file\nother')" ]
"$VARVE" restore -q --json --delete "$repo" s/plain "$home" >"$work/json" 2>/dev/null && fail "status 0"
[ "$(grep -c '"record":"kept"\|"type":"kept"\|kept: it' "$work/json")" -ge 8 ] || fail "JSON does not name them"
ok "mount points, bind mounts and a mount of the repository stay"

# The version has something in the places of protected folders.
mkdir -p "$work/clash/again" "$work/clash/inner/00000001" "$work/clash/mnt/s" "$work/clash/second/catalog"
echo bad | tee "$work/clash/again/varve.repo" "$work/clash/inner/00000001/labels" "$work/clash/mnt/s/new" \
  "$work/clash/second/catalog/data.mdb" >"$work/clash/backup"
echo bad >"$work/clash/mounted-file"
"$VARVE" umount "$home/mnt" && "$VARVE" -q store "$repo" s/clash "$work/clash" && "$VARVE" mount "$repo" "$home/mnt"
for delete in '' --delete; do
  # shellcheck disable=SC2086
  leaves $delete "$repo" s/clash "$home"
  for name in again inner mnt second mounted-file; do message_says "$name: kept: it is"; done
  message_says 'backup: left out'
done
"$VARVE" umount "$home/mnt"
[ -d "$home/backup" ] && "$VARVE" -q check "$repo" && "$VARVE" -q check "$second"
ok "nothing is written into them, and no file takes their place"

mkdir -p "$home/user"
ln -s "$repo" "$work/link"
mkdir "$work/bound" && mount --bind "$repo/series" "$work/bound"
protected >"$work/before"
for target in "$repo" "$repo/series" "$repo/new" "$work/link" "$work/link/new" "$work/bound" "$work/bound/new" \
  "$home/user/../backup/repo" "$second/x" "$second" "$memory/x" "$home/inner" "$home/again/new"; do
  for how in '' -n --delete; do
    # shellcheck disable=SC2086
    expect_status 1 "$VARVE" restore $how "$repo" s/plain "$target"
    message_says "is in "
  done
done
for target in "$repo/series" "$repo/mnt" "$work/link/series"; do
  expect_status 1 "$VARVE" mount "$repo" "$target"
  message_says 'is in the repository .*; choose a mount point outside the repository'
done
for target in "$repo" "${repo%/*}" "$work/link"; do
  expect_status 1 "$VARVE" mount "$repo" "$target"
  message_says 'the mount would hide the repository; choose another mount point'
done
[ ! -e "$repo/mnt" ] || fail "a refused mount left its mount point"
(cd "$repo/series" && expect_status 1 "$VARVE" restore "$repo" s/plain . && message_says 'is in the repository')
for file in "$repo/varve.repo" "$repo/catalog/data.mdb" "$work/link/x.tar" "$work/bound/x.tar" "$second/x.tar"; do
  expect_status 1 "$VARVE" restore --force --to-tar "$file" "$repo" s/plain
  message_says 'is in '
done
for target in "$repo/new" "$repo/series" "$second/new" "$work/link/series/new" "$work/bound/new"; do
  expect_status 1 "$VARVE" copy "$repo" "$target"
  message_says 'is in '
done
expect_status 1 "$VARVE" copy "$repo" "$work/link"
for target in "$repo/new" "$repo/staging" "$second/series/x" "$work/link/staging" "$home/again/new" "$memory/x"; do
  expect_status 1 "$VARVE" init "$target"
  message_says 'is in '
  expect_status 1 "$VARVE" attach s3://bucket/prefix "$target"
  message_says 'is in '
done
unchanged
ok "a target in a repository is refused, also behind links and mounts"

# A repository that is in the version is restored where there is none.
umount "$home/again" "$home/inner" "$home/seen" "$home/mounted-file"
mkdir "$work/with" && cp -a "$second" "$work/with/second"
"$VARVE" -q store "$repo" s/with "$work/with"
"$VARVE" -q restore "$repo" s/with "$work/out" && same_tree "$work/with" "$work/out"
expect_status 3 "$VARVE" restore "$repo" s/with "$work/out"
message_says 'second: kept: it is a Varve repository'
# An import and a repair leave other repositories, too.
mkdir -p "$work/snapshots/2020-01-02" && cp -a "$second" "$work/snapshots/2020-01-02/"
protected >"$work/before"
"$VARVE" -q import "$second" "$work/snapshots" i >/dev/null
mkdir "$second/catalog.damaged-1" "$second/catalog/other" && mount -t tmpfs none "$second/catalog.damaged-1"
cp -a "$work/with/second" "$second/catalog/other/repo"
echo file >"$second/catalog.damaged-1/file"
rm "$second/catalog/data.mdb"
expect_status 1 "$VARVE" -q check "$second"
"$VARVE" -q repair --yes "$second" >/dev/null
"$VARVE" -q check "$second" >/dev/null
[ -e "$second/catalog.damaged-1/file" ] || fail "repair emptied a mount"
find "$second" -path '*other/repo/varve.repo' | grep -q . || fail "repair removed another repository"
umount "$second/catalog.damaged-1"
ok "a repository in a version is restored; import and repair leave others alone"

# The key of the repository, beside it or elsewhere in the target.
mkdir "$work/keyed" "$work/keyed/tree" "$work/aside"
(umask 077 && head -c 32 /dev/urandom >"$work/keyed/key")
echo old >"$work/keyed/tree/file"
export VARVE_KEY_FILE=$work/keyed/key
"$VARVE" -q init --encrypt "$work/keyed/repo"
"$VARVE" -q store "$work/keyed/repo" s/tree "$work/keyed/tree"
cp "$work/keyed/key" "$work/aside/key"
"$VARVE" -q store "$work/keyed/repo" s/key "$work/aside"
mkdir "$work/bound_keyed" && mount --bind "$work/keyed" "$work/bound_keyed"
for target in "$work/keyed" "$work/bound_keyed"; do
  expect_status 1 "$VARVE" restore --delete "$work/keyed/repo" s/tree "$target"
  message_says 'the key of the repository; move the key'
  expect_status 1 "$VARVE" restore "$work/keyed/repo" s/key "$target"
done
expect_status 1 "$VARVE" restore --to-tar "$work/keyed/key" --force "$work/keyed/repo" s/tree
umount "$work/bound_keyed"
"$VARVE" -q restore "$work/keyed/repo" s/tree "$work/keyed"
[ "$(cat "$work/keyed/file")" = old ]
"$VARVE" -q check "$work/keyed/repo"
unset VARVE_KEY_FILE
ok "a restore neither removes nor overwrites the key that opens the repository"

# A plain user.
as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups env XDG_STATE_HOME="$work/user/state" "$@"; }
if setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$VARVE"; then
  chmod 755 "$work" && install -d -o 65534 "$work/user" "$work/user/home" && mkdir "$work/user/home/d"
  chown 65534 "$work/user/home/d"
  as_user "$VARVE" init "$work/user/home/repo" >/dev/null
  as_user "$VARVE" -q store "$work/user/home/repo" s/one "$work/user/home" 2>/dev/null
  as_user touch "$work/user/home/d/more"
  expect_status 3 as_user "$VARVE" restore --delete "$work/user/home/repo" s/one "$work/user/home"
  message_says 'repo: kept: it is the repository'
  [ ! -e "$work/user/home/d/more" ] && as_user "$VARVE" -q check "$work/user/home/repo"
  ok "for a plain user, too"
else
  skip_part "another user cannot run the program here"
fi
