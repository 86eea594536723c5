#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An older catalog is back, the folder lacks most of the later state, and the data has moved since: one repair with
# --mixed=skip decides, and a second one changes nothing.
limit_s=120
. "$(dirname "$0")/lib.sh"

mkdir "$work/tree"
"$VARVE" -q init "$repo"
for version in 1 2 3 4 5 6; do
  mkdir "$work/tree/folder $version"
  head -c 300000 /dev/urandom >"$work/tree/folder $version/file"
  [ $version -lt 4 ] || rm -r "$work/tree/folder $((version - 3))"
  "$VARVE" -q store "$repo" s/$version "$work/tree" >/dev/null
  [ $version != 5 ] || cp -a "$repo/catalog" "$work/catalog"
done
"$VARVE" -q arrange --policy original --window 1 "$repo" >/dev/null
"$VARVE" -q rm "$repo" s/1 >/dev/null
"$VARVE" -q arrange --policy original --window 1 "$repo" >/dev/null
rm -r "$repo/catalog" "$repo/series/00000001/manifests/00000006.man"
cp -a "$work/catalog" "$repo/catalog"
expect_status 1 "$VARVE" repair --yes "$repo"
[ -e "$repo/settled" ] || fail "a refused repair removed the note settled"
state() { (cd "$repo" && find . -type f ! -name lock.mdb ! -name settled -exec sha256sum {} + | sort -k 2); }
for round in 1 2; do
  expect_status 3 "$VARVE" repair --yes --mixed=skip "$repo"
  state >"$work/state.$round"
  [ $round = 1 ] && cp "$work/stdout" "$work/first"
done
grep -q 'is kept as .*labels.damaged-1' "$work/first" || fail "the later state was not put away: $(cat "$work/first")"
diff "$work/state.1" "$work/state.2" || fail "the second repair changed the repository: $(cat "$work/stdout")"
ok "a catalog that stays beside a later state is compared with the data by the same repair"
