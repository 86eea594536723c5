#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Puts back an older catalog. Readers show what it has, with a warning. After a deletion that was killed
# at a call that changes the disk, a writer refuses the older catalog, or no data was removed yet.
limit_s=300
. "$(dirname "$0")/lib.sh"
: "${VARVE_FAULTY_DISK:?is the path of the library made from faulty_disk.cc}"

mkdir "$work/one" "$work/two"
head -c 300000 /dev/urandom >"$work/one/x"
head -c 300000 /dev/urandom >"$work/two/y"
master=$work/master

fresh() {
  rm -rf "$repo"
  cp -a "$master" "$repo"
}
deletes() {  # VARIABLE=VALUE…: deletes a version on the faulty disk
  env LD_PRELOAD="$VARVE_FAULTY_DISK" DISK_BELOW="$repo" "$@" \
    "$VARVE" -q rm --no-arrange "$repo" a/1 >/dev/null 2>&1
}
put_back() {
  rm -r "$repo/catalog"
  cp -a "$master/catalog" "$repo/catalog"
}

# ---- Readers. ----

rm -rf "$master"
"$VARVE" -q init "$master"
"$VARVE" -q store "$master" a/1 "$work/one" >/dev/null
fresh
# Arranging would move the data of the version that the older catalog shows.
"$VARVE" -q store --no-arrange "$repo" a/2 "$work/two" >/dev/null
expect_status 0 "$VARVE" ls "$repo"
[ -z "$(cat "$work/stderr")" ] || fail "a warning about a sound catalog: $(cat "$work/stderr")"
expect_status 0 "$VARVE" check --outer "$repo"
put_back
expect_status 1 "$VARVE" check --outer "$repo"
grep -m1 '^damage' "$work/stdout" | grep -q 'catalog: .*older than the rest' || fail "check --outer says $(cat "$work/stdout")"
older='newer versions are not shown: .*older than the rest'
"$VARVE" ls "$repo" a >"$work/out" 2>"$work/err" || fail "ls: $(cat "$work/err")"
grep -q "$older" "$work/err" || fail "ls says nothing of the older catalog: $(cat "$work/err")"
"$VARVE" restore "$repo" a/latest "$work/latest" >"$work/out" 2>"$work/err" || fail "restore: $(cat "$work/err")"
grep -q "$older" "$work/err" || fail "restore says nothing of the older catalog: $(cat "$work/err")"
cmp "$work/one/x" "$work/latest/x"
rm -r "$work/latest"
expect_status 2 "$VARVE" status "$repo"
head -1 "$work/stdout" | grep -q '^CRITICAL - the catalog is older than the rest' || fail "$(cat "$work/stdout")"
"$VARVE" mount -o ro "$repo" "$mnt" 2>"$work/err" || fail "mount: $(cat "$work/err")"
grep -q "$older" "$work/err" || fail "a mount says nothing of the older catalog: $(cat "$work/err")"
"$VARVE" umount "$mnt"
expect_status 3 "$VARVE" copy "$repo" "$work/copied"
message_says 'newer versions are not copied: the catalog of the source is older'
"$VARVE" -q restore "$work/copied" a/1 "$work/latest"
cmp "$work/one/x" "$work/latest/x"
expect_status 1 "$VARVE" copy --prune "$repo" "$work/copied"
message_says 'Nothing was deleted; run .varve repair.'
rm -r "$work/latest" "$work/copied"
expect_status 1 "$VARVE" scrub "$repo"
grep -m1 '^damage\|older than' "$work/stdout" | grep -q 'older than the rest' || fail "scrub says $(cat "$work/stdout")"
"$VARVE" repair --yes "$repo" >/dev/null 2>&1
expect_status 0 "$VARVE" scrub "$repo"
expect_status 0 "$VARVE" status "$repo"
expect_status 0 "$VARVE" restore "$repo" a/latest "$work/latest"
cmp "$work/two/y" "$work/latest/y"
rm -r "$work/latest"
ok "readers warn of an older catalog, and status is critical, until a repair"

# Manifests are newer than both.
for labels in older empty missing; do
  fresh
  for n in 3 4; do "$VARVE" -q store "$repo" a/$n "$work/two" >/dev/null; done
  put_back
  case $labels in
    older) cp -a "$master/series/00000001/labels" "$repo/series/00000001/labels" ;;
    empty) : >"$repo/series/00000001/labels" ;;
    missing) rm "$repo/series/00000001/labels" ;;
  esac
  "$VARVE" ls "$repo" a >/dev/null 2>"$work/err" || fail "ls: $(cat "$work/err")"
  grep -q "$older" "$work/err" || fail "labels $labels: ls says nothing: $(cat "$work/err")"
  expect_status 2 "$VARVE" status "$repo"
  expect_status 1 "$VARVE" check "$repo"
  expect_status 1 "$VARVE" check --outer "$repo"
  grep -q 'older than the rest' "$work/stdout" || fail "labels $labels: check --outer says $(cat "$work/stdout")"
  expect_status 1 "$VARVE" store "$repo" a/5 "$work/two"
  expect_status 1 "$VARVE" rm "$repo" a/1
  "$VARVE" repair --yes "$repo" >"$work/out" 2>&1 || [ $? -eq 3 ] || fail "$(cat "$work/out")"
  for n in 3 4; do
    "$VARVE" -q restore "$repo" "a/$n" "$work/restored"
    cmp "$work/two/y" "$work/restored/y"
    rm -r "$work/restored"
  done
done
ok "a catalog and labels that are both older than manifests are refused, and a repair brings all back"

