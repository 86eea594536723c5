#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Locks of the objects in a store: refused where there are none, set, extended in time, checked, and
# shown; and what a thief with the credentials can do.
limit_s=240
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
start_store

mkdir -p "$work/source"
head -c 300K /dev/urandom >"$work/source/data"
refused() {  # TEXT WORD…: the command fails with a message that has the text
  local text=$1
  shift
  if "$VARVE" "$@" >"$work/stdout" 2>"$work/stderr"; then fail "varve $* works"; fi
  grep -q -- "$text" "$work/stderr" || fail "varve $*: $(cat "$work/stderr")"
}

refused 'object-lock-enabled' init "$place" --local="$repo" --object-lock=30
store_command set lock_kind 3 >/dev/null
refused 'shows none' init "$place" --local="$repo" --object-lock=30
store_command set lock_kind 1 >/dev/null
for wrong in 0 3651 x 30,perhaps 30,; do
  refused 'give a number of days' init "$place" --local="$repo" --object-lock="$wrong"
done
refused 's3://BUCKET/PREFIX' init "$repo" --object-lock=30
[ ! -e "$repo" ] || fail "a refused init leaves $repo"
ok "a bucket without locks and a wrong number of days are refused"

"$VARVE" -q init "$place" --local="$repo" --object-lock=30
"$VARVE" config "$place" | grep -qE '^object-lock +30$'
"$VARVE" -q store "$place" s/one "$work/source"
for kind in seg cat other head varve.repo; do
  [[ $(store_command locks "$kind") =~ ^[1-9][0-9]*\ 0\ 30$ ]] || fail "$kind: $(store_command locks "$kind")"
done
[[ $(store_command locks /lease) == "0 1 0" ]]
"$VARVE" -q check "$place"
"$VARVE" status "$place" | grep -qE '^object lock +30 days; the first ends'
ok "all objects but the lease are locked, and the status says until when"

store_command fault busy 0 0 >/dev/null
"$VARVE" -q store "$place" s/two "$work/source"
[ "$(store_command extensions)" = 0 ] || fail "fresh locks are extended"
store_command set clock_offset $((20 * 86400)) >/dev/null  # As if 20 days had passed.
"$VARVE" status "$place" >/dev/null
echo more >>"$work/source/data"
"$VARVE" -q store "$place" s/three "$work/source"
extended=$(store_command extensions)
[ "$extended" -gt 3 ] || fail "$extended locks were extended"
[ "$(store_command locks varve.repo)" = "1 0 30" ] || fail "$(store_command locks varve.repo)"
"$VARVE" -q check "$place"
store_command fault busy 0 0 >/dev/null
"$VARVE" -q store "$place" s/four "$work/source"
[ "$(store_command extensions)" = 0 ] || fail "locks are extended twice"
ok "locks are extended once when less than half of their length is left"

store_command unlock seg >/dev/null
expect_status 1 "$VARVE" check "$place"
grep -q 'seg/.*is not locked' "$work/stdout" || fail "$(cat "$work/stdout")"
grep -q 'the next seals extend them' "$work/stdout" "$work/stderr" || fail "$(cat "$work/stderr")"
"$VARVE" -q store "$place" s/five "$work/source"
"$VARVE" -q check "$place"
ok "a check finds lost locks, and the next seal sets them again"

"$VARVE" -q config "$place" object-lock=90,governance 2>"$work/stderr" || true
"$VARVE" -q config "$place" object-lock=90
"$VARVE" -q store "$place" s/six "$work/source"
[ "$(store_command locks varve.repo)" = "1 0 90" ] || fail "$(store_command locks varve.repo)"
"$VARVE" -q config "$place" object-lock=off
"$VARVE" -q store "$place" s/seven "$work/source"
"$VARVE" -q config "$place" object-lock=90
"$VARVE" -q wait "$place"
"$VARVE" -q check "$place"
ok "the setting changes, and objects without a lock get one"

"$VARVE" -q attach --write "$place" "$work/second"
"$VARVE" config "$work/second" | grep -qE '^object-lock +90$'
"$VARVE" -q store "$work/second" s/eight "$work/source"
"$VARVE" -q check "$work/second"
"$VARVE" -q prune --keep-last 1 "$work/second" s
"$VARVE" -q check "$work/second"
ok "a folder that takes over locks objects, too"

store_command set lock_kind 0 >/dev/null
refused 'does not lock objects' attach --write "$place" "$work/third"
[ ! -e "$work/third/varve.repo" ]
ok "a folder cannot take over where it cannot lock"
