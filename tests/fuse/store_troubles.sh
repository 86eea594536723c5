#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What users meet when a store refuses them for good: umount fails and says why, nothing is lost; an interrupted store can be
# ended by `varve wait`; a lost file `bucket` is no local repository; an attached folder has no open versions.
limit_s=180
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
start_store

mkdir -p "$work/source"
head -c 200K /dev/urandom >"$work/source/data"
"$VARVE" -q init "$place" --local="$repo"
"$VARVE" -q store "$place" s/one "$work/source"

seal_in_mount() {  # NAME
  cp -a "$work/source" "$mnt/s/$1.partial"
  mv -T "$mnt/s/$1.partial" "$mnt/s/$1"
}

# Only /etc/hosts names hosts, so that the time of a refusal does not depend on the machine's network.
if in_own_namespace; then
  echo 'hosts: files' >"$work/nsswitch.conf"
  mount --bind "$work/nsswitch.conf" /etc/nsswitch.conf
fi

# Wrong credentials, and a host without an address.
for trouble in AWS_SECRET_ACCESS_KEY=wrong AWS_ENDPOINT_URL=http://store.invalid; do
  env "$trouble" "$VARVE" mount -f "$repo" "$mnt" 2>>"$work/daemon.log" &
  daemon=$!
  wait_until "the mount appears" mountpoint -q "$mnt"
  seal_in_mount "${trouble%%=*}"
  if [ "${trouble%%=*}" = AWS_ENDPOINT_URL ]; then
    "$VARVE" umount "$mnt" 2>"$work/stderr" &
    unmounting=$!
    wait_until "umount waits for the network" grep -q -- '--no-wait' "$work/stderr"
    kill "$daemon"
    status=0
    wait "$unmounting" || status=$?
    [ $status -eq 1 ] || fail "status $status: $(cat "$work/stderr")"
  else
    cp -a "$work/source" "$mnt/s/told.partial"
    expect_status 1 timeout 60 "$VARVE" seal "$mnt/s/told.partial"
    message_says 'is safe there.*tries again'
    expect_status 2 "$VARVE" status "$repo"
    grep -q 'the upload to s3://.* failed on' "$work/stdout" || fail "$(cat "$work/stdout")"
    expect_status 1 timeout 60 "$VARVE" wait "$repo"
    expect_status 1 "$VARVE" umount "$mnt"
    message_says '2 versions are not in s3://varve-test/machines/laptop.*is safe there.*varve wait'
  fi
  wait "$daemon" || true
  "$VARVE" -q wait "$repo"
done
[ "$("$VARVE" ls --json "$repo" s | wc -l)" = 4 ]
"$VARVE" mount "$repo" "$mnt"
seal_in_mount four
"$VARVE" umount "$mnt"
ok "umount fails if the store lacks what is sealed, and says that nothing is lost"

# A request of a former user of the mount runs on when the daemon is told to end: a sync, of a busy disk.
: "${VARVE_FAULTY_DISK:?is the path of the library made from faulty_disk.cc}"
stop_store
LD_PRELOAD=$VARVE_FAULTY_DISK DISK_BELOW=$repo DISK_STALLS_WHILE=$work/stalled \
  "$VARVE" mount -f "$repo" "$mnt" 2>>"$work/daemon.log" &
