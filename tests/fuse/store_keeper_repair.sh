#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The folder of the writer is gone, and the store loses objects. A folder that is attached for
# reading puts back what it has, and once it has taken over, uploads the catalog again.
limit_s=300
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
start_store
keeper=$work/keeper

(umask 077; head -c 32 /dev/urandom >"$work/key")
for kind in plain encrypted; do
  rm -rf "$keeper" "$work"/one "$work"/two "$work"/fresh* "$repo"
  at=$place/$kind
  [ $kind = plain ] || export VARVE_KEY_FILE=$work/key
  init=(-q init --parity 10)
  [ $kind = plain ] || init+=(--encrypt)
  "$VARVE" "${init[@]}" "$at" --local="$repo"
  for name in one two; do
    mkdir "$work/$name"
    head -c 3M /dev/urandom >"$work/$name/data"
    echo $name >"$work/$name/name"
    "$VARVE" -q store "$repo" "s/$name" "$work/$name"
  done
  "$VARVE" -q attach "$at" "$keeper"
  # Reading fills the cache.
  (repo=$keeper; mount_as_job -o ro; cat "$mnt"/s/*/* >/dev/null; "$VARVE" umount "$mnt"; wait "$daemon" || true)
  rm -rf "$repo"

  restores() {  # FOLDER
    local name
    for name in one two; do
      rm -rf "$work/out"
      "$VARVE" -q restore "$1" "s/$name" "$work/out"
      diff -r "$work/$name" "$work/out"
    done
  }
  names=$(store_command names "$kind/")
  tr ' ' '\n' <<<"$names" | sort >"$work/names"
  expect_status 0 "$VARVE" repair -n "$keeper"
  for lost in /seg/ /vol/ /other/ /head/ /varve.repo; do store_command lose "$lost" >/dev/null; done
  expect_status 10 "$VARVE" attach "$at" "$work/fresh"
  # The folder has labels, but manifests and parity were left in the store (docs/decisions/162).
  expect_status 3 "$VARVE" -q repair --yes "$keeper"
  grep -q "objects cannot be written again from $keeper" "$work/stdout" "$work/stderr" || fail "$(cat "$work/stdout" "$work/stderr")"
  names=$(store_command names "$kind/")
  tr ' ' '\n' <<<"$names" | sort >"$work/now"
  # Objects that only older heads need do not come back.
  [ -z "$(comm -13 "$work/names" "$work/now")" ] || fail "new objects: $(comm -13 "$work/names" "$work/now")"
  "$VARVE" -q attach "$at" "$work/fresh"
  restores "$work/fresh"
  expect_status 1 "$VARVE" -q check --read-store "$work/fresh"
  ok "$kind: an attached folder puts heads, labels and data back"

  [ "$(store_command lose "/cat/")" -gt 0 ]
  expect_status 1 "$VARVE" repair --yes "$keeper"
  message_says "varve attach --write $at $keeper"
  "$VARVE" -q attach --write "$at" "$keeper"
  store_command lose /other/ >/dev/null
  store_command lose /seg/ >/dev/null
  "$VARVE" -q repair --yes "$keeper" >"$work/said" || fail "$(cat "$work/said")"
  "$VARVE" -q attach "$at" "$work/fresh2"
  restores "$work/fresh2"
  "$VARVE" -q check --read-store "$work/fresh2"
  "$VARVE" -q store "$keeper" s/three "$work/one"
  ok "$kind: a promoted folder writes the catalog again, and what its cache has"
done
