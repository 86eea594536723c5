#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Kills `varve key` at each call that changes the disk. Afterwards the old keys or the new ones open the repository, never
# none, the same command ends what it began, and no data was written.
limit_s=300
. "$(dirname "$0")/lib.sh"
: "${VARVE_FAULTY_DISK:?is the path of the library made from faulty_disk.cc}"

export VARVE_ACCEPT_OLDER=1  # Each kill begins with the same older copy.
umask 077
for key in one two three; do head -c 32 /dev/urandom >"$work/$key"; done
mkdir "$work/tree"
head -c 200000 /dev/urandom >"$work/tree/data"
base=$work/base
"$VARVE" -q init --encrypt --key-file "$work/one" "$base"
"$VARVE" -q --key-file "$work/one" store "$base" s/v "$work/tree"
"$VARVE" -q --key-file "$work/one" key add --new-key-file "$work/two" "$base"

data_of() { find "$1/series" -type f \( -name '*.seg' -o -name '*.man' -o -name '*.run' \) -exec md5sum {} + | sed "s|$1||" | sort; }
stored=$(data_of "$base")
opens() { "$VARVE" --key-file "$work/$1" dump "$repo" s/v/data 2>/dev/null | cmp -s - "$work/tree/data"; }
on_disk() {  # VARIABLE=VALUE KEY ARGUMENT…: runs `varve key` on the faulty disk
  env LD_PRELOAD="$VARVE_FAULTY_DISK" DISK_BELOW="$repo" "$1" "$VARVE" -q --key-file "$work/$2" key "${@:3}" >/dev/null 2>&1
}
begin_again() {
  rm -rf "$repo"
  cp -a "$base" "$repo"
}

# The key of the command, another key, what that becomes, and the words behind `varve key`.
for case in "one three open add --new-key-file $work/three $repo" "one two closed rm $repo 2" \
  "one two closed change --new-key-file $work/three $repo 2"; do
  read -r key other becomes action words <<<"$case"
  for _ in first older; do  # The second run accepts an older copy, as all that are killed do, and so writes more.
    begin_again
    rm -f "$work/calls"
    # shellcheck disable=SC2086  # The words of a command line.
    on_disk DISK_CALLS_IN="$work/calls" $key $action $words
  done
  calls=$(stat -c %s "$work/calls")
  rm "$work/calls"
  [ "$calls" -gt 10 ] || fail "only $calls calls were counted"
  before=0 after=0
  for ((at = 1; at <= calls; at++)); do
    begin_again
    # shellcheck disable=SC2086
    (on_disk DISK_KILLS_AT=$at $key $action $words) 2>/dev/null && fail "$action survived the kill at call $at" || true
    opens $key || fail "$action, killed at call $at: the key that should stay does not open the repository"
    if opens $other; then state=open; else state=closed; fi
    if [ $state = $becomes ]; then
      after=$((after + 1))
    else
      before=$((before + 1))
      # shellcheck disable=SC2086
      "$VARVE" -q --key-file "$work/$key" key $action $words || fail "$action again, after a kill at call $at"
      if opens $other; then state=open; else state=closed; fi
      [ $state = $becomes ] || fail "$action again, after a kill at call $at, leaves the key $state"
    fi
    "$VARVE" -q --key-file "$work/$key" arrange "$repo" s  # A writer completes the copy.
    cmp "$repo/varve.repo" "$repo/varve.keys"
    [ "$(data_of "$repo")" = "$stored" ] || fail "$action rewrites data"
  done
  [ $before -gt 0 ] && [ $after -gt 0 ] || fail "$action: $before kills before the change, $after after it"
  [ $action != change ] || opens three
  ok "key $action is killed at each of $calls calls: $before left the old keys, $after the new ones"
done
