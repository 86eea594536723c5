#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A mount of an attached folder follows the store, and so lets the kernel keep `latest`: a path over
# `latest` costs what a path over the version's name costs.
limit_s=90
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/store_lib.sh"
start_store
files=80

mkdir "$work/source"
for i in $(seq $files); do echo "$i" >"$work/source/file$i"; done
"$VARVE" -q init "$place" --local="$repo"
"$VARVE" -q store "$repo" s/v1 "$work/source"
"$VARVE" -q store "$repo" s/v2 "$work/source"
"$VARVE" -q attach "$place" "$work/reader"
writer=$repo repo=$work/reader
mount_as_job -d -o ro,follow=1

# The log has a line for each request of the kernel. Prints the number of lookups and of read links.
requests() { grep -c 'opcode: LOOKUP\|opcode: READLINK' "$work/daemon.log" || true; }
walk() {  # NAME: reads all files of a version, and sets $cost and $seconds
  local before
  before=$(requests)
  SECONDS=0
  python3 - "$mnt/s/$1" "$files" <<'PYTHON'
import sys
for i in range(1, int(sys.argv[2]) + 1):
    with open(f"{sys.argv[1]}/file{i}") as file:
        assert file.read() == f"{i}\n"
PYTHON
  seconds=$((SECONDS + 1))
  cost=$(($(requests) - before))
}

walk v1
by_name=$cost
walk latest
# The kernel asks for the series and for `latest` once in a second, and for the target of the link unless it is 6.15 or newer.
per_second=4
kept=$(printf '%s\n' 6.15 "$(uname -r)" | sort -V | head -n 1)
[ "$kept" = 6.15 ] || per_second=$((per_second + files))
[ "$cost" -le $((by_name + 6 + per_second * seconds)) ] || fail "$cost requests by latest, $by_name by the name"
ok "latest costs $cost requests, and the name of the version $by_name"

echo new >"$work/source/file1"
"$VARVE" -q store "$writer" s/v3 "$work/source"
shows_v3() { [ "$(readlink "$mnt/s/latest")" = v3 ] && [ "$(cat "$mnt/s/latest/file1")" = new ]; }
wait_until "the mount follows" shows_v3
"$VARVE" -q rm "$writer" s/v3
shows_v2() { [ "$(readlink "$mnt/s/latest")" = v2 ] && [ "$(cat "$mnt/s/latest/file1")" = 1 ]; }
wait_until "the mount follows back" shows_v2
ok "a change of latest is seen"
"$VARVE" umount "$mnt"
wait "$daemon"
