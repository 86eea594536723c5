#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Another machine takes a repository over while the first one has it mounted. Once the first one
# notices, its mount refuses all changes and can be read; the log and `varve status` say what to do,
# and nothing that was written before is lost.
limit_s=180
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
start_store

"$VARVE" -q init "$place" --local="$repo"
mount_as_job
mkdir -p "$work/source/dir"
head -c 3M /dev/urandom >"$work/source/data"
cp -a /etc/passwd "$work/source/dir/passwd"
mkdir "$mnt/s" "$mnt/t"
cp -a "$work/source" "$mnt/s/one.partial"
mv -T "$mnt/s/one.partial" "$mnt/s/one"
"$VARVE" -q wait "$repo" s/one

# What the first machine has not sealed yet: files, one of them changed through a mapping.
cp -a "$work/source" "$mnt/s/two.partial"
mkfifo "$work/go"
: >"$work/answer"
python3 "$here/fenced_writer.py" "$mnt/s/two.partial" <"$work/go" >"$work/answer" &
writer=$!
exec 8>"$work/go"
wait_until "the writer is ready" grep -q ready "$work/answer"
truncate -s 100000 "$work/source/mapped"
printf 'by the mapping' | dd of="$work/source/mapped" bs=1 seek=5000 conv=notrunc status=none
printf 'before' >"$work/source/open"
mkdir "$mnt/t/one.partial"

"$VARVE" -q attach --write "$place" "$work/second"
"$VARVE" -q store --allow-shrunk "$work/second" s/other "$work/source/dir"

expect_status 11 "$VARVE" seal "$mnt/t/one.partial"
message_says 'another folder writes'
wait_until "the daemon notices" grep -q 'another folder writes' "$work/daemon.log"
exec 8>&-
wait "$writer"
[ "$(tail -1 "$work/answer")" = refused ] || fail "$(cat "$work/answer")"
grep -qE "Only this folder has: t/one.*varve copy.*can only be read.*attach --write $place DIR" "$work/daemon.log" ||
  fail "$(cat "$work/daemon.log")"
ok "the mount refuses every kind of change, and the log says why"

cmp "$work/source/data" "$mnt/s/two.partial/data"
same_tree --ignore holes "$work/source/dir" "$mnt/s/one/dir"
ls "$mnt/s" "$mnt/t" >/dev/null
ok "all versions can be read"

expect_status 2 "$VARVE" status "$repo"
grep -qE "another folder writes.*attach --write $place DIR" "$work/stdout" || fail "$(cat "$work/stdout")"
grep -q 'only in this folder; `varve copy`' "$work/stdout" || fail "$(cat "$work/stdout")"
expect_status 1 "$VARVE" clone "$mnt/s/one" "$mnt/s/three.partial"
message_says 'another folder writes'
expect_status 1 "$VARVE" store "$repo" s/three "$work/source"
message_says 'another folder writes'
ok "status says what to do, and commands make no version"

expect_status 11 "$VARVE" seal "$mnt/s/two.partial"
message_says 'another folder writes'
touch -r "$mnt/s/two" "$work/source"
for name in mapped open; do touch -r "$mnt/s/two/$name" "$work/source/$name"; done
same_tree --ignore holes "$work/source" "$mnt/s/two"
expect_status 11 unmount_repo
wait "$daemon" || true
ok "an open version can be sealed, with all that was written before"

"$VARVE" -q init "$work/rescue"
"$VARVE" -q copy "$repo" "$work/rescue"
"$VARVE" -q restore "$work/rescue" s/two "$work/rescued"
same_tree --ignore holes "$work/source" "$work/rescued"
"$VARVE" ls "$work/second" s >"$work/list"
grep -q other "$work/list" || fail "$(cat "$work/list")"
"$VARVE" -q check --read-data "$work/second"
ok "varve copy rescues it, and the other machine goes on"

# What the fenced folder says, and what it does not advise.
"$VARVE" check --quick "$repo" >"$work/stdout" 2>"$work/stderr" || fail "$(cat "$work/stdout" "$work/stderr")"
grep -q "another folder writes.*attach --write $place DIR" "$work/stderr" || fail "$(cat "$work/stderr")"
expect_status 11 "$VARVE" wait "$repo"
message_says "another folder writes.*attach --write $place DIR"
expect_status 11 "$VARVE" repair --yes "$repo"
message_says "not repaired from a folder that does not write any more: .*attach --write $place DIR"
"$VARVE" status "$repo" >"$work/stdout" || true
if grep -qE 'varve (wait|repair)' "$work/stdout"; then fail "useless advice: $(cat "$work/stdout")"; fi
"$VARVE" -q attach "$place" "$work/reader"
expect_status 1 "$VARVE" store "$work/reader" s/late "$work/source"
message_says "varve status $work/reader. names it.*attach --write $place $work/reader"
ok "a check, a repair, a wait and a store say what helps"