# The older catalog has the only copy of a tree.
for manifest in missing damaged; do
  fresh
  "$VARVE" -q store "$repo" a/3 "$work/two" >/dev/null
  put_back
  lost=$repo/series/00000001/manifests/00000001.man
  if [ $manifest = missing ]; then rm "$lost"; else truncate -s 100 "$lost"; fi
  expect_status 0 "$VARVE" repair --yes "$repo"
  grep -q 'the catalog in place has all of a/1' "$work/stdout" "$work/stderr" || fail "$(cat "$work/stdout" "$work/stderr")"
  for version in "a/1 one/x" "a/3 two/y"; do
    "$VARVE" -q restore "$repo" "${version% *}" "$work/restored"
    cmp "$work/${version#* }" "$work/restored/${version##*/}"
    rm -r "$work/restored"
  done
  expect_status 0 "$VARVE" repair --yes "$repo"
  "$VARVE" -q check --read-data "$repo" >"$work/check" || fail "$manifest: $(cat "$work/check")"
done
ok "a repair takes the tree of a manifest that is lost from the older catalog"

# Nothing but a lost version's chunks tells its number.
fresh
"$VARVE" -q store "$repo" a/2 "$work/two" >/dev/null
rm -r "$repo/catalog" "$repo/series/00000001/labels" "$repo/series/00000001/manifests/00000002.man"
expect_status 3 "$VARVE" repair --yes "$repo"
expect_status 0 "$VARVE" store "$repo" a/3 "$work/two"
"$VARVE" -q check --read-data "$repo" >"$work/check" || fail "$(cat "$work/check")"
ok "the next version after a repair does not get the number of a lost one"

# ---- A deletion that was killed. ----

for placement in lineage pool; do
  rm -rf "$master"
  "$VARVE" -q init --placement $placement --compression none "$master"
  "$VARVE" -q store "$master" a/1 "$work/one" >/dev/null
  "$VARVE" -q store "$master" a/2 "$work/two" >/dev/null
  fresh
  rm -f "$work/calls"
  deletes DISK_CALLS_IN="$work/calls"
  calls=$(stat -c %s "$work/calls")
  [ "$calls" -gt 8 ] || fail "only $calls calls were counted"
  refused=0 accepted=0
  for ((at = 1; at <= calls; at++)); do
    fresh
    (deletes DISK_KILLS_AT=$at) 2>/dev/null && fail "it survived the kill at call $at" || true
    put_back
    if "$VARVE" -q store "$repo" b/1 "$work/two" >/dev/null 2>"$work/err"; then
      accepted=$((accepted + 1))
      "$VARVE" check --read-data "$repo" >"$work/check" 2>&1 ||
        fail "$placement, killed at call $at of $calls: $(cat "$work/check")"
      "$VARVE" -q restore "$repo" a/1 "$work/restored"
      cmp "$work/one/x" "$work/restored/x"
      rm -r "$work/restored"
    else
      refused=$((refused + 1))
      grep -q 'older than the rest' "$work/err" || fail "call $at: $(cat "$work/err")"
      expect_status 1 "$VARVE" check "$repo"
      grep -q 'older than the rest' "$work/stdout" "$work/stderr" ||
        fail "check does not say that the catalog is older: $(cat "$work/stdout" "$work/stderr")"
      "$VARVE" repair --yes "$repo" >/dev/null
      "$VARVE" -q restore "$repo" a/2 "$work/restored"
      cmp "$work/two/y" "$work/restored/y"
      rm -r "$work/restored"
    fi
  done
  [ $refused -gt 0 ] && [ $accepted -gt 0 ] || fail "$accepted accepted, $refused refused"
  ok "$placement: killed at each of $calls calls; an older catalog was accepted $accepted times, with all data"
done

# ---- The labels are of a catalog that a repair has replaced. ----

rm -rf "$master"
"$VARVE" -q init "$master"
"$VARVE" -q store "$master" a/1 "$work/one" >/dev/null
fresh
"$VARVE" -q mv "$repo" a b
cp "$repo/series/00000001/labels" "$work/labels"
"$VARVE" -q mv "$repo" b c
"$VARVE" -q store "$repo" c/2 "$work/two" >/dev/null
"$VARVE" -q rm "$repo" c/1 >/dev/null
for rebuilds in 1 2; do
  "$VARVE" -q repair --yes --rebuild-catalog "$repo" >/dev/null
  cp -a "$repo" "$work/rebuilt"
  cp "$work/labels" "$repo/series/00000001/labels"
  expect_status 0 "$VARVE" ls "$repo"
  [ "$(cat "$work/stdout")" = c/2 ] && [ -z "$message" ] || fail "ls: $(cat "$work/stdout") $message"
  expect_status 0 "$VARVE" repair --yes "$repo"
  ! grep -qE 'catalog: |lost' "$work/stdout" || fail "the repair says $(cat "$work/stdout")"
  [ "$("$VARVE" ls "$repo")" = c/2 ]
  "$VARVE" -q check --read-data "$repo" >"$work/check" || fail "$(cat "$work/check")"
  cp "$work/labels" "$repo/series/00000001/labels"
  expect_status 0 "$VARVE" store "$repo" c/3 "$work/one"
  "$VARVE" -q check --read-data "$repo" >"$work/check" || fail "$(cat "$work/check")"
  rm -r "$repo"
  mv "$work/rebuilt" "$repo"
done
rm -r "$repo/catalog"
cp -a "$master/catalog" "$repo/catalog"
expect_status 1 "$VARVE" store "$repo" c/3 "$work/one"
message_says 'older than the rest'
ok "labels of a catalog that a repair has replaced are older than the catalog"