daemon=$!
wait_until "the mount appears" mountpoint -q "$mnt"
seal_in_mount closing
mkdir "$mnt/s/written.partial"
cp "$work/source/data" "$mnt/s/written.partial/"
connection=$(awk -v point="$mnt" '$5 == point { print $3 }' /proc/self/mountinfo)
connection=/sys/fs/fuse/connections/${connection#*:}
[ -e "$connection" ] || mount -t fusectl none "${connection%/*}"
touch "$work/stalled"
sync "$mnt/s/written.partial/data" 2>"$work/stderr" &
syncing=$!
is_in_flight() { [ "$(cat "$connection/waiting")" -gt 0 ]; }
wait_until "the sync waits for the disk" is_in_flight
umount -l "$mnt"
echo 1 >"$connection/abort"
wait "$syncing" || true
receives_nothing() { ! cat "/proc/$daemon/task/"*/wchan | grep -q fuse; }
wait_until "the daemon has seen the end of the mount" receives_nothing
kill "$daemon"
rm "$work/stalled"
wait_until "the daemon ends" eval '! kill -0 "$daemon" 2>/dev/null'
wait "$daemon" || true
start_store_again
"$VARVE" -q rm "$repo" s/written.partial
"$VARVE" -q wait "$repo"
ok "a daemon that closes its repository ends on a signal, and does not wait for the store"

stop_store
"$VARVE" store "$repo" s/five "$work/source" 2>"$work/stderr" &
storing=$!
wait_until "the store waits" grep -q 'Ctrl-C ends the wait' "$work/stderr"
kill -TERM "$storing"
status=0
wait "$storing" || status=$?
[ $status -eq 130 ] || fail "status $status: $(cat "$work/stderr")"
! grep -q 'stays open' "$work/stderr" || fail "$(cat "$work/stderr")"
expect_status 1 "$VARVE" store --no-wait "$repo" s/five "$work/source"
message_says 'exists already; if only its upload was interrupted, `varve wait'
start_store_again
"$VARVE" -q wait "$repo"
ok "an interrupted upload is no open version, and the same command says how to end it"

# A version that stays open on the machine that writes.
"$VARVE" -q store --keep-open "$repo" other/open "$work/source"
echo more >>"$work/source/data"
"$VARVE" -q store "$repo" s/six "$work/source"
"$VARVE" -q attach "$place" "$work/reader"
"$VARVE" check "$work/reader" >"$work/stdout" || fail "$(cat "$work/stdout")"
"$VARVE" status "$work/reader" >"$work/stdout" || fail "$(cat "$work/stdout")"
"$VARVE" ls "$work/reader" >"$work/stdout"
! grep -q 'other/open' "$work/stdout" || fail "$(cat "$work/stdout")"
"$VARVE" ls "$repo" | cat >"$work/stdout"
grep -q 'other/open' "$work/stdout"
ok "an attached folder has no open versions, and its check misses none"

mv "$repo/bucket" "$work/bucket"
expect_status 1 "$VARVE" store "$repo" s/seven "$work/source"
message_says 'bucket is missing.*role = writer'
expect_status 1 "$VARVE" ls "$repo"
expect_status 1 "$VARVE" wait "$repo"
mv "$work/bucket" "$repo/bucket"
"$VARVE" -q store "$repo" s/seven "$work/source"
ok "a repository whose file bucket is lost is not taken for a local one"

# Rot in the store, which the folder's own data hides. Each check reads the small objects.
"$VARVE" check --read-data "$repo" >"$work/stdout" || fail "$(cat "$work/stdout")"
"$VARVE" check --read-store --json "$repo" >"$work/json"
grep '"store_check"' "$work/json" | grep -qE '"read_objects":[1-9]' || fail "$(cat "$work/json")"
for kind in /seg/ /cat/; do
  changed=$(store_command rot $kind)
  [ "$changed" -gt 0 ]
  expect_status $([ $kind = /seg/ ] && echo 0 || echo 1) "$VARVE" check --read-data "$repo"
  expect_status 1 "$VARVE" check --quick --read-store "$repo"
  grep -q "$kind.*other bytes" "$work/stdout" || fail "$(cat "$work/stdout")"
  store_command rot $kind >/dev/null
done
"$VARVE" check --quick --read-store "$repo" >/dev/null
"$VARVE" init "$work/local" >/dev/null
expect_status 2 "$VARVE" check --read-store "$work/local"
ok "check --read-store finds rot in the store"

# A wrong answer that came once stays in a reader's cache until a check.
rm -rf "$work/reader"
"$VARVE" -q attach "$place" "$work/reader"
store_command rot /seg/ >/dev/null
expect_status 3 "$VARVE" -q restore "$work/reader" s/one "$work/restored"
rm -rf "$work/restored"
expect_status 1 "$VARVE" check "$work/reader"
store_command rot /seg/ >/dev/null
"$VARVE" check "$work/reader" >"$work/stdout" || fail "$(cat "$work/stdout")"
"$VARVE" -q restore "$work/reader" s/one "$work/restored"
cmp <(head -c 200K "$work/source/data") "$work/restored/data"
ok "a wrong answer of the store counts as damage only while the store repeats it"

# A store that was put back to an older state.
"$VARVE" -q attach "$place" "$work/late"
store_command lose /head/ >/dev/null
expect_status 1 "$VARVE" ls "$work/late"
message_says 'lacks the head [0-9]+, which was there before'
ok "a reader says that the store lacks a head that it knew"

# The object that names the repository.
place=$place-names
repo=$work/names
"$VARVE" -q init "$place" --local="$repo"
for head in none some; do
  [ $head = none ] || "$VARVE" -q store "$repo" s/one "$work/source"
  [ "$(store_command lose laptop-names/varve.repo)" = 1 ]
  if [ $head = none ]; then
    expect_status 1 "$VARVE" store "$repo" s/zero "$work/source"
    message_says 'varve.repo is missing.*varve repair'
  fi
  "$VARVE" -q repair --yes "$repo"
  "$VARVE" -q wait "$repo"
  "$VARVE" -q check "$repo"
done
store_command rot laptop-names/varve.repo >/dev/null
expect_status 0 "$VARVE" attach "$place" "$work/named"
message_says 'names/varve.repo is lost or damaged.*varve repair. in the folder that writes'
rm -r "$work/named"
"$VARVE" -q repair --yes "$repo"
expect_status 0 "$VARVE" attach "$place" "$work/named"
! grep -q damaged "$work/stderr" || fail "$(cat "$work/stderr")"
expect_status 1 "$VARVE" attach "$place"$'\t' "$work/tab"
message_says 'control characters'
ok "a lost or damaged varve.repo in the store is named, and repair puts it back"
