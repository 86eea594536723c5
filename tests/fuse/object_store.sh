#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A repository in an object store, used as people use it: by commands, by a mount, from a second
# machine, and after mishaps. The store is tests/s3/store.py, or the one that VARVE_TEST_STORE names
# (s3://BUCKET/PREFIX, with AWS_ENDPOINT_URL and credentials in the environment).
limit_s=180
. "$(dirname "$0")/lib.sh"

place=${VARVE_TEST_STORE:-}
[ -n "$place" ] || start_store
export HOME=$work  # No files of AWS.

# Attaches a fresh folder and compares all versions of the series s with $work/versions.
attached_has() {  # VERSION…
  local name
  rm -rf "$work/reader"
  "$VARVE" -q attach "$place" "$work/reader"
  [ "$("$VARVE" ls "$work/reader" s | awk 'NR > 1 || !/VERSION/ { print $1 }' | sed 's|.*/||' | sort | xargs)" = "$(printf '%s\n' "$@" | sort | xargs)" ] ||
    fail "the reader lists $("$VARVE" ls "$work/reader" s), not $*"
  for name in "$@"; do
    rm -rf "$work/restored"
    "$VARVE" -q restore "$work/reader" "s/$name" "$work/restored"
    same_tree --ignore holes "$work/versions/$name" "$work/restored"
  done
}

keep() { mkdir -p "$work/versions" && cp -a "$work/source" "$work/versions/$1"; }

"$VARVE" -q init "$place" --local="$repo"
expect_status 1 "$VARVE" init "$place" --local="$work/second"
message_says 'varve attach'
[ ! -e "$work/second/varve.repo" ]
ok "init makes a repository in the store, once"

mkdir -p "$work/source/dir"
head -c 3M /dev/urandom >"$work/source/big"
cp -a /etc/passwd "$work/source/dir/passwd"
ln -s dir "$work/source/link"
truncate -s 1M "$work/source/hole"
"$VARVE" -q store "$repo" s/one "$work/source"
keep one
attached_has one
ok "a stored version is in the store when the command ends, and a fresh folder restores it"

mount_repo
"$VARVE" clone "$mnt/s/one" "$mnt/s/two.partial" >/dev/null
head -c 2M /dev/urandom >"$work/source/more"
echo changed >>"$work/source/dir/passwd"
rsync -aHAX --modify-window=-1 --delete "$work/source/" "$mnt/s/two.partial/"
"$VARVE" -q seal "$mnt/s/two.partial"
keep two
attached_has one two
ok "a version that rsync wrote to a mount is in the store when seal ends"

cp -a "$work/source" "$mnt/s/three.partial"
rm "$work/source/big" "$mnt/s/three.partial/big"
touch -r "$work/source" "$mnt/s/three.partial"
mv -T "$mnt/s/three.partial" "$mnt/s/three"
keep three
"$VARVE" -q wait "$repo" s/three
attached_has one two three
"$VARVE" -q rm "$mnt/s/one"
unmount_repo
attached_has two three
ok "wait waits for a version that a rename sealed, and umount for a deletion"

"$VARVE" -q attach "$place" "$work/other"
"$VARVE" mount -o ro "$work/other" "$mnt"
same_tree --ignore holes "$work/versions/two" "$mnt/s/two"
unmount_repo
"$VARVE" -q check --read-data "$work/other"
expect_status 1 "$VARVE" store "$work/other" s/four "$work/source"
message_says 'reading only'
ok "an attached folder is mounted and checked, and refuses to be written"

head -c 1M /dev/urandom >"$work/source/four"
"$VARVE" -q store --no-wait "$repo" s/four "$work/source"
keep four
"$VARVE" -q wait "$repo" s/four
"$VARVE" ls "$work/other" s >"$work/list"
grep -q four "$work/list"
"$VARVE" -q restore "$work/other" s/four "$work/restored-four"
same_tree --ignore holes "$work/versions/four" "$work/restored-four"
ok "store --no-wait leaves the upload to wait, and an attached folder follows"

# An older copy of the folder, as a virtual machine's snapshot is one.
cp -a "$repo" "$work/copy"
cp -a "$repo" "$work/older"
"$VARVE" -q store "$repo" s/five "$work/source"
keep five
expect_status 11 "$VARVE" store "$work/copy" s/six "$work/source"
message_says 'another folder writes'
"$VARVE" ls "$work/copy" s >"$work/list"
grep -q six "$work/list"
"$VARVE" mount "$work/copy" "$mnt" 2>"$work/stderr"
grep -qE 'another folder writes.*mounted read-only.*Only this folder has: s/six.*attach --write' "$work/stderr" || fail "$(cat "$work/stderr")"
! mkdir "$mnt/s/new.partial" 2>"$work/stderr" || fail "a fenced folder is written to"
grep -q 'Read-only file system' "$work/stderr" || fail "$(cat "$work/stderr")"
same_tree --ignore holes "$work/source" "$mnt/s/six"
unmount_repo
"$VARVE" mount -o ro "$work/copy" "$mnt" 2>"$work/stderr"
[ ! -s "$work/stderr" ] || fail "$(cat "$work/stderr")"
unmount_repo
rm -rf "$work/copy"
attached_has two three four five
mv "$repo" "$work/newest"
cp -a "$work/older" "$repo"
expect_status 11 "$VARVE" store "$repo" s/six "$work/source"
message_says 'this folder was put back to an older state.*attach --write'
expect_status 2 "$VARVE" status "$repo"
grep -q 'put back to an older state.*attach --write' "$work/stdout" || fail "$(cat "$work/stdout")"
rm -rf "$repo" "$work/older"
mv "$work/newest" "$repo"
ok "an older copy of the folder is fenced, also in the folder's place, and keeps what it sealed"

mount_as_job
cp -a "$work/source" "$mnt/s/seven.partial"
mv -T "$mnt/s/seven.partial" "$mnt/s/seven"
keep seven
kill_daemon
"$VARVE" -q wait "$repo" s/seven
attached_has two three four five seven
ok "a killed daemon loses no sealed version, and the next command uploads it"

"$VARVE" -q prune --keep-last 2 "$repo" s
attached_has five seven
"$VARVE" -q check --read-data "$repo"
ok "prune reaches the store"
