#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The catalog is lost, and labels do not list a sealed version: its data decides, unless the labels note its deletion.
limit_s=300
. "$(dirname "$0")/lib.sh"

mkdir "$work/source"
export XDG_STATE_HOME=$work/memory
store() {  # VERSION: stores the source with one more folder
  mkdir "$work/source/folder $1"
  head -c 200000 /dev/urandom >"$work/source/folder $1/x"
  "$VARVE" -q store "$repo" "s/$1" "$work/source" >/dev/null
}
labels=$repo/series/00000001/labels
length() { stat -c %s "$labels"; }
# Stores three versions. Labels lose the update of the second one, or come from a state that has deleted the last two.
store_three() {  # HOW ARGUMENTS-OF-INIT…
  local how=$1
  shift
  rm -rf "$repo" "$work/memory" "$work/tree.2" "$work/other"
  find "$work/source" -mindepth 1 -delete
  "$VARVE" -q init "$@" "$repo"
  store 1
  local -i first second
  first=$(length)
  before=$(find "$repo" -name '*.seg' | sort)
  store 2
  second=$(length)
  data_of_2=$(comm -13 <(echo "$before") <(find "$repo" -name '*.seg' | sort))
  cp -a "$work/source" "$work/tree.2"
  store 3
  if [ "$how" = cut ]; then
    [ "$first" -lt "$second" ] && [ "$second" -lt "$(length)" ] || fail "the labels did not get updates"
    { head -c "$first" "$labels" && tail -c +$((second + 1)) "$labels"; } >"$work/labels"
  else
    cp -a "$repo" "$work/other"
    "$VARVE" -q rm "$work/other" s/2 s/3 >/dev/null
    cp "$work/other/series/00000001/labels" "$work/labels"
    rm -rf "$work/memory"
  fi
  cp "$work/labels" "$labels"
}
lose_catalog() { rm -r "$repo/catalog"; }
has() { "$VARVE" ls "$repo" | grep -qx "s/$1"; }

for kind in lineage:cut lineage:other pool:other encrypted:other; do
  arguments_of "${kind%:*}"
  store_three "${kind#*:}" "${arguments[@]}"
  lose_catalog
  expect_status 0 "$VARVE" repair --yes "$repo"
  message_says 's/2: the labels of the series neither list this version nor note its deletion, but all its data is here'
  for version in 1 2 3; do has $version || fail "$kind: s/$version is gone"; done
  "$VARVE" -q restore "$repo" s/2 "$work/out"
  diff -r "$work/tree.2" "$work/out"
  rm -r "$work/out"
  "$VARVE" -q check --read-data "$repo" >"$work/check" || fail "$kind: $(cat "$work/check")"
  expect_status 0 "$VARVE" repair --yes "$repo"
  ok "$kind: a rebuild keeps a whole version that the labels do not know, and says so"

  # All data of s/2 is in s/3, and s/3 may need pages of its manifest.
  "$VARVE" -q rm "$repo" s/2 >/dev/null
  [ -e "$repo/series/00000001/manifests/00000002.man" ] || fail "$kind: no manifest of s/2 is left"
  lose_catalog
  expect_status 0 "$VARVE" repair --yes "$repo"
  ! has 2 || fail "$kind: a deleted version came back"
  for version in 1 3; do has $version || fail "$kind: s/$version is gone"; done
  "$VARVE" -q check --read-data "$repo" >"$work/check" || fail "$kind: $(cat "$work/check")"
  ok "$kind: a version does not come back after its deletion, though others have its data"
done

unset VARVE_KEY_FILE
store_three cut
# shellcheck disable=SC2086  # The names are lines without spaces.
rm $data_of_2
lose_catalog
expect_status 3 "$VARVE" repair --yes "$repo"
grep -q 's/2: the labels of the series neither list this version nor note its deletion, and a part of its data is missing' \
  "$work/stdout" || fail "the repair does not name s/2: $(cat "$work/stdout")"
kept=$(find "$repo" -name '00000002.man.damaged-1')
[ -n "$kept" ] || fail "the manifest of s/2 is not kept"
! has 2 || fail "a version without its data came back"
expect_status 3 "$VARVE" repair --yes "$repo"
grep -q "$kept" "$work/stdout" || fail "the second repair does not name $kept"
ok "a version that the labels do not know and that lacks data is named, and its manifest is kept"

# A mount point cannot be removed. The deletion, and then an opening with the former labels, try.
rm -rf "$repo"
find "$work/source" -mindepth 1 -delete
"$VARVE" -q init "$repo"
for version in 1 2 3; do store $version; done
manifest=$repo/series/00000001/manifests/00000003.man
cp "$labels" "$work/labels"
if mount --bind "$manifest" "$manifest" 2>/dev/null; then
  "$VARVE" rm "$repo" s/3 2>"$work/said" >/dev/null
  grep -q 00000003.man "$work/said" || fail "nothing was said: $(cat "$work/said")"
  cp "$work/labels" "$labels"
  rm -f "$repo/settled"
  "$VARVE" -q ls "$repo" >/dev/null 2>&1
  "$VARVE" arrange "$repo" >/dev/null 2>"$work/said" || fail "the opening failed: $(cat "$work/said")"
  umount "$manifest"
  [ -e "$manifest" ] || fail "the manifest was removed"
  has 3 && fail "a deleted version is listed"
  cp -a "$repo" "$work/copy"
  lose_catalog
  expect_status 0 "$VARVE" repair --yes "$repo"
  ! has 3 || fail "a deleted version came back"
  for version in 1 2; do has $version || fail "s/$version is gone"; done
  "$VARVE" -q check --read-data "$repo" >"$work/check" || fail "$(cat "$work/check")"
  rm -r "$repo" && mv "$work/copy" "$repo"
  "$VARVE" -q rm "$repo" s/2 >/dev/null
  [ ! -e "$manifest" ] || fail "the next deletion did not remove the manifest"
  ok "a manifest that cannot be removed brings nothing back, and goes with the next deletion"
else
  skip_part "no bind mount of a file"
fi
