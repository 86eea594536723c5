#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Bytes are altered on their way from the object store, once. A mount and a restore ask again, and
# never show other bytes.
limit_s=240
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
start_store

mkdir "$work/source" "$work/source/small"
head -c 6M /dev/urandom >"$work/source/random"
for i in $(seq 400); do echo "line $i of $((i * i))" >"$work/source/small/$i"; done
seq 1 500000 >"$work/source/text"

for kind in plain encrypted; do
  if [ $kind = encrypted ]; then
    (umask 077 && head -c 32 /dev/urandom >"$work/key")
    export VARVE_KEY_FILE=$work/key
    how=(--encrypt --key-file "$work/key")
  else
    how=()
  fi
  at=$place/$kind
  "$VARVE" -q init "${how[@]}" "$at" --local="$work/$kind"
  "$VARVE" -q store "$at" s/one "$work/source"
  altered=0
  for k in $(seq 1 8); do
    "$VARVE" -q attach "$at" "$work/reader"
    "$VARVE" mount -o ro "$work/reader" "$mnt"
    store_command fault altered "$k" 1 >/dev/null
    same_tree "$work/source" "$mnt/s/one"
    "$VARVE" umount "$mnt"
    [ "$(store_command requests)" -lt "$k" ] || altered=$((altered + 1))
    store_command fault altered 1 0 >/dev/null
    rm -r "$work/reader"
    "$VARVE" -q attach "$at" "$work/reader"
    store_command fault altered "$k" 1 >/dev/null
    "$VARVE" -q restore "$work/reader" s/one "$work/restored"
    same_tree "$work/source" "$work/restored"
    rm -r "$work/restored" "$work/reader"
    store_command fault altered "$k" 1 >/dev/null
    "$VARVE" -q attach "$at" "$work/reader"
    "$VARVE" -q check "$work/reader"
    store_command fault altered "$k" 1 >/dev/null
    rm -r "$work/reader/cache"
    "$VARVE" -q check --read-data "$work/reader" >"$work/stdout" || fail "$(cat "$work/stdout")"
    store_command fault altered 1 0 >/dev/null
    rm -r "$work/reader"
  done
  # A store that alters all answers is asked a few times for each container.
  "$VARVE" -q attach "$at" "$work/reader"
  store_command fault altered 0 1000000000 >/dev/null
  expect_status 3 "$VARVE" -q restore "$work/reader" s/one "$work/restored"
  requests=$(store_command requests)
  store_command fault altered 1 0 >/dev/null
  [ "$requests" -lt 200 ] || fail "$requests requests for 10 MiB"
  rm -r "$work/restored"
  [ "$altered" -gt 2 ] || fail "only $altered answers were altered"
  rm -r "$work/reader"
  ok "$kind: a mount, a restore, an attach and a check ask again, and not for ever"
done
