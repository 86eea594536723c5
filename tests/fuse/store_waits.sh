#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Waiting for an object store, and what it costs: --no-wait, interrupted commands, umount while the
# store is down, prune beside versions that were not replicated, requests with prices, and checks of
# the store.
limit_s=240
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
ok "check compares the store with its list, and tries whether conditions are honoured"
