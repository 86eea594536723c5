#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Waiting for an object store, and what it costs: --no-wait, interrupted commands, umount while the
# store is down, prune beside versions that were not replicated, requests with prices, checks of the
# store, and changes of keys and settings that the store lacks.
limit_s=300
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
start_store

mkdir -p "$work/source"
head -c 200K /dev/urandom >"$work/source/data"
"$VARVE" -q init "$place" --local="$repo"
for name in one two three; do "$VARVE" -q store "$place" "s/$name" "$work/source"; done

stop_store
"$VARVE" -q store --no-wait "$place" s/four "$work/source"
"$VARVE" -q store --no-wait "$place" s/five "$work/source"
"$VARVE" status "$place" >"$work/stdout" || true
grep -qE '2 versions|2 of' "$work/stdout" || fail "$(cat "$work/stdout")"
"$VARVE" prune -n --keep-last 2 "$place" s >"$work/stdout"
grep -q 'does not have 2 of 5 versions' "$work/stdout" || fail "$(cat "$work/stdout")"
[ "$(grep -c '^keep.*not replicated' "$work/stdout")" = 2 ] || fail "$(cat "$work/stdout")"
[ "$(grep -c '^keep .*last' "$work/stdout")" = 2 ] || fail "$(cat "$work/stdout")"
grep -q '^would delete *s/one' "$work/stdout" || fail "$(cat "$work/stdout")"
ok "--no-wait ends at once, and no rule counts what the store lacks"

"$VARVE" wait "$place" s/latest >"$work/stdout" 2>"$work/stderr" &
waiting=$!
sleep 2
kill -TERM "$waiting"
status=0
wait "$waiting" || status=$?
[ "$status" -eq 130 ] || fail "status $status: $(cat "$work/stderr")"
grep -q 'is safe there' "$work/stderr" || fail "$(cat "$work/stderr")"
ok "an interrupted wait says that nothing is lost"

"$VARVE" mount "$place" "$mnt"
cp -a "$work/source" "$mnt/s/six.partial"
mv -T "$mnt/s/six.partial" "$mnt/s/six"
"$VARVE" umount "$mnt" 2>"$work/stderr" &
unmounting=$!
wait_until "umount says what it waits for" grep -q -- '--no-wait' "$work/stderr"
grep -q "$place" "$work/stderr"
daemon=$(sed -n 's/.*(process \([0-9]*\)).*/\1/p' "$work/stderr")
kill "$daemon"
status=0
wait "$unmounting" || status=$?
[ "$status" -eq 1 ] || fail "status $status: $(cat "$work/stderr")"
grep -q 'versions are not in' "$work/stderr" || fail "$(cat "$work/stderr")"
"$VARVE" mount "$place" "$mnt"
"$VARVE" umount --no-wait "$mnt"
"$VARVE" mount "$place" "$mnt"  # The folder is free.
"$VARVE" umount --no-wait "$mnt"
ok "umount tells what it waits for, and --no-wait ends the daemon"

start_store_again
"$VARVE" -q wait "$place"
"$VARVE" -q attach "$place" "$work/reader"
"$VARVE" ls "$work/reader" s >"$work/list"
grep -q five "$work/list"
"$VARVE" -q prune --keep-last 2 "$place" s
[ "$("$VARVE" ls --json "$place" s | wc -l)" = 2 ]
ok "wait uploads everything, and the rules count it then"

