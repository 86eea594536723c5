#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A repository keeps the settings of its upkeep, and commands and the daemon use them.
. "$(dirname "$0")/lib.sh"

setting() { "$VARVE" config "${2:-$repo}" | awk -v key="$1" '$1 == key { print $2 }'; }  # KEY [REPO]
is_set() {  # KEY VALUE [REPO]
  [ "$(setting "$1" "${3:-$repo}")" = "$2" ] || fail "$1 is $(setting "$1" "${3:-$repo}"), not $2"
}
versions() { "$VARVE" ls "$repo" "$1" | wc -l; }

mkdir "$work/tree"
"$VARVE" -q init --arrange-policy batched --parity 5 "$repo"
for i in 1 2 3 4 5 6; do
  echo "$i" >"$work/tree/file"
  "$VARVE" -q store "$repo" "s/$i" "$work/tree"
  "$VARVE" -q store "$repo" "t/$i" "$work/tree"
done
is_set policy batched
is_set parity 5
is_set arrange-rate default
is_set keep-last 0
is_set keep-within none
is_set keep-by claimed
ok "config prints what can be set"

expect_status 2 "$VARVE" prune "$repo"
message_says 'no rule is given'
"$VARVE" config "$repo" keep-by=sealed 2>"$work/said"
grep -q 'without rules now is refused' "$work/said" || fail "it says: $(cat "$work/said")"
"$VARVE" -q config "$repo" keep-by=claimed
"$VARVE" config "$repo" keep-last=5 arrange-rate=50M policy=tiered dead=9.5 2>"$work/said"
grep -q 'keeps what these keep: --keep-last 5' "$work/said" || fail "it says: $(cat "$work/said")"
is_set keep-last 5
is_set arrange-rate 50M
is_set policy tiered
is_set dead 9.5
is_set parity 5
"$VARVE" prune "$repo" s >"$work/out" 2>"$work/said"
grep -q 'the rules of the repository are: --keep-last 5' "$work/said" || fail "it says: $(cat "$work/said")"
[ "$(versions s)" -eq 5 ] && [ "$(versions t)" -eq 6 ] || fail "prune does not use the rules"
"$VARVE" -q prune --keep-last 4 "$repo" s
[ "$(versions s)" -eq 4 ] || fail "a rule of the command line does not replace those of the repository"
ok "prune uses the rules of the repository, unless it is given some"

# Through the daemon.
mount_repo
"$VARVE" -q config "$mnt" keep-last=3 keep-by=sealed
is_set keep-last 3
is_set keep-last 3 "$mnt"
is_set keep-by sealed
"$VARVE" -q prune "$mnt/t"
[ "$(versions t)" -eq 3 ] || fail "prune through the daemon does not use the rules"
"$VARVE" -q config "$repo" arrange-rate=0 keep-by=claimed
is_set arrange-rate 0
unmount_repo
is_set keep-last 3
is_set arrange-rate 0
ok "the daemon of a mounted repository reads and changes the settings"

# The rate holds for a command without one: 60 KB in and out at 100 KB/s take a second.
"$VARVE" -q config "$repo" arrange-rate=default policy=original window=1
for i in 1 2; do
  head -c 60000 /dev/urandom >"$work/tree/random"
  "$VARVE" -q store --no-arrange "$repo" "u/$i" "$work/tree"
done
cp -a "$repo" "$work/slow"
seconds() { local begin=$EPOCHREALTIME; "$@"; echo "$(((${EPOCHREALTIME/./} - ${begin/./}) / 1000))"; }
"$VARVE" -q config "$work/slow" arrange-rate=100K
slow=$(seconds "$VARVE" -q arrange "$work/slow" u)
[ "$slow" -gt 600 ] || fail "arranging took $slow ms, faster than its rate"
fast=$(seconds "$VARVE" -q arrange --arrange-rate 0 "$repo" u)
[ "$fast" -lt "$slow" ] || fail "--arrange-rate does not replace the setting: $fast ms, then $slow ms"
ok "arranging keeps to the rate of the repository, unless it is given another"

before=$("$VARVE" config "$repo")
for wrong in keep-last=x keep-within=3 policy=none parity=26 dead=0 color=red arrange-rate=fast keep-by=name; do
  expect_status 2 "$VARVE" config "$repo" "$wrong" keep-daily=7
done
expect_status 2 "$VARVE" config "$repo" s keep-last=3
message_says 'settings of the repository'
[ "$("$VARVE" config "$repo")" = "$before" ] || fail "a refused change changed a setting"
rm -r "$repo/catalog"
"$VARVE" -q repair --yes "$repo" 2>/dev/null
[ "$("$VARVE" config "$repo")" = "$before" ] || fail "a rebuilt catalog has other settings"
"$VARVE" -q config "$repo" keep-last=0
expect_status 2 "$VARVE" prune "$repo"
"$VARVE" -q check "$repo"
ok "wrong settings change nothing; a rebuilt catalog has the same settings"
