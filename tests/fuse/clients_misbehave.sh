#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Clients that hold connections, do not read, or belong to other users neither block the daemon nor
# keep it from ending. If a daemon is stopped, or lacks descriptors or threads, the commands'
# messages name it.
. "$(dirname "$0")/lib.sh"

user=65534
chmod 711 "$work"
socket=$repo/control.sock
misbehave() {  # HOW COUNT: runs clients in the background; sets $client
  python3 "$here/clients.py" "$socket" "$@" >"$work/client.out" 2>/dev/null &
  client=$!
  wait_until "the clients connect" grep -q holding "$work/client.out"
}
threads() { awk '/^Threads/ { print $2 }' "/proc/$daemon/status"; }
cpu_ticks() { sed 's/.*) //' "/proc/$daemon/stat" | awk '{ print $12 + $13 }'; }
seal_new() {  # NAME: creates a version and seals it by path
  mkdir "$mnt/s/$1" && "$VARVE" seal "$mnt/s/$1" >/dev/null
}

"$VARVE" init "$repo" >/dev/null
mount_as_job
mkdir "$mnt/s"
before=$(threads)
misbehave silent 200
[ "$(threads)" -lt $((before + 64)) ] || fail "200 silent clients make $(threads) threads of $before"
mkdir "$mnt/s/one"
served() { "$VARVE" seal "$repo" s/one >/dev/null 2>"$work/refusal"; }
wait_until "silent clients lose their connections" served
[ ! -s "$work/refusal" ] || fail "$(cat "$work/refusal")"
kill $client
ok "200 clients that say nothing are told or dropped, and cost no threads"

misbehave greedy 20
timeout 20 "$VARVE" umount "$mnt" || fail "umount waits for clients that do not read"
wait $daemon
kill $client
ok "umount ends the daemon while clients do not read their answers"

mount_as_job
# The next few connections use up the remaining descriptors.
last=$(ls "/proc/$daemon/fd" | awk '$1 < 60' | sort -n | tail -1)
prlimit --pid "$daemon" --nofile="$((last + 2)):"
misbehave silent 40
ticks=$(cpu_ticks)
sleep 1  # A defective daemon would spin in this time.
ticks=$(($(cpu_ticks) - ticks))
[ $ticks -lt 30 ] || fail "the daemon took $ticks ticks of a second"
expect_status 1 "$VARVE" seal "$repo" s/none
message_says "too many files open"
kill $client
prlimit --pid "$daemon" --nofile=1024:
seal_new two
ok "a daemon without a free descriptor says so, does not spin, and recovers"

kill -STOP "$daemon"
for command in "seal $repo s/two" "rm $repo s/two" "seal $mnt/s/two" "umount $mnt" "stat $mnt/s/two"; do
  # shellcheck disable=SC2086 # words
  expect_status 1 timeout 30 "$VARVE" $command
  message_says "process $daemon.*kill -CONT $daemon"
done
kill -CONT "$daemon"
seal_new three
ok "commands do not wait for a stopped daemon, and name it"

chmod 711 "$repo"
chmod 666 "$socket"
# The other user may not be able to read this folder.
setpriv --reuid=$user --regid=$user --clear-groups env PATH=/usr/bin:/bin \
  python3 - "$socket" ask <"$here/clients.py" >"$work/answer"
grep -q "not_permitted.*not user $user" "$work/answer" || fail "$(cat "$work/answer")"
ok "another user is not answered, whatever the socket's mode"

mkdir "$mnt/s/written"
echo text >"$mnt/s/written/file"
mv "$socket" "$work/kept"
python3 "$here/clients.py" "$socket" later >"$work/later" &
later=$!
wait_until "it listens" grep -q holding "$work/later"
expect_status 1 "$VARVE" umount "$mnt"
message_says 'did not confirm'
mountpoint -q "$mnt" || fail "it was unmounted"
kill $later
rm "$socket"
mv "$work/kept" "$socket"
rm -r "$mnt/s/written"
ok "umount refuses where it cannot ask the daemon to write first"
unmount_repo
wait $daemon

# TasksMax= of a unit sets the same limit of a control group.
group=$(for pids in /sys/fs/cgroup/pids /sys/fs/cgroup; do
  [ ! -e "$pids/cgroup.procs" ] || { echo "$pids/varve-test-$$" && break; }
done)
if ! { mkdir "$group" && [ -e "$group/pids.max" ]; } 2>/dev/null; then
  rmdir "$group" 2>/dev/null || true
  skip_part "no control group limits processes here"
  exit 0
fi
leave_group() {
  trap - ERR
  set +e
  echo max >"$group/pids.max"
  echo $$ >"${group%/*}/cgroup.procs"
  for task in $(cat "$group/cgroup.procs"); do kill "$task"; done
  until rmdir "$group" || [ $((tries += 1)) -gt 100 ]; do sleep 0.05; done
} 2>/dev/null
trap leave_group EXIT
mount_as_job
echo "$daemon" >"$group/cgroup.procs"
mkdir "$mnt/s/four"
cat "$group/pids.current" >"$group/pids.max"
expect_status 1 timeout 60 "$VARVE" seal "$repo" s/four
message_says "TasksMax"
# Requests that need a thread fail, and the daemon keeps running.
timeout 60 mkdir -p "$mnt/t/one" 2>/dev/null || true
timeout 60 cp "$VARVE" "$mnt/s/four/" 2>/dev/null || true
kill -0 "$daemon" || fail "the daemon has ended"
echo max >"$group/pids.max"
"$VARVE" seal "$repo" s/four >/dev/null
unmount_repo
wait $daemon
ok "a daemon that can start no thread says so, and goes on"

for tasks in 3 8 20 40; do
  echo $tasks >"$group/pids.max"
  status=0
  (echo $BASHPID >"$group/cgroup.procs"
   exec timeout 60 "$VARVE" mount "$repo" "$mnt") 2>"$work/stderr" || status=$?
  if [ $status -eq 0 ]; then
    [ "$(cat "$mnt/s/one/file" 2>/dev/null || ls "$mnt/s" | head -1)" != "" ]
    echo max >"$group/pids.max"
    unmount_repo
  else
    [ $status -eq 1 ] && grep -qE 'TasksMax|start a process' "$work/stderr" ||
      fail "status $status with $tasks tasks: $(cat "$work/stderr")"
    ! mountpoint -q "$mnt" || fail "a dead mount is left over with $tasks tasks"
  fi
done
ok "with too few threads to mount it says so, and leaves no dead mount behind"
