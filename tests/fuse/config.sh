#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Prints and changes the settings of series: on a repository, and on a mounted one through its daemon.
. "$(dirname "$0")/lib.sh"

json_is() {  # PYTHON-EXPRESSION OVER `it` -- COMMAND…: runs it with --json, and evaluates its line
  local wanted=$1
  shift 2
  "$@" --json >"$work/json"
  python3 -c 'import json, sys; it = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' \
    "$work/json" "$wanted" || fail "$wanted: $(cat "$work/json")"
}
needs() { grep -q "^features_required = $1\$" "$repo/varve.repo"; }

"$VARVE" init "$repo"
mkdir "$work/source"
echo text >"$work/source/file"
"$VARVE" store "$repo" host3/one "$work/source" >/dev/null
"$VARVE" config "$repo" host3 >"$work/out"
grep -q '^series  *host3$' "$work/out"
grep -q '^placement  *lineage$' "$work/out"
grep -q '^rewrite  *none$' "$work/out"
json_is "it == {'placement': 'lineage', 'rewrite': 'none'}" -- "$VARVE" config "$repo"
VARVE_REPO=$repo "$VARVE" config host3 | grep -q host3
needs none || fail "printing changed the repository"
ok "config prints the settings"

expect_status 1 "$VARVE" config "$repo" nothing
message_says 'no series "nothing"'
expect_status 1 "$VARVE" config "$repo" nothing rewrite=har
expect_status 1 "$VARVE" config "$repo" host3/one
message_says 'not a series'
expect_status 1 "$VARVE" config "$repo" host3 color=red
message_says 'the settings are placement and rewrite'
expect_status 1 "$VARVE" config "$repo" host3 placement=forest
message_says 'lineage, lineage\+pool, pool'
expect_status 1 "$VARVE" config "$repo" host3 rewrite=cap+har
message_says 'none, har, cap, cbr, har\+cap, har\+cbr'
expect_status 1 "$VARVE" config "$repo" host3 rewrite=har rewrite=cap
expect_status 1 "$VARVE" config "$repo" host3 rewrite
message_says 'KEY=VALUE'
expect_status 10 "$VARVE" config "$work/source" host3
needs none || fail "a refused change changed the repository"
ok "config refuses what it does not know"

"$VARVE" config "$repo" host3 rewrite=har 2>"$work/err"
grep -q 'versions opened from now on' "$work/err" || fail "it says: $(cat "$work/err")"
json_is "it == {'series': 'host3', 'placement': 'lineage', 'rewrite': 'har'}" -- \
  "$VARVE" config "$repo" host3
needs pool || fail "the superblock does not name the feature"
"$VARVE" check --read-data "$repo"
ok "a change is kept, and names the feature"

mount_repo
"$VARVE" config "$mnt/host3" rewrite=cap
json_is "it['rewrite'] == 'cap'" -- "$VARVE" config "$repo" host3
json_is "it['rewrite'] == 'cap'" -- "$VARVE" config "$mnt/host3"
"$VARVE" config "$mnt" rewrite=cbr
mkdir "$mnt/host4"
json_is "it == {'series': 'host4', 'placement': 'lineage', 'rewrite': 'cbr'}" -- \
  "$VARVE" config "$mnt/host4"
json_is "it['rewrite'] == 'cap'" -- "$VARVE" config "$repo" host3
mkdir "$mnt/host3/two.partial"
expect_status 1 "$VARVE" config "$mnt/host3" placement=pool
message_says 'host3/two.partial is open; seal'
expect_status 1 "$VARVE" config "$mnt/host3/one" rewrite=har
expect_status 1 "$VARVE" config "$mnt/host5" rewrite=har
"$VARVE" config "$mnt/host3" placement=lineage rewrite=none
echo more >"$mnt/host3/two.partial/file"
"$VARVE" seal "$mnt/host3/two.partial"
unmount_repo
json_is "it['rewrite'] == 'none'" -- "$VARVE" config "$repo" host3
json_is "it['rewrite'] == 'cbr'" -- "$VARVE" config "$repo"
"$VARVE" check --read-data "$repo"
ok "config works on a mounted repository"

rm -r "$repo/catalog"
"$VARVE" repair --yes "$repo" >/dev/null
json_is "it['rewrite'] == 'cbr'" -- "$VARVE" config "$repo"
json_is "it['rewrite'] == 'cbr'" -- "$VARVE" config "$repo" host4
json_is "it['rewrite'] == 'none'" -- "$VARVE" config "$repo" host3
rm "$repo/varve.repo"
"$VARVE" repair --yes "$repo" >/dev/null
needs pool || fail "the repaired superblock does not name the feature"
ok "a repaired repository has the settings"

repo=$work/other
"$VARVE" init --rewrite har+cap "$repo"
json_is "it == {'placement': 'lineage', 'rewrite': 'har+cap'}" -- "$VARVE" config "$repo"
needs pool || fail "init does not name the feature"
expect_status 1 "$VARVE" init --rewrite more "$work/third"
message_says 'none, har, cap'
[ ! -e "$work/third" ] || fail "a refused init made the folder"
ok "init chooses the rewriting policy of new series"
