#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A folder whose data is on its disk, a folder whose data is evicted and an attached folder print
# the same lines: check, scrub and repair, without damage and with the same damage.
limit_s=300
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
start_store

# Prints the lines of a command for a folder, and the status, with DIR for the folder. Leaves out the
# lines about the object store, and about the quarantine: an attached folder has none. Leaves out the
# exact bytes: the check of the store reads the manifests of an attached folder.
lines_of() {  # FOLDER COMMAND…
  local folder=$1 status=0
  shift
  "$VARVE" "$@" "$folder" >"$work/stdout" 2>"$work/stderr" || status=$?
  cat "$work/stdout" "$work/stderr" |
    sed -E "s,$folder,DIR,g; /store_check/d; /s3:/d; /in quarantine/d; s/\"(quarantined|lost_chunks|read_bytes)\":[a-z0-9]*,//g"
  echo "status $status"
}
same_lines() {  # FOLDER COMMAND…: compares with the plain folder
  local folder=$1
  shift
  lines_of "$work/plain" "$@" >"$work/expected"
  lines_of "$folder" "$@" >"$work/printed"
  diff "$work/expected" "$work/printed" || fail "$folder prints other lines: $*"
}
# Changes the middle byte of the data files below the folders; again, it changes it back.
rot_files() {
  find "$@" \( -name '*.seg' -o -name '*.vol' \) -exec python3 -c '
import os, sys
for path in sys.argv[1:]:
    with open(path, "r+b") as file:
        middle = os.path.getsize(path) // 2
        file.seek(middle)
        byte = file.read(1)[0] ^ 1
        file.seek(middle)
        file.write(bytes([byte]))' {} +
}
has_no_data() { [ -z "$(find "$1" -name '*.seg' -o -name '*.vol')" ] || fail "$1 has data"; }

all_checks_agree() {
  local folder
  for folder in evicted attached; do
    same_lines "$work/$folder" check
    same_lines "$work/$folder" check --json --read-data
    same_lines "$work/$folder" scrub --restart
  done
  same_lines "$work/evicted" check --outer
  same_lines "$work/evicted" repair --dry-run
}

for placement in lineage pool; do
  at=$place/$placement
  rm -rf "$work/source" "$work/plain" "$work/evicted" "$work/attached"
  mkdir "$work/source"
  head -c 9M /dev/urandom >"$work/source/stays"  # In a smaller version, departing chunks would wait.
  head -c 2M /dev/urandom >"$work/source/goes"
  seq 1 200000 >"$work/source/text"
  "$VARVE" -q init --cache-size=0 --parity=20 --placement=$placement "$at" --local="$work/evicted"
  stop_store
  "$VARVE" -q store --no-wait "$work/evicted" s/one "$work/source"
  rm "$work/source/goes"
  head -c 1M /dev/urandom >"$work/source/comes"
  "$VARVE" -q store --no-wait "$work/evicted" s/two "$work/source"
  "$VARVE" -q store --no-wait "$work/evicted" s/three "$work/source"
  cp -a "$work/evicted" "$work/plain"
  rm -r "$work/plain"/{bucket,replica}
  start_store_again
  "$VARVE" -q wait "$work/evicted"
  has_no_data "$work/evicted"
  "$VARVE" -q attach "$at" "$work/attached"
  all_checks_agree
  ok "$placement: the same lines without damage"

  rm -r "$work/evicted/cache" "$work/attached/cache" 2>/dev/null || true
  rot_files "$work/plain"
  [ "$(store_command rot /seg/)" -gt 2 ] || fail "few objects changed"
  store_command rot /vol/ >/dev/null
  all_checks_agree
  ok "$placement: the same lines with damage"

  same_lines "$work/evicted" repair --yes
  same_lines "$work/evicted" check --read-data
  "$VARVE" -q check --read-data "$work/evicted"
  "$VARVE" -q restore "$work/evicted" s/three "$work/restored"
  same_tree --ignore holes "$work/source" "$work/restored"
  rm -r "$work/restored"
  ok "$placement: the same lines of the repair, which repairs all"
done
