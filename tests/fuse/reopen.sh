#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Reopening a sealed version: the next seal replaces it and takes its name. At every moment one
# version has the name. Discarding the work or killing the daemon loses nothing.
limit_s=60
. "$(dirname "$0")/lib.sh"

mkdir -p "$work/one/dir"
echo first >"$work/one/file"
head -c 300000 /dev/urandom >"$work/one/dir/random"
"$VARVE" init "$repo" 2>/dev/null
"$VARVE" store "$repo" s/zero "$work/one" >/dev/null
"$VARVE" store "$repo" s/one "$work/one" >/dev/null
names() { "$VARVE" ls --json "$repo" s | python3 -c '
import json, sys
print(*[v["version"] + ":" + v["state"] for v in map(json.loads, sys.stdin)])'; }

expect_status 1 "$VARVE" reopen "$repo" s/zero
message_says 'not the newest'
"$VARVE" -q reopen "$repo" s/one
[ "$(names)" = "zero:sealed one:sealed one.partial:open" ] || fail "$(names)"
"$VARVE" rm "$repo" s/one.partial >/dev/null
[ "$(names)" = "zero:sealed one:sealed" ] || fail "$(names)"
ok "reopen makes NAME.partial; to discard it leaves the sealed version as it is"

mount_as_job
"$VARVE" -q reopen "$mnt/s/one"
diff -r "$work/one" "$mnt/s/one.partial"
echo second >"$mnt/s/one.partial/file"
echo new >"$mnt/s/one.partial/dir/new"
[ "$(cat "$mnt/s/one/file")" = first ] || fail "the sealed version changed"
sync "$mnt/s/one.partial/file" "$mnt/s/one.partial/dir/new"
kill_daemon
[ "$(names)" = "zero:sealed one:sealed one.partial:open" ] || fail "$(names)"
mount_as_job
"$VARVE" seal "$mnt/s/one.partial" >/dev/null
[ "$(names)" = "zero:sealed one:sealed" ] || fail "$(names)"
[ "$(cat "$mnt/s/one/file")$(cat "$mnt/s/one/dir/new")" = secondnew ] || fail "not the new contents"
[ "$(readlink "$mnt/s/latest")" = one ] || fail "latest"
cmp "$work/one/dir/random" "$mnt/s/one/dir/random"
ok "mounted, and after the daemon was killed: the seal puts the new one in the old one's place"

"$VARVE" -q reopen "$mnt/s/one"
echo third >"$mnt/s/one.partial/file"
exec 5<"$mnt/s/one/file"
"$VARVE" seal "$mnt/s/one.partial" >/dev/null
[ "$(cat "$mnt/s/one/file")" = third ] || fail "not the new contents"
[ "$(cat <&5)" = second ] || fail "the reader lost its file"
exec 5<&-
old=$(names | tr ' ' '\n' | grep -o 'one.replaced-[0-9]*')
grep -q "$old" "$work/daemon.log" || fail "the log does not name $old"
remove() { "$VARVE" rm "$repo" "s/$old" >/dev/null 2>&1; }
wait_until "the replaced version can be removed" remove
[ "$(names)" = "zero:sealed one:sealed" ] || fail "$(names)"
ok "a version that is being read stays under another name, which the log tells"
unmount_repo

"$VARVE" -q reopen "$repo" s/latest
"$VARVE" seal "$repo" s/one.partial >/dev/null
[ "$(names)" = "zero:sealed one:sealed" ] || fail "$(names)"
"$VARVE" -q reopen "$repo" s/one
"$VARVE" seal "$repo" s/one.partial two >/dev/null
[ "$(names)" = "zero:sealed one:sealed two:sealed" ] || fail "$(names)"
"$VARVE" -q reopen "$repo" s/two
"$VARVE" lock --for 1d "$repo" s/two >/dev/null
expect_status 1 "$VARVE" seal "$repo" s/two.partial
message_says 'locked'
"$VARVE" rm "$repo" s/two.partial >/dev/null
expect_status 1 "$VARVE" reopen "$repo" s/two
message_says 'locked'
"$VARVE" check --read-data "$repo" >/dev/null
ok "without a mount; sealed under a new name it replaces nothing; a locked version is refused"

mount_repo -o autoseal=0
newest=$(readlink "$mnt/s/latest")
mkdir "$mnt/s/next"
echo text >"$mnt/s/next/file"
expect_status 1 "$VARVE" reopen "$mnt/s/$newest"
message_says 'next is open in this series'
long=$(printf '%0300d' 0)
if mkdir "$mnt/s/$long" 2>/dev/null; then fail "a name of 300 bytes"; fi
expect_status 2 "$VARVE" clone "$repo" s/latest "s/$long"
"$VARVE" ls "$repo" s | grep -q 'next (open' || fail "a command that fails sealed it: $("$VARVE" ls "$repo" s)"
unmount_repo
expect_status 1 "$VARVE" reopen "$repo" "s/$newest"
message_says 'next is open in this series'
ok "a reopen, mkdir or clone that must fail seals nothing before"
