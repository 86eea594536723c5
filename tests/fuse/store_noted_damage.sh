#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A check of all objects finds rot that no list shows. `varve repair` without --read-store reads the
# objects that the check named, and heals them; checks and repairs of an attached folder compare the
# store with its newest state.
limit_s=200
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
start_store
keeper=$work/keeper
sound() { "$VARVE" check --quick --read-store "$1" >"$work/said" 2>&1 || fail "$1: $(cat "$work/said")"; }
status_is() {  # STATUS FOLDER
  expect_status "$1" "$VARVE" status "$2"
}

"$VARVE" -q init --parity 10 "$place" --local="$repo"
for name in one two three; do
  mkdir "$work/$name"
  head -c 1M /dev/urandom >"$work/$name/data"
done
"$VARVE" -q store "$repo" s/one "$work/one"
"$VARVE" -q store "$repo" s/two "$work/two"
"$VARVE" -q attach "$place" "$keeper"
(repo=$keeper; mount_as_job -o ro; cat "$mnt"/s/*/* >/dev/null; "$VARVE" umount "$mnt"; wait "$daemon" || true)
[ "$(store_command save laptop)" -gt 5 ]
cp -a "$repo" "$work/kept"
cp -a "$keeper" "$work/kept_keeper"

for reads in "" --read-data; do
  [ "$(store_command rot /seg/)" -ge 1 ]
  expect_status 1 "$VARVE" check --quick --read-store "$repo"
  status_is 2 "$repo"
  expect_status 1 "$VARVE" check $reads "$repo"
  grep -q '/seg/.*other bytes' "$work/stdout" || fail "a check forgets the damage: $(cat "$work/stdout")"
  status_is 2 "$repo"
  "$VARVE" -q repair --yes "$repo"
  status_is 0 "$repo"
  sound "$repo"
  expect_status 0 "$VARVE" repair "$repo"
  grep -q 'nothing more to repair' "$work/stdout"
  rm -rf "$repo"
  cp -a "$work/kept" "$repo"
  store_command undo >/dev/null
done
ok "a repair reads what a check of all objects has named"

[ "$(store_command rot /seg/)" -ge 1 ]
expect_status 1 "$VARVE" check --quick --read-store "$repo"
[ "$(store_command rot /seg/)" -ge 1 ]  # The store has the right bytes again.
"$VARVE" -q check --quick "$repo"
status_is 0 "$repo"
ok "an object that is whole again is no damage"

[ "$(store_command rot /seg/)" -ge 1 ]
expect_status 1 "$VARVE" check --quick --read-store "$keeper"
status_is 2 "$keeper"
"$VARVE" -q repair --yes "$keeper"
status_is 0 "$keeper"
sound "$keeper"
ok "a repair in an attached folder does, too"

# The keeper shows an older state than the store's newest one.
store_command undo >/dev/null
rm -rf "$keeper"
cp -a "$work/kept_keeper" "$keeper"
"$VARVE" -q store "$repo" s/three "$work/three"
[ "$(store_command rot /seg/)" -ge 2 ]
expect_status 1 "$VARVE" check --quick --read-store "$repo"
"$VARVE" -q repair --yes "$repo"
"$VARVE" check --quick --read-store "$keeper" >"$work/stdout" 2>"$work/stderr" ||
  fail "a false alarm after the writer's repair: $(cat "$work/stdout")"
cp -a "$work/kept_keeper" "$work/blind"
names=$(store_command names /head/)
head=$(tr ' ' '\n' <<<"$names" | grep -v copy | sort | tail -1)
[ "$(store_command rot "$head")" = 2 ]
expect_status 1 "$VARVE" check "$work/blind"
grep -q 'head/.*is lost' "$work/stdout" || fail "$(cat "$work/stdout")"
expect_status 1 "$VARVE" repair --yes "$work/blind"
message_says 'head/.*is lost.*varve repair.*in the folder that writes.*--accept-older attach --write'
[ "$(store_command rot "$head")" = 2 ]
names=$(store_command names /seg/)
lost=$(tr ' ' '\n' <<<"$names" | tail -1)
[ "$(store_command lose "$lost")" = 1 ]
expect_status 1 "$VARVE" check --quick "$work/blind"
grep -q "$lost.*is missing" "$work/stdout" || fail "blind for a new version: $(cat "$work/stdout")"
ok "an attached folder follows before it checks or repairs"

# The newest head, which the keeper has.
store_command undo >/dev/null
rm -rf "$keeper"
cp -a "$work/kept_keeper" "$keeper"
names=$(store_command names /head/)
head=$(tr ' ' '\n' <<<"$names" | grep -v copy | sort | tail -1)
[ "$(store_command rot "$head")" = 2 ]
"$VARVE" -q repair --yes "$keeper"
"$VARVE" -q attach "$place" "$work/fresh"
sound "$work/fresh"
store_command lose "$head" >/dev/null
expect_status 1 "$VARVE" ls "$keeper"
message_says "varve repair"
ok "an attached folder puts the newest head back"
