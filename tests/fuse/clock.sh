#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A wrong clock neither changes the order of versions, nor makes prune delete real backups, nor ends
# locks. A preloaded library shifts the clock of every command and daemon.
. "$(dirname "$0")/lib.sh"
: "${VARVE_SHIFTED_CLOCK:?is the path of the library that shifts the clock}"
under_sanitizer && skip "the library cannot come before a sanitizer's"

day=86400
export VARVE_TEST_CLOCK=$work/clock
clock() { echo "$1" >"$VARVE_TEST_CLOCK"; }  # SECONDS: the offset from the right time
clock 0
varve() { LD_PRELOAD=$VARVE_SHIFTED_CLOCK "$VARVE" "$@"; }

add() {  # SERIES/NAME: adds a version with its own content, on disk when it returns
  date +%N%s >"$work/tree/file"
  varve -q store "$repo" "$1" "$work/tree"
}
ask() { varve ls -l --json "$repo" s | python3 -c "
import json, sys
versions = [json.loads(line) for line in sys.stdin]
by_name = {version['version']: version for version in versions}
$1"; }
kept() { varve prune -n --json "$@" "$repo" s | python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
print(*sorted(l["version"] for l in lines if l["message_type"] == "version" and l["action"] == "keep"))'; }
expect() {  # WANTED COMMAND…
  local want=$1 got
  shift
  got=$("$@")
  [ "$got" = "$want" ] || fail "$*: \"$got\" instead of \"$want\""
}

mkdir "$work/tree"
varve init "$repo"
add s/v1
clock $((-400 * day))
varve store "$repo" s/v2 "$work/tree" 2>"$work/stderr" >/dev/null
clock 0
grep -q 'the clock says 20[0-9-]* [0-9:]*, but the version before' "$work/stderr" || fail "no warning: $(cat "$work/stderr")"
ask 'assert by_name["v2"]["sealed_at"] > by_name["v1"]["sealed_at"], by_name'
ok "a seal with a clock that is behind comes after the one before, with a warning"

clock $((4000 * day))
add s/v3
clock 0
add s/v4
ask '
assert [v["version"] for v in versions] == ["v1", "v2", "v3", "v4"], versions
assert by_name["v4"]["sealed_at"] < by_name["v3"]["sealed_at"], by_name
assert by_name["v4"]["sealed_at"] > by_name["v2"]["sealed_at"], by_name'
varve stat "$repo" s/latest >"$work/stat"
grep -q 'v4' "$work/stat" || fail "latest is another one: $(cat "$work/stat")"
ok "a version of the future does not take later ones along; the newest goes by number"

expect "v3 v4" kept --keep-last 1
expect "v2 v3 v4" kept --keep-last 2
expect "v3 v4" kept --keep-yearly 1
expect "v1 v2 v3 v4" kept --keep-within 1d
varve prune -n --keep-last 1 "$repo" s >"$work/plan"
! grep -q 'more than half' "$work/plan" || fail "half is not more than half"
grep -q '^s: the seal times of 1 versions are in the future' "$work/plan" || fail "$(cat "$work/plan")"
expect_status 0 varve prune --keep-last 3 "$repo" s
[ "$(varve ls "$repo" s | wc -l)" -eq 4 ] || fail "prune deleted something"
ok "a version of the future satisfies no rule and stays"

mkdir "$work/empty"
for n in 1 2 3 4 5; do varve -q store --allow-shrunk "$repo" s/e$n "$work/empty"; done
expect "v3 v4" kept --keep-last 1
expect "v3 v4" kept --keep-daily 1
varve prune -n --keep-last 1 "$repo" s >"$work/plan"
head -1 "$work/plan" | grep -q '^s: these rules delete 7 of 9 versions, more than half' ||
  fail "the first line does not say that more than half goes"
varve prune --keep-last 1 "$repo" s >/dev/null
[ "$(varve ls "$repo" s | xargs)" = "s/v3 s/v4" ] || fail "prune left $(varve ls "$repo" s)"
ok "empty versions push no other out; a prune of more than half says so first"

# ---- Locks. ----

varve rm "$repo" s/v3 >/dev/null
add s/v5
varve -q lock --for 90d "$repo" s/v4
expect_status 1 varve rm "$repo" s/v4
[[ $message == *"is locked until 20"* ]] || fail "$message"
clock $((100 * day))
expect_status 1 varve rm "$repo" s/v4
[[ $message == *"--force-clock"* ]] || fail "$message"
expect "v4 v5" kept --keep-last 1
expect "v5" kept --keep-last 1 --force-clock
add s/v6
expect_status 1 varve rm "$repo" s/v4
ok "a clock that jumps behind the end of a lock does not end it, a seal at that time neither"
clock 0

mv "$repo/catalog" "$work/catalog.lost"
varve -q repair --yes "$repo" >/dev/null
expect_status 1 varve rm "$repo" s/v4
clock $((100 * day))
expect_status 1 varve rm "$repo" s/v4
clock 0
ok "locks, and what was the time, come back with a catalog that was lost"

varve rm "$repo" s/v6 >/dev/null
mv "$repo/catalog" "$work/catalog.lost2"
rm "$repo"/series/*/labels
varve -q repair --yes "$repo" >"$work/repaired" 2>&1 || [ $? -eq 3 ] || fail "$(cat "$work/repaired")"
grep -q 'It has a lock only' "$work/repaired" || fail "$(cat "$work/repaired")"
expect_status 1 varve rm "$repo" s/v4
[[ $message == *"is locked until 20"* ]] || fail "$message"
ok "a lock outlives the loss of the catalog and the labels: the manifest has it"

# ---- Weekly backups, and one jump. ----

weekly=$work/weekly
varve init "$weekly"
weekly_add() { clock $(($1 * day)) && varve -q store "$weekly" "s/day$1" "$work/tree"; }  # DAY
for n in 0 7; do weekly_add $n; done
varve -q lock --for 90d "$weekly" s/day7
weekly_add 4000
expect_status 1 varve rm "$weekly" s/day7
[[ $message == *"accepts no time after"*"--force-clock"* ]] || fail "$message"
for n in 14 21 28 35 42 49 56 63 70 77 84 91; do weekly_add $n; done
expect_status 1 varve rm "$weekly" s/day7
[[ $message == *"is locked until"* ]] || fail "$message"
weekly_add 98
expect_status 1 varve rm "$weekly" s/day7
weekly_add 105
expect_status 0 varve rm "$weekly" s/day7
clock 0
ok "weekly backups: one jump and one seal end no lock; a lock ends an interval late"

# ---- The same with a daemon. ----

LD_PRELOAD=$VARVE_SHIFTED_CLOCK mount_repo
clock $((100 * day))
expect_status 1 varve rm "$mnt/s/v4"
[[ $message == *"--force-clock"* ]] || fail "$message"
clock $((-3 * day))
mkdir "$mnt/s/v7"
echo x >"$mnt/s/v7/file"
expect_status 0 varve seal "$mnt/s/v7"
[[ $message == *"the clock says 20"* ]] || fail "$message"
clock $((100 * day))
expect_status 0 varve rm --force-clock "$mnt/s/v4"
[ ! -e "$mnt/s/v4" ] || fail "--force-clock did not delete"
clock 0
unmount_repo
varve -q check "$repo"
ok "a daemon keeps to the same rules; --force-clock deletes"
