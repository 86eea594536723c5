#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The store has lost the newest head with its copy, and no list shows that the head existed. The
# catalog objects that no head names show it: a takeover says so, and needs --accept-older once.
limit_s=200
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
start_store
keeper=$work/keeper

"$VARVE" -q init "$place" --local="$repo"
for name in one two three; do
  mkdir "$work/$name"
  head -c 300K /dev/urandom >"$work/$name/data"
done
"$VARVE" -q store "$repo" s/one "$work/one"
"$VARVE" -q attach "$place" "$keeper"
"$VARVE" -q attach --write "$place" "$work/writer" || fail "no head is lost"
"$VARVE" ls "$keeper" >/dev/null
cp -a "$keeper" "$work/kept"
"$VARVE" -q store "$work/writer" s/two "$work/two"
names=$(store_command names /head/)
head=$(tr ' ' '\n' <<<"$names" | grep -v copy | sort | tail -1)
[ "$(store_command save laptop)" -gt 5 ]
cp -a "$work/writer" "$work/kept_writer"

lose_head() { [ "$(store_command lose "$head")" = 2 ]; }
lose_head
for folder in "$keeper" "$work/fresh"; do
  expect_status 1 "$VARVE" attach --write "$place" "$folder"
  message_says 'no head names .* catalog objects.*--accept-older'
done
"$VARVE" ls "$keeper" s >"$work/list"
grep -q one "$work/list"
ok "a takeover says that a head is lost, and changes nothing"

# Another takeover may be interrupted. What it has uploaded is no loss. The store tells the times of objects in seconds.
next_second
"$VARVE" -q --accept-older attach --write "$place" "$work/fresh"
"$VARVE" -q --accept-older restore "$work/fresh" s/one "$work/out"
diff -r "$work/one" "$work/out"
"$VARVE" -q store "$work/fresh" s/three "$work/three"
"$VARVE" -q attach --write "$place" "$work/next" || fail "the objects of the lost head block another takeover"
"$VARVE" ls "$work/next" s >"$work/list"
grep -q three "$work/list"
expect_status 11 "$VARVE" store "$work/writer" s/late "$work/two"
message_says 'another folder writes'
ok "--accept-older goes on, once, and the writer that knows the lost head is fenced"

store_command undo >/dev/null
lose_head
rm -rf "$keeper"
cp -a "$work/kept" "$keeper"
"$VARVE" -q --accept-older attach --write "$place" "$keeper"
"$VARVE" -q store "$keeper" s/three "$work/three"
"$VARVE" -q attach "$place" "$work/reader"
"$VARVE" -q restore "$work/reader" s/three "$work/out3"
diff -r "$work/three" "$work/out3"
ok "a promoted folder goes on"

store_command undo >/dev/null
lose_head
rm -rf "$work/writer"
cp -a "$work/kept_writer" "$work/writer"
"$VARVE" -q repair --yes "$work/writer"
rm -rf "$work/fresh"
"$VARVE" -q attach --write "$place" "$work/fresh"
"$VARVE" ls "$work/fresh" s >"$work/list"
grep -q two "$work/list"
ok "a repair in the folder that writes makes the option needless"

