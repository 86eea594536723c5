#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Another machine takes a repository over, and the mount of the first one does not know so yet. Each
# change of a series or a version asks the store first, and fails: no change ends with success that
# cannot reach the store. Changes of files ask within seconds.
limit_s=300
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
start_store

(umask 077; for name in one two; do head -c 32 /dev/urandom >"$work/$name.key"; done)
export VARVE_KEY_FILE=$work/one.key
"$VARVE" -q init --encrypt "$place" --local="$repo"
mkdir "$work/source"
head -c 100K /dev/urandom >"$work/source/data"
for name in s/one s/two t/one; do "$VARVE" -q store "$repo" $name "$work/source"; done
cp -a "$repo" "$work/before"
[ "$(store_command save laptop)" -gt 5 ]
listed() {
  { "$VARVE" ls "$repo"; "$VARVE" ls "$repo" s; "$VARVE" ls "$repo" t; } | awk '{ print $1 }' | grep -v partial
  "$VARVE" config "$repo" | grep -E "^(parity|dead|keep-last)"
}
listed >"$work/listed"

changes=0
while_another_writes() {  # COMMAND…: runs the command in a mount whose daemon knows of no fence
  status=0
  rm -rf "$repo" "$work/second"
  cp -a "$work/before" "$repo"
  store_command undo >/dev/null
  : >"$work/daemon.log"
  mount_as_job -o rm_deletes=60
  mkdir "$mnt/s/three.partial"
  cp "$work/source/data" "$mnt/s/three.partial/"
  "$VARVE" -q attach --write "$place" "$work/second"
  "$@" >"$work/stdout" 2>"$work/stderr" || status=$?
  changes=$((changes + 1))
}
ends() {
  wait_until "the log says so" grep -q 'another folder writes' "$work/daemon.log"
  "$VARVE" umount "$mnt" 2>/dev/null || true
  wait "$daemon" || true
}

for change in "rm -r $mnt/s/one" "mv $mnt/s/one $mnt/s/renamed" "mkdir $mnt/new" "mkdir $mnt/s/four.partial" \
  "mv $mnt/s/three.partial $mnt/s/three" "rmdir $mnt/s/three.partial"; do
  while_another_writes $change
  [ "$status" -ne 0 ] && grep -q 'Read-only file system' "$work/stderr" ||
    fail "$change ended with $status: $(cat "$work/stderr")"
  ends
  listed | diff "$work/listed" - || fail "after $change"
done
ok "the mount refuses changes of series and versions"

refuses() { ! "$@" 2>"$work/stderr" && grep -q 'Read-only file system' "$work/stderr"; }
while_another_writes true
wait_until "changes of files are refused" refuses touch "$mnt/s/three.partial/more"
refuses rm "$mnt/s/three.partial/data" || fail "rm: $(cat "$work/stderr")"
refuses mv "$mnt/s/three.partial/data" "$mnt/s/three.partial/other" || fail "mv: $(cat "$work/stderr")"
cmp "$work/source/data" "$mnt/s/three.partial/data"
ends
ok "the mount refuses changes of an open version's files"

for change in "rm $repo s/one" "rm $repo s/three.partial" "mv $repo s/one renamed" "mv $repo s renamed" \
  "lock --for 1h $repo s/one" "config $repo parity=5" "config $repo dead=30" "config $repo keep-last=5" "config $repo s placement=pool" "clone $mnt/s/two $mnt/s/four.partial" \
  "store $repo s/four $work/source" "prune --keep-last 1 $repo s" "open $repo s/five.partial" \
  "key add --new-key-file $work/two.key $repo"; do
  while_another_writes "$VARVE" $change
  [ "$status" -eq 1 ] && grep -q 'another folder writes' "$work/stderr" ||
    fail "varve $change ended with $status: $(cat "$work/stderr")"
  [ -e "$mnt/s/three.partial/data" ] || fail "varve $change changed something"
  ends
  listed | diff "$work/listed" - || fail "after varve $change"
done
ok "commands beside the mount change nothing"

for change in "rm $repo s/one" "mv $repo s/one renamed" "store $repo s/four $work/source" "prune --keep-last 1 $repo s"; do
  expect_status 1 "$VARVE" $change
  message_says 'another folder writes'
  listed | diff "$work/listed" - || fail "after varve $change"
done
ok "commands change nothing in a folder that is known to be fenced"

store_command undo >/dev/null
rm -rf "$repo"
cp -a "$work/before" "$repo"
mount_as_job -o rm_deletes=60
stop_store
mv "$mnt/s/one" "$mnt/s/renamed"
mkdir "$mnt/s/four.partial"
start_store_again
"$VARVE" -q wait "$repo"
"$VARVE" umount "$mnt"
[ "$changes" -ge 19 ] || fail "only $changes changes"
ok "a store out of reach holds up no change"
