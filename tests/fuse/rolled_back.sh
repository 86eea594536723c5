#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An older state of an encrypted repository is put back: the machine that used it sees that, and no
# crash, repair or reader beside a writer seems to be one.
limit_s=240
. "$(dirname "$0")/lib.sh"
: "${VARVE_INIT_ENCRYPTED:?is the program that makes an encrypted repository}"

umask 077
echo secret >"$work/pass"
export VARVE_PASSPHRASE_FILE=$work/pass
mkdir "$work/src"
master=$work/master

store() { "$VARVE" -q store --no-arrange "$repo" "$1" "$work/src" >/dev/null; }  # SERIES/VERSION
put_back() {  # WHAT…: puts parts of the older state back
  local what
  for what; do
    rm -rf "${repo:?}/$what"
    cp -a "$master/$what" "$repo/$what"
  done
}
sequence() { "$VARVE" check --quick --json "$@" "$repo" | tail -1 | python3 -c '
import json, sys
print(json.load(sys.stdin)["sequence"])'; }
memory() { cat "$XDG_STATE_HOME/varve/"*[0-9a-f]; }  # The lock has another name.
versions() { "$VARVE" ls "$repo" s | wc -l; }
refused() {  # COMMAND…: is an error that tells of the older state
  expect_status 1 "$@"
  message_says 'older than this machine remembers'
  message_says 'accept-older'
}

"$VARVE_INIT_ENCRYPTED" "$repo" secret
for i in 1 2 3; do
  echo "content $i" >"$work/src/file"
  store "s/v$i"
done
cp -a "$repo" "$master"
old=$(sequence)
echo 'content 4' >"$work/src/file"
store s/v4
new=$(sequence)
[ "$new" -gt "$old" ]
[ "$(memory)" = "varve-sequence 1 $new" ]
[ "$(stat -c %a "$XDG_STATE_HOME/varve" "$XDG_STATE_HOME/varve/"*[0-9a-f] | tr '\n' ' ')" = "700 600 " ]
"$VARVE" stats "$repo" >"$work/out"
grep -q "sequence number *$new" "$work/out"
"$VARVE" stats --json "$repo" >"$work/out"
grep -q "\"sequence\":$new" "$work/out"
"$VARVE" status --json "$repo" >"$work/out"
grep -q "\"sequence\":$new" "$work/out"
"$VARVE" status "$repo" >"$work/out"
grep -q "sequence number *$new" "$work/out"
ok "each store raises the sequence number, which check, stats and status show, and the machine remembers"

mv "$repo" "$work/newest"
cp -a "$master" "$repo"
for command in ls check 'stats' 'diff s/v1 s/v2' 'rm -n s/v1' "restore s/v1 $work/restored" 'arrange' 'key list'; do
  read -ra words <<<"$command"
  [ "$command" = 'key list' ] && continue  # It reads the superblock only.
  refused "$VARVE" "${words[0]}" "$repo" "${words[@]:1}"
done
refused "$VARVE" store "$repo" s/v5 "$work/src"
refused "$VARVE" mount "$repo" "$mnt"
refused "$VARVE" mount -o ro "$repo" "$mnt"
expect_status 2 "$VARVE" status "$repo"
grep -q '^CRITICAL - .*older than this machine' "$work/stdout"
expect_status 1 env XDG_STATE_HOME="$work/elsewhere" "$VARVE" check --expect "$new" "$repo"
grep -q "sequence number is $old, and $new was expected" "$work/stdout"
expect_status 0 env XDG_STATE_HOME="$work/elsewhere" "$VARVE" check --expect "$old" "$repo"
refused "$VARVE" repair -n "$repo"
refused "$VARVE" repair --yes "$repo"
message_says 'changed nothing'
[ "$(memory)" = "varve-sequence 1 $new" ]
diff -r "$master" "$repo" -x lock.mdb -x checked
ok "a whole repository that was put back is refused, read and written, and stays as it is"

"$VARVE" mount -o ro,accept_older "$repo" "$mnt"
[ "$(cat "$mnt/s/v3/file")" = 'content 3' ]
unmount_repo
[ "$(memory)" = "varve-sequence 1 $old" ]
"$VARVE" ls "$repo" >/dev/null
rm -rf "$repo"
cp -a "$work/newest" "$repo"
[ "$(sequence)" -eq "$new" ]
rm -rf "$repo"
cp -a "$master" "$repo"
refused "$VARVE" ls "$repo"
"$VARVE" ls --accept-older "$repo" >/dev/null
store s/v5
[ "$(versions)" -eq 4 ]
ok "once accepted, the older state is the one that counts"

rm -rf "$repo" "$master"
cp -a "$work/newest" "$repo"
"$VARVE" ls --accept-older "$repo" >/dev/null
cp -a "$repo" "$master"
echo 'content 6' >"$work/src/file"
store s/v6
put_back catalog
refused "$VARVE" ls "$repo"
refused "$VARVE" mount "$repo" "$mnt"
"$VARVE" repair --yes "$repo" >/dev/null
[ "$(versions)" -eq 5 ]
"$VARVE" check --read-data "$repo" >/dev/null
ok "an older catalog alone is seen, also by a reader, and after its repair nothing is refused"

rm -rf "$master"
cp -a "$repo" "$master"
store s/v7
put_back series/00000001/labels
"$VARVE" ls "$repo" >/dev/null
[ "$(versions)" -eq 6 ]
store s/v8
[ "$(versions)" -eq 7 ]
new=$(sequence)
ok "older labels alone take nothing away"

rm -rf "${repo:?}/catalog"
"$VARVE" repair --yes "$repo" >/dev/null
[ "$(sequence)" -ge "$new" ]
store s/v9
[ "$(sequence)" -gt "$new" ]
ok "a catalog that is rebuilt from the labels goes on from the highest number"

new=$(sequence)
mv "$repo" "$work/newer"
cp -a "$master" "$repo"
mv "$repo/catalog" "$work/lost"
cp -a "$repo" "$work/seen"
refused "$VARVE" repair --yes "$repo"
diff -r "$work/seen" "$repo"
"$VARVE" repair --yes --accept-older "$repo" >/dev/null
[ "$(versions)" -eq 5 ]
[ "$(sequence)" -lt "$new" ]
rm -rf "$repo"
mv "$work/newer" "$repo"
[ "$(sequence)" -eq "$new" ]
ok "an older state without its catalog is not repaired until it is accepted"

for round in 1 2 3; do
  mount_as_job
  mkdir -p "$mnt/s/k$round.partial"
  echo "$round" >"$mnt/s/k$round.partial/file"
  mv -T "$mnt/s/k$round.partial" "$mnt/s/k$round"
  mkdir "$mnt/s/open.partial"
  kill_daemon
  "$VARVE" ls "$repo" >"$work/out"
  grep -q "k$round" "$work/out"
  "$VARVE" rm -q "$repo" s/open.partial >/dev/null
done
ok "a killed daemon leaves no state that is refused"

mount_as_job
ro=$work/ro
mkdir "$ro"
writing() {
  local i
  for i in $(seq 15); do
    mkdir "$mnt/s/w$i.partial"
    mv -T "$mnt/s/w$i.partial" "$mnt/s/w$i" || return 1
  done
}
writing &
writer=$!
looks=0
while kill -0 "$writer" 2>/dev/null || [ "$looks" -lt 5 ]; do
  "$VARVE" ls "$repo" >/dev/null || fail "a reader beside the writer is refused"
  "$VARVE" mount -o ro "$repo" "$ro"
  "$VARVE" umount "$ro"
  looks=$((looks + 1))
done
wait "$writer"
unmount_repo
wait "$daemon"
[ "$(memory)" = "varve-sequence 1 $(sequence)" ]
ok "$looks commands and read-only mounts beside a writer saw no older state"

memory_file=$(echo "$XDG_STATE_HOME/varve/"*[0-9a-f])
for text in '' 'varve-sequence 1 x' "$(head -c 100000 /dev/zero | tr '\0' 9)"; do
  echo "$text" >"$memory_file"
  expect_status 1 "$VARVE" ls "$repo"
  message_says "$memory_file"
done
rm "$memory_file"
mkfifo "$memory_file"
expect_status 1 timeout 20 "$VARVE" ls "$repo"
rm "$memory_file"
ln -s /etc/passwd "$memory_file"
expect_status 1 "$VARVE" ls "$repo"
rm "$memory_file"
echo 'damaged' >"$memory_file"
"$VARVE" ls --accept-older "$repo" >/dev/null
[ "$(memory)" = "varve-sequence 1 $(sequence)" ]
for place in /proc/none /dev/null/x; do
  XDG_STATE_HOME=$place "$VARVE" -q ls "$repo" >/dev/null 2>"$work/stderr"
  [ ! -s "$work/stderr" ] || fail "without a place: $(cat "$work/stderr")"
done
ok "a damaged memory is a clear error until it is written again; without a place for it Varve works"

unset VARVE_PASSPHRASE_FILE
"$VARVE" -q init "$work/plain"
expect_status 1 "$VARVE" check --expect 1 "$work/plain"
message_says 'not encrypted'
expect_status 2 "$VARVE" check --expect x "$repo"
expect_status 2 "$VARVE" check --expect 1 --outer "$repo"
for number in -1 18446744073709551616 99999999999999999999; do
  expect_status 2 "$VARVE" check --expect "$number" "$repo"
  message_says 'whole number from 0 to 18446744073709551615'
done
"$VARVE" check --json "$work/plain" >"$work/out"
if grep -q sequence "$work/out"; then fail "a plain repository has a sequence number"; fi
ok "a plain repository has no sequence number"
