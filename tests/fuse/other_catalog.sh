#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The catalog of another history, which has deleted the versions under the numbers of complete ones, comes into a
# repository: no command removes these versions. A deletion that was killed is no such catalog.
limit_s=300
. "$(dirname "$0")/lib.sh"
: "${VARVE_FAULTY_DISK:?is the path of the library made from faulty_disk.cc}"

mkdir "$work/source"
export XDG_STATE_HOME=$work/memory
store() {  # REPOSITORY VERSION: stores a source with one new file, on a machine that does not know the repository
  rm -rf "$work/memory"
  head -c 200000 /dev/urandom >"$work/source/x"
  "$VARVE" -q store "$1" "$2" "$work/source" >/dev/null
}

for kind in lineage pool encrypted; do
  arguments_of $kind
  master=$work/master
  rm -rf "$work/fork" "$work/tree."* "$master"
  "$VARVE" -q init "${arguments[@]}" "$master"
  head -c 200000 /dev/urandom >"$work/source/common"
  store "$master" s/1
  cp -a "$master" "$work/fork"
  for n in 2 3; do
    store "$master" s/$n
    cp -a "$work/source" "$work/tree.$n"
    store "$work/fork" s/$n
  done
  chmod 600 "$work/source/x"  # A version without data of its own.
  rm -rf "$work/memory"
  "$VARVE" -q store "$master" s/4 "$work/source" >/dev/null
  store "$work/fork" s/4
  "$VARVE" -q rm "$work/fork" s/2 s/3 s/4 >/dev/null
  for with in catalog "catalog settled"; do
    rm -rf "$repo" "$work/memory"
    cp -a "$master" "$repo"
    for name in $with; do
      rm -r "${repo:?}/$name"
      cp -a "$work/fork/$name" "$repo/$name"
    done
    find "$repo" -type f ! -name lock.mdb -exec sha256sum {} + | sort >"$work/before"
    expect_status 1 "$VARVE" store "$repo" s/5 "$work/source"
    message_says 'the catalog is of another state than the rest of the repository'
    expect_status 1 "$VARVE" rm "$repo" s/1
    expect_status 0 "$VARVE" ls "$repo"
    grep -q 'another state' "$work/stderr" || fail "ls says nothing: $(cat "$work/stderr")"
    expect_status 2 "$VARVE" status "$repo"
    expect_status 1 "$VARVE" repair --yes "$repo"
    message_says 'two histories'
    find "$repo" -type f ! -name lock.mdb ! -name checked -exec sha256sum {} + | sort >"$work/after"
    cmp "$work/before" "$work/after" || fail "$kind, $with: a refused command changed the repository"
    rm -rf "$work/memory"  # The fork's sequence number is the higher one.
    expect_status 3 "$VARVE" repair --yes --mixed=skip "$repo"
    for n in 2 3; do
      "$VARVE" -q restore "$repo" s/$n "$work/out" || fail "$kind, $with: s/$n"
      diff -r "$work/tree.$n" "$work/out"
      rm -r "$work/out"
    done
    "$VARVE" ls "$repo" 2>/dev/null | grep -qx s/4 || fail "$kind, $with: s/4 is gone"
    "$VARVE" -q check --read-data "$repo" >"$work/check" || fail "$kind, $with: $(cat "$work/check")"
  done
  ok "$kind: a catalog that deleted other versions under these numbers costs none"
done
unset VARVE_KEY_FILE

rm -rf "$master"
"$VARVE" -q init --compression none "$master"
for n in 1 2 3; do store "$master" s/$n; done
deletes() {  # VARIABLE=VALUE…: deletes two versions on the faulty disk
  rm -rf "$repo"
  cp -a "$master" "$repo"
  env LD_PRELOAD="$VARVE_FAULTY_DISK" DISK_BELOW="$repo" "$@" "$VARVE" -q rm --no-arrange "$repo" s/1 s/2 >/dev/null 2>&1
}
rm -f "$work/calls"
deletes DISK_CALLS_IN="$work/calls"
calls=$(stat -c %s "$work/calls")
[ "$calls" -gt 8 ] || fail "only $calls calls were counted"
for ((at = 1; at <= calls; at++)); do
  (deletes DISK_KILLS_AT=$at) 2>/dev/null && fail "it survived the kill at call $at" || true
  expect_status 0 "$VARVE" store "$repo" s/4 "$work/source"
  "$VARVE" -q check --read-data "$repo" >"$work/check" 2>&1 || fail "call $at: $(cat "$work/check")"
  left=$("$VARVE" ls "$repo" | wc -l)
  [ "$left" = 2 ] || [ "$left" = 4 ] || fail "call $at: $("$VARVE" ls "$repo")"
  [ "$left" = 4 ] || [ "$(find "$repo/series" -name '*.man' | wc -l)" = 2 ] || fail "call $at: manifests are left"
done
ok "a deletion that was killed at each of $calls calls is completed by the next writer"
