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
json_is "(it['placement'], it['rewrite'], it['pool_index']) == ('lineage', 'none', 'exact')" -- \
  "$VARVE" config "$repo"
VARVE_REPO=$repo "$VARVE" config host3 | grep -q host3
needs marks || fail "printing changed the repository"
ok "config prints the settings"

expect_status 1 "$VARVE" config "$repo" nothing
message_says 'no series "nothing"'
expect_status 1 "$VARVE" config "$repo" nothing rewrite=har
expect_status 2 "$VARVE" config "$repo" host3/one
message_says 'not a series'
expect_status 2 "$VARVE" config "$repo" host3 color=red
message_says 'the settings are placement and rewrite'
expect_status 2 "$VARVE" config "$repo" host3 placement=forest
message_says 'lineage, lineage\+pool, pool'
expect_status 2 "$VARVE" config "$repo" host3 rewrite=cap+har
message_says 'none, har, cap, cbr, har\+cap, har\+cbr'
expect_status 2 "$VARVE" config "$repo" host3 rewrite=har rewrite=cap
expect_status 2 "$VARVE" config "$repo" host3 rewrite
message_says 'KEY=VALUE'
expect_status 10 "$VARVE" config "$work/source" host3
needs marks || fail "a refused change changed the repository"
ok "config refuses what it does not know"

"$VARVE" config "$repo" host3 rewrite=har 2>"$work/err"
grep -q 'versions opened from now on' "$work/err" || fail "it says: $(cat "$work/err")"
json_is "it == {'message_type': 'settings', 'series': 'host3', 'placement': 'lineage', 'rewrite': 'har'}" -- \
  "$VARVE" config "$repo" host3
needs "pool marks" || fail "the superblock does not name the feature"
"$VARVE" check --read-data "$repo"
ok "a change is kept, and names the feature"

mount_repo
"$VARVE" config "$mnt/host3" rewrite=cap
json_is "it['rewrite'] == 'cap'" -- "$VARVE" config "$repo" host3
json_is "it['rewrite'] == 'cap'" -- "$VARVE" config "$mnt/host3"
"$VARVE" config "$mnt" rewrite=cbr
mkdir "$mnt/host4"
json_is "it == {'message_type': 'settings', 'series': 'host4', 'placement': 'lineage', 'rewrite': 'cbr'}" -- \
  "$VARVE" config "$mnt/host4"
json_is "it['rewrite'] == 'cap'" -- "$VARVE" config "$repo" host3
mkdir "$mnt/host3/two.partial"
expect_status 1 "$VARVE" config "$mnt/host3" placement=pool
message_says 'host3/two.partial is open; seal'
expect_status 2 "$VARVE" config "$mnt/host3/one" rewrite=har
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
needs "pool marks" || fail "the repaired superblock does not name the feature"
ok "a repaired repository has the settings"

repo=$work/other
"$VARVE" init --rewrite har+cap "$repo"
json_is "(it['placement'], it['rewrite'], it['pool_index']) == ('lineage', 'har+cap', 'exact')" -- \
  "$VARVE" config "$repo"
needs "pool marks" || fail "init does not name the feature"
expect_status 2 "$VARVE" init --rewrite more "$work/third"
message_says 'none, har, cap'
[ ! -e "$work/third" ] || fail "a refused init made the folder"
ok "init chooses the rewriting policy of new series"

# The index of the pool is a setting of the repository. The next process builds it.
repo=$work/pool
"$VARVE" init --placement pool --pool-index zero-chunk --compression none "$repo"
"$VARVE" config "$repo" | grep -q '^pool index  *zero-chunk$'
head -c 8000000 /dev/urandom >"$work/source/data"
"$VARVE" store "$repo" a/one "$work/source" >/dev/null
ls "$repo/pool" | grep -q '^index-zero-.*\.bins$' || fail "the chosen index has no file"
stored=$(du -sb "$repo/pool/active" | cut -f1)
expect_status 2 "$VARVE" config "$repo" pool-index=zero-chunk:11
message_says 'N from 6 to 10'
expect_status 2 "$VARVE" config "$repo" a pool-index=exact
message_says 'settings of the repository'
mount_repo
"$VARVE" config "$mnt" pool-index=exact 2>"$work/err"
grep -q 'from the next mount' "$work/err" || fail "it says: $(cat "$work/err")"
mkdir "$mnt/b" "$mnt/b/one.partial"
cp "$work/source/data" "$mnt/b/one.partial/"
mv -T "$mnt/b/one.partial" "$mnt/b/one"
unmount_repo
"$VARVE" store "$repo" c/one "$work/source" >/dev/null
[ -e "$repo/pool/index.snap" ] || fail "the exact index was not built"
! ls "$repo/pool" | grep -q '^index-zero-' || fail "files of the former index are left"
now=$(du -sb "$repo/pool/active" | cut -f1)
[ "$now" -lt $((stored + stored / 20)) ] || fail "the same data was stored again: $stored, then $now bytes"
"$VARVE" check --read-data "$repo"
for series in a b c; do
  "$VARVE" -q restore "$repo" $series/one "$work/restored"
  cmp "$work/source/data" "$work/restored/data"
  rm -r "$work/restored"
done
ok "the index of the pool is chosen at init and later, and finds what the other one knew"

# The stream index uses the files of the exact one, and its daemon tells the streams.
"$VARVE" config "$repo" pool-index=stream
expect_status 1 "$VARVE" stats --streams "$repo"
message_says 'is not mounted'
mount_repo
mkdir "$mnt/d" "$mnt/d/one.partial"
cp "$work/source/data" "$mnt/d/one.partial/"
mv -T "$mnt/d/one.partial" "$mnt/d/one"
"$VARVE" stats --streams "$repo" >"$work/streams"
grep -q '^d  *no  *[0-9]' "$work/streams" || fail "the stream of the series is missing"
json_is "it['series'] == 'd' and it['hits'] > 700" -- \
  sh -c "'$VARVE' stats --streams --json '$repo' | tail -n 1"
cmp "$work/source/data" "$mnt/d/one/data"
unmount_repo
now=$(du -sb "$repo/pool/active" | cut -f1)
[ "$now" -lt $((stored + stored / 20)) ] || fail "the same data was stored again: $stored, then $now bytes"
"$VARVE" check --read-data "$repo"
ok "the stream index finds what the exact one did, and shows its streams"
