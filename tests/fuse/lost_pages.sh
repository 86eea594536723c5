#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The catalog is lost together with a manifest. All versions that need a page of it count as incomplete, and so do their
# clones.
limit_s=120
. "$(dirname "$0")/lib.sh"

mkdir "$work/tree"
"$VARVE" -q init "$repo"
for version in 1 2 3; do
  mkdir "$work/tree/folder $version"
  head -c 50000 /dev/urandom >"$work/tree/folder $version/file"
  "$VARVE" -q store "$repo" s/$version "$work/tree" >/dev/null
done
rm "$repo/series/00000001/manifests/00000002.man"
rm -r "$repo/catalog"
problems() {  # Prints the names of the incomplete versions.
  "$VARVE" ls --json "$repo" | python3 -c '
import json, sys
for line in sys.stdin:
    version = json.loads(line)
    if version.get("problems"): print(version["version"], end=" ")'
}
expect_status 3 "$VARVE" repair --yes "$repo"
[ "$(problems)" = "2 3 " ] || fail "incomplete are: $(problems)"
expect_status 1 "$VARVE" status "$repo"
grep -q 'newest version of s, 3, is incomplete' "$work/stdout" || fail "$(cat "$work/stdout")"
"$VARVE" -q clone "$repo" s/3 s/4
"$VARVE" -q seal "$repo" s/4 2>/dev/null
[ "$(problems)" = "2 3 4 " ] || fail "after a clone, incomplete are: $(problems)"
expect_status 3 "$VARVE" repair --yes "$repo"
"$VARVE" -q store "$repo" s/5 "$work/tree" >/dev/null
[ "$(problems)" = "2 3 4 " ] || fail "after a store, incomplete are: $(problems)"
"$VARVE" -q restore "$repo" s/5 "$work/out"
diff -r "$work/tree" "$work/out"
expect_status 0 "$VARVE" status "$repo"
ok "versions that need lost pages, and their clones, count as incomplete"
