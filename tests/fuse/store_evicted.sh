#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A repository in an object store whose folder keeps no data: all that the store has is evicted at
# once. It is used by commands and by a mount, is killed, loses its store for a while, and is taken
# over by a second machine. The store is tests/s3/store.py.
limit_s=300
. "$(dirname "$0")/lib.sh"

start_store() {
  coproc STORE { exec python3 "$here/../s3/store.py"; }
  read -r _ port <&"${STORE[0]}"
  export AWS_ENDPOINT_URL=http://127.0.0.1:$port
}
export AWS_ACCESS_KEY_ID=AKIDTEST AWS_SECRET_ACCESS_KEY=secret/of+the=test
unset AWS_PROFILE AWS_SESSION_TOKEN AWS_REGION
export HOME=$work  # No files of AWS.
start_store
place=s3://varve-test/laptop

ask_store() {
  echo "$1" >&"${STORE[1]}"
  read -r answer <&"${STORE[0]}"
}
# Prints the bytes of segments and volumes in a folder.
data_bytes() {
  find "$1" -name '*.seg' -printf '%s\n' -o -name '*.vol' -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }'
}
has_no_data() {
  local bytes
  bytes=$(data_bytes "$1")
  [ "$bytes" = 0 ] || fail "$1 has $bytes bytes of data"
}
keep() { mkdir -p "$work/versions" && cp -a "$work/source" "$work/versions/$1"; }
restored_is() {  # FOLDER VERSION
  rm -rf "$work/restored"
  "$VARVE" -q restore "$1" "s/$2" "$work/restored"
  same_tree --ignore holes "$work/versions/$2" "$work/restored"
}

"$VARVE" -q init --cache-size=0 --local="$repo" "$place"
grep -x 'cache = 0' "$repo/bucket" >/dev/null
mkdir -p "$work/source/dir"
head -c 3M /dev/urandom >"$work/source/big"
cp -a /etc/passwd "$work/source/dir/passwd"
ln -s dir "$work/source/link"
truncate -s 1M "$work/source/hole"
"$VARVE" -q store "$repo" s/one "$work/source"
keep one
has_no_data "$repo"
restored_is "$repo" one
"$VARVE" -q check --read-data "$repo"
"$VARVE" -q check --outer "$repo"  # What was evicted is not missing.
ok "a stored version is evicted, restored and checked"

head -c 2M /dev/urandom >"$work/source/more"
echo changed >>"$work/source/dir/passwd"
"$VARVE" -q store "$repo" s/two "$work/source"
keep two
has_no_data "$repo"
ok "the next version finds its duplicates"

mount_repo
same_tree --ignore holes "$work/versions/one" "$mnt/s/one"
"$VARVE" clone "$mnt/s/two" "$mnt/s/three.partial" >/dev/null
head -c 1M /dev/urandom >"$work/source/new"
touch -d 2001-02-03 "$work/source"  # rsync compares whole seconds.
rsync -aHAX --delete "$work/source/" "$mnt/s/three.partial/"
"$VARVE" -q seal "$mnt/s/three.partial"
keep three
rm "$work/source/more"
cp -a "$work/source" "$mnt/s/four.partial"
mv -T "$mnt/s/four.partial" "$mnt/s/four"
keep four
for name in one two three four; do same_tree --ignore holes "$work/versions/$name" "$mnt/s/$name"; done
"$VARVE" -q rm "$mnt/s/one"
unmount_repo
has_no_data "$repo"
ok "a mount browses, clones, takes cp and rsync, and deletes"

"$VARVE" -q arrange "$repo" s
"$VARVE" -q prune --keep-last 2 "$repo" s
has_no_data "$repo"
restored_is "$repo" three
restored_is "$repo" four
"$VARVE" -q check --read-data "$repo"
ok "arrange and prune work without local data"

mount_as_job
head -c 1M /dev/urandom >"$work/source/extra"
cp -a "$work/source" "$mnt/s/five.partial"
mv -T "$mnt/s/five.partial" "$mnt/s/five"
keep five
kill_daemon
"$VARVE" -q wait "$repo" s/five
restored_is "$repo" five
restored_is "$repo" four
ok "a killed daemon loses nothing"

# The store stops answering: evicted data cannot be read, all else goes on.
export VARVE_NO_WAIT=1
"$VARVE" -q store "$repo" s/six "$work/source"
unset VARVE_NO_WAIT
keep six
"$VARVE" -q wait "$repo" s/six
restored_is "$repo" six
ok "what waits for the store is replicated later"

"$VARVE" -q attach --write --cache-size=0 "$place" "$work/second"
has_no_data "$work/second"
restored_is "$work/second" five
"$VARVE" -q store "$work/second" s/seven "$work/source"
keep seven
restored_is "$work/second" seven
"$VARVE" -q check --read-data "$work/second"
ok "a second machine takes over"

head -c 100K /dev/urandom >"$work/source/late"
expect_status 11 "$VARVE" store "$repo" s/late "$work/source"
message_says 's/late'
message_says 'varve copy'
keep late
"$VARVE" -q copy "$repo" "$work/rescued"
restored_is "$work/rescued" late
expect_status 1 "$VARVE" copy "$repo" "$work/second"
message_says 'the folder that took over'
message_says 'mount the source with -o ro'
"$VARVE" mount -o ro "$repo" "$mnt"
"$VARVE" -q store "$work/second" s/late "$mnt/s/late"
"$VARVE" umount "$mnt"
restored_is "$work/second" late
ok "the first machine is fenced, and varve copy rescues its version"
