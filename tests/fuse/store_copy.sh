#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Second copies in an object store, and from one: varve copy REPO s3://… and back, plain and
# encrypted, interrupted and continued.
limit_s=240
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
start_store
second=${place}-copy

mkdir -p "$work/source"
head -c 2M /dev/urandom >"$work/source/data"
"$VARVE" -q init "$repo"
"$VARVE" -q store "$repo" s/one "$work/source"
"$VARVE" -q store "$repo" s/two "$work/source"

expect_status 2 "$VARVE" copy "$repo" "$second"
message_says '--local=DIR'
expect_status 2 "$VARVE" copy "$repo" "$work/x" --local="$work/y"
message_says 's3://BUCKET/PREFIX'
"$VARVE" -q copy "$repo" "$second" --local="$work/second"
"$VARVE" -q attach "$second" "$work/reader"
for name in one two; do
  "$VARVE" -q restore "$work/reader" "s/$name" "$work/restored-$name"
  same_tree --ignore holes "$work/source" "$work/restored-$name"
done
ok "copy makes a repository in the store, and ends when it is replicated"
"$VARVE" config --json "$repo" | grep -q '"dead_percent": *7[.0]*[,}]'
"$VARVE" config --json "$work/second" | grep -q '"dead_percent": *20[.0]*[,}]'
ok "a copy in a store has the default of a store for dead space"

echo more >"$work/source/more"
"$VARVE" -q store "$repo" s/three "$work/source"
"$VARVE" copy "$repo" "$second" >"$work/stdout" 2>"$work/stderr"
grep -q 'copied 1 versions; 2 were there' "$work/stderr"
"$VARVE" ls "$work/reader" s >"$work/list"
grep -q three "$work/list"
expect_status 1 "$VARVE" copy "$repo" s3://varve-test/other --local="$work/second"
message_says "belongs to $second"
ok "a later copy sends what is new, and needs no --local"

"$VARVE" -q copy "$second" "$work/back"
"$VARVE" -q check --read-data "$work/back"
"$VARVE" -q restore "$work/back" s/three "$work/restored-three"
same_tree --ignore holes "$work/source" "$work/restored-three"
ok "copy reads a repository of the store"

export XDG_STATE_HOME=$work/state2
"$VARVE" -q copy "$second" "$work/back2" 2>"$work/stderr"
"$VARVE" -q restore "$work/back2" s/three "$work/restored-again"
same_tree --ignore holes "$work/source" "$work/restored-again"
ok "also on a machine that has no folder of it"

# Encrypted both ways.
(umask 077 && echo lacustrine-clay >"$work/key1" && echo river-sand >"$work/key2")
third=${place}-encrypted
"$VARVE" -q copy --encrypt --target-passphrase-file "$work/key1" "$repo" "$third" --local="$work/third"
"$VARVE" -q copy --target-passphrase-file "$work/key1" "$repo" "$third"
export VARVE_PASSPHRASE_FILE=$work/key1
expect_status 10 "$VARVE" copy "$third" "$work/plain"
message_says 'must be encrypted'
"$VARVE" -q copy --encrypt --target-passphrase-file "$work/key2" "$third" "$work/fourth"
VARVE_PASSPHRASE_FILE=$work/key2 "$VARVE" -q check --read-data "$work/fourth"
"$VARVE" -q copy --plain "$third" "$work/plain"
unset VARVE_PASSPHRASE_FILE
"$VARVE" -q restore "$work/plain" s/three "$work/restored-plain"
same_tree --ignore holes "$work/source" "$work/restored-plain"
ok "encrypted repositories are copied both ways"

# The store fails during the upload: Ctrl-C loses nothing, and the same command goes on.
head -c 1M /dev/urandom >"$work/source/four"
"$VARVE" -q store "$repo" s/four "$work/source"
stop_store
export XDG_STATE_HOME=$work/state
"$VARVE" copy "$repo" "$second" >"$work/stdout" 2>"$work/stderr" &
copying=$!
wait_until "the copy waits for the store" grep -qE 'not replicated yet|trying again|waiting until' "$work/stderr"
kill -TERM "$copying"
status=0
wait "$copying" || status=$?
[ "$status" -eq 130 ] || fail "status $status: $(cat "$work/stderr")"
grep -q 'is safe there' "$work/stderr" || fail "$(cat "$work/stderr")"
start_store_again
"$VARVE" ls "$work/second" s >"$work/list"
grep -q four "$work/list"
"$VARVE" -q copy "$repo" "$second"
"$VARVE" ls "$work/reader" s >"$work/list"
grep -q four "$work/list"
ok "an interrupted copy says that nothing is lost, and goes on"
