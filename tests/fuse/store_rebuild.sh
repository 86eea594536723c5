#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A store has lost all heads and catalog objects, with their copies. `varve attach --rebuild`
# rebuilds the catalog from the manifests, the labels and the headers of the containers.
limit_s=400
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
: "${VARVE_FAULTY_DISK:?is the path of the library made from faulty_disk.cc}"
start_store

(umask 077; head -c 32 /dev/urandom >"$work/key")
restores() {  # FOLDER NAME…
  local folder=$1 name
  shift
  for name in "$@"; do
    rm -rf "$work/out"
    "$VARVE" -q restore "$folder" "s/$name" "$work/out"
    diff -r "$work/$name" "$work/out"
  done
}
requests() { store_command requests; }

for kind in plain-lineage plain-pool encrypted-lineage encrypted-pool; do
  rm -rf "$work"/one "$work"/two "$work"/three "$work"/four "$work"/fresh* "$work/writer" "$repo"
  at=$place/$kind
  init=(-q init --parity 10 --placement "${kind#*-}")
  unset VARVE_KEY_FILE
  if [[ $kind = encrypted* ]]; then
    export VARVE_KEY_FILE=$work/key
    init+=(--encrypt)
  fi
  "$VARVE" "${init[@]}" "$at" --local="$repo"
  for name in one two gone three; do
    mkdir -p "$work/$name/folder"
    head -c 2M /dev/urandom >"$work/$name/data"
    head -c 900K /dev/zero | tr '\0' "${name:0:1}" >"$work/$name/folder/text"
    : >"$work/$name/empty"
    cp "$work/one/data" "$work/$name/folder/same"
    "$VARVE" -q store "$repo" "s/$name" "$work/$name"
  done
  "$VARVE" -q rm "$repo" s/gone
  "$VARVE" -q arrange "$repo"
  mkdir "$work/other"
  echo other >"$work/other/file"
  "$VARVE" -q store "$repo" t/other "$work/other"
  rm -rf "$work/gone" "$work/other" "$repo"

  expect_status 1 "$VARVE" -q attach --rebuild --yes "$at" "$work/fresh"
  message_says 'is whole'
  store_command lose /cat/ >/dev/null
  expect_status 1 "$VARVE" attach "$at" "$work/fresh0"
  message_says 'attach --rebuild'
  store_command lose /head/ >/dev/null
  expect_status 10 "$VARVE" attach "$at" "$work/fresh1"
  message_says 'attach --rebuild'

  "$VARVE" attach --rebuild -n "$at" "$work/fresh" >"$work/said"
  grep -qE 'about [0-9]+ range requests' "$work/said" || fail "$(cat "$work/said")"
  [ ! -e "$work/fresh" ]
  said=$(grep -oE 'about [0-9]+' "$work/said" | grep -oE '[0-9]+')
  store_command fault busy 0 0 >/dev/null
  "$VARVE" attach --rebuild --yes "$at" "$work/fresh" >"$work/said" 2>&1 || fail "$(cat "$work/said")"
  made=$(requests)
  [ "$made" -le $((said + 8)) ] || fail "$made requests, and $said were announced"
  restores "$work/fresh" one two three
  "$VARVE" ls "$work/fresh" s >"$work/list"
  if grep -q gone "$work/list"; then fail "a deleted version is back: $(cat "$work/list")"; fi
  "$VARVE" ls "$work/fresh" t | grep -q other
  "$VARVE" -q check --read-data "$work/fresh" >"$work/said" 2>&1 || fail "$(cat "$work/said")"
  # Killed at a call that changes the folder, the command begins again, and each other one says so.
  for at_call in 3 9 30; do
    rm -rf "$work/again"
    (LD_PRELOAD=$VARVE_FAULTY_DISK DISK_BELOW=$work/again DISK_KILLS_AT=$at_call \
      "$VARVE" -q attach --rebuild --yes "$at" "$work/again" 2>/dev/null) && fail "not killed at call $at_call"
    if [ -e "$work/again/varve.repo" ]; then
      for command in ls check "repair --yes" status; do
        expect_status $([ "$command" = status ] && echo 2 || echo 1) "$VARVE" $command "$work/again"
        grep -q "rebuild.*was interrupted.*varve attach --rebuild $at $work/again" "$work/stdout" "$work/stderr" ||
          fail "varve $command: $(cat "$work/stdout" "$work/stderr")"
      done
    fi
    "$VARVE" -q attach --rebuild --yes "$at" "$work/again" || fail "killed at call $at_call"
    restores "$work/again" one two three
  done
  # A lost segment.
  names=$(store_command names /seg/)
  lost=$(tr ' ' '\n' <<<"$names" | grep "$kind/" | head -1)
  store_command save $kind/ >/dev/null
  [ "$(store_command lose "$lost")" = 1 ]
  rm -rf "$work/again"
  expect_status 3 "$VARVE" attach --rebuild --yes "$at" "$work/again"
  grep -qE '^lost: .*chunks.* not stored anywhere; needed by s/' "$work/stdout" || fail "$(cat "$work/stdout")"
  store_command undo >/dev/null
  ok "$kind: all versions are rebuilt for reading, by $made requests of $said announced"

  expect_status 1 "$VARVE" -q attach --write --rebuild --yes "$at" "$work/writer"
  message_says 'accept-older'
  "$VARVE" -q --accept-older attach --write --rebuild --yes "$at" "$work/writer"
  restores "$work/writer" one two three
  mkdir "$work/four"
  cp "$work/one/data" "$work/four/data"
  "$VARVE" -q store --allow-shrunk "$work/writer" s/four "$work/four"
  "$VARVE" -q check --read-data "$work/writer" >"$work/said" 2>&1 || fail "$(cat "$work/said")"
  "$VARVE" -q attach "$at" "$work/fresh2"
  restores "$work/fresh2" one two three four
  ok "$kind: a folder writes from the rebuilt state on"
done