printf '# per 1,000\nput = 0.005\nget=0.0004\nlist = 0.005\nstored = 0.023\nreceived = 0.09\ncurrency = EUR\n' >"$work/prices"
"$VARVE" stats --prices "$work/prices" "$place" >"$work/stdout"
grep -qE '^put +[1-9][0-9]* .*EUR' "$work/stdout" || fail "$(cat "$work/stdout")"
grep -q 'EUR a month' "$work/stdout"
puts() { "$VARVE" stats --json "$1" | python3 -c '
import json, sys
for line in sys.stdin:
    line = json.loads(line)
    if line.get("request") == "put": print(line["requests"])'; }
before=$(puts "$place")
"$VARVE" -q store "$place" s/eight "$work/source"
[ "$(puts "$place")" -gt "$before" ] || fail "$before put requests, then $(puts "$place")"
"$VARVE" stats --prometheus "$place" >"$work/stdout"
grep -q 'varve_repository_store_requests_total{.*request="get"}' "$work/stdout"
echo 'putt = 1' >"$work/prices"
expect_status 1 "$VARVE" stats --prices "$work/prices" "$place"
message_says 'did you mean "put"'
"$VARVE" stats "$work/reader" >"$work/stdout"
grep -qE '^get +[1-9]' "$work/stdout"
"$VARVE" mount "$place" "$mnt"
cp -a "$work/source" "$mnt/s/nine.partial"
mv -T "$mnt/s/nine.partial" "$mnt/s/nine"
"$VARVE" -q wait "$place" s/nine
"$VARVE" stats --live --json "$mnt" >"$work/stdout"
grep -q 'varve_store_requests_total' "$work/stdout"
"$VARVE" umount "$mnt"
ok "requests, bytes and money of the store are counted, here and in attached folders"

"$VARVE" check "$place" >"$work/stdout" 2>"$work/stderr"
grep -q 'all that are needed are there' "$work/stderr" || fail "$(cat "$work/stderr")"
if grep -q unknown "$work/stdout" "$work/stderr"; then fail "unknown names: $(cat "$work/stdout")"; fi
"$VARVE" check --read-data "$work/reader" >"$work/stdout" 2>"$work/stderr"
if grep -q unknown "$work/stdout" "$work/stderr"; then fail "unknown names: $(cat "$work/stdout")"; fi
store_command set ignores_conditions 1 >/dev/null
expect_status 1 "$VARVE" check "$place"
grep -q 'does not honour conditional' "$work/stdout" || fail "$(cat "$work/stdout") $message"
store_command set ignores_conditions 0 >/dev/null
"$VARVE" -q check "$place"
[ "$(store_command lose /seg/)" -ge 1 ]
expect_status 1 "$VARVE" check "$place"
grep -q '/seg/.*is missing' "$work/stdout" || fail "$(cat "$work/stdout") $message"
"$VARVE" check --json "$place" >"$work/stdout" || true
grep -q '"message_type": *"store_damage"' "$work/stdout" || fail "$(cat "$work/stdout")"
expect_status 2 "$VARVE" status "$place"
grep -qE "CRITICAL - the check of .* damaged objects? in $place; run .varve repair" "$work/stdout" || fail "$(cat "$work/stdout")"
"$VARVE" -q repair --yes "$place"
"$VARVE" status "$place" >"$work/stdout" || fail "$(cat "$work/stdout")"
"$VARVE" -q check --quick "$place"
[ "$(store_command replace /seg/)" -ge 1 ]
expect_status 1 "$VARVE" check --quick "$place"
grep -q '/seg/.*was replaced' "$work/stdout" || fail "$(cat "$work/stdout") $message"
"$VARVE" -q repair --yes "$place"
"$VARVE" -q check --quick "$place"
"$VARVE" status --max-check-age 1h "$place" >"$work/stdout" || true
! grep -q 'compared the objects\|check of the objects' "$work/stdout" || fail "$(cat "$work/stdout")"
ok "status tells of damage in the store until a repair or a check ends it, also of replaced objects"
ok "check compares the store with its list, and tries whether conditions are honoured"

# Renewed credentials, while the daemon waits for minutes after a refusal.
mkdir -p "$HOME/.aws"
credentials() { printf '[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n' "$AWS_ACCESS_KEY_ID" "$1" >"$HOME/.aws/credentials"; }
credentials wrong
env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY "$VARVE" mount "$place" "$mnt"
cp -a "$work/source" "$mnt/s/renewed.partial"
mv -T "$mnt/s/renewed.partial" "$mnt/s/renewed"
expect_status 1 timeout 60 "$VARVE" wait "$place" s/renewed
expect_status 2 "$VARVE" status "$place"
credentials "$AWS_SECRET_ACCESS_KEY"
timeout 60 "$VARVE" -q wait "$place" s/renewed || fail "wait tells the old failure"
mv "$mnt/s/renewed" "$mnt/s/renamed"
timeout 60 "$VARVE" -q wait "$place"
"$VARVE" umount "$mnt"
rm "$HOME/.aws/credentials"
ok "wait has the daemon try again, and a rename of a version is uploaded"

# Changes that are no versions.
place=$place-secret
repo=$work/secret
umask 077
for name in one two; do head -c 32 /dev/urandom >"$work/$name.key"; done
export VARVE_KEY_FILE=$work/one.key
"$VARVE" -q init --encrypt "$place" --local="$repo"
"$VARVE" -q key add --new-key-file "$work/two.key" "$repo"
for name in one two three; do "$VARVE" -q store "$repo" "s/$name" "$work/source"; done
"$VARVE" status "$repo" >"$work/stdout" || fail "$(cat "$work/stdout")"
attaches_with_key_two() { VARVE_KEY_FILE=$work/two.key "$VARVE" -q attach "$place" "$work/$1" 2>"$work/stderr"; }
attaches_with_key_two before || fail "$(cat "$work/stderr")"
end_by() {  # SIGNAL STATUS COMMAND…: ends a command of varve that waits for the store
  local signal=$1 expected=$2 command status=0
  shift 2
  : >"$work/stderr"  # Without the words of the command before, which the shell removes later.
  "$VARVE" "$@" >"$work/stdout" 2>"$work/stderr" &
  command=$!
  wait_until "the command waits" grep -q 'Ctrl-C ends the wait' "$work/stderr"
  kill "-$signal" "$command"
  wait "$command" || status=$?
  [ "$status" -eq "$expected" ] || fail "status $status: $(cat "$work/stderr")"
}
status_says() {  # REGEX…
  local regex
  expect_status 1 "$VARVE" status "$repo"
  for regex; do grep -qE "$regex" "$work/stdout" || fail "not $regex: $(cat "$work/stdout")"; done
}
stop_store
end_by TERM 130 key rm "$repo" 2
grep -q "until then, the former keys open the repository in $place" "$work/stderr" || fail "$(cat "$work/stderr")"
status_says "WARNING - a change of the keys is not in $place.*former keys.*varve wait"
"$VARVE" status --json "$repo" >"$work/stdout" || true
grep -q '"keys_pending":true' "$work/stdout" || fail "$(cat "$work/stdout")"
end_by TERM 130 rm "$repo" s/one
end_by TERM 130 config "$repo" parity=5
end_by TERM 130 lock --for 1h "$repo" s/two
status_says 'a change of the keys' 'changes of settings are not in .*varve wait' '1 deleted version is still in .*varve wait'
end_by TERM 130 wait "$repo"
start_store_again
"$VARVE" -q wait "$repo"
"$VARVE" status "$repo" >"$work/stdout" || fail "$(cat "$work/stdout")"
if attaches_with_key_two after; then fail "a removed key opens the repository"; fi
"$VARVE" -q attach "$place" "$work/fresh"
[ "$("$VARVE" ls --json "$work/fresh" s | wc -l)" = 2 ]
ok "status tells of keys, settings and deletions that the store lacks, and wait uploads them"

"$VARVE" mount "$repo" "$mnt"
"$VARVE" -q key add --new-key-file "$work/two.key" "$repo"
"$VARVE" -q config "$repo" parity=0
timeout 30 "$VARVE" -q wait "$repo"
attaches_with_key_two mounted || fail "$(cat "$work/stderr")"
stop_store
"$VARVE" key rm "$repo" 2 2>"$work/stderr"
grep -q "former keys open the repository in $place" "$work/stderr" || fail "$(cat "$work/stderr")"
"$VARVE" -q lock --for 2h "$mnt/s/two"
status_says 'a change of the keys' 'changes of settings'
start_store_again
timeout 60 "$VARVE" -q wait "$repo"
if attaches_with_key_two unmounted; then fail "a removed key opens the repository"; fi
"$VARVE" umount "$mnt"
"$VARVE" status "$repo" >"$work/stdout" || fail "$(cat "$work/stdout")"
ok "the daemon of a mount uploads changes of keys and settings at once"
