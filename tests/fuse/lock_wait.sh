#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A second writer waits for its turn: it says who has the repository, and signals and --lock-wait end
# the wait.
. "$(dirname "$0")/lib.sh"

mkdir "$work/tree"
echo text >"$work/tree/file"
"$VARVE" -q init "$repo"
mkfifo "$work/pipe"
is_locked() { ! flock -n "$repo/lock" true; }
says() { grep -qsE -- "$1" "$work/waiting"; }
versions() { "$VARVE" ls "$repo" "$1" 2>/dev/null | awk '{ print $1 }' | tr '\n' ' '; }
# Stores what comes through the pipe, and keeps the lock until the pipe ends.
store_slowly() {  # VERSION
  "$VARVE" -q store --stdin dump "$repo" "$1" <"$work/pipe" &
  first=$!
  exec 7>"$work/pipe"
  wait_until "the first store has the lock" is_locked
}
end_slow_store() {
  echo dump >&7
  exec 7>&-
  wait "$first"
}

store_slowly a/1
"$VARVE" -q store "$repo" c/1 "$work/tree" 7>&- &
quiet=$!
"$VARVE" store "$repo" b/1 "$work/tree" 2>"$work/waiting" 7>&- &
second=$!
wait_until "the second store says that it waits" says "in use by process $first \(varve -q store --stdin"
says 'at most 10 min' || fail "$(cat "$work/waiting")"
end_slow_store
wait $second
wait $quiet
[ "$(versions a) $(versions b) $(versions c)" = "a/1  b/1  c/1 " ] || fail "$(versions a) $(versions b) $(versions c)"
[ "$(grep -c waiting "$work/waiting")" -eq 1 ] || fail "$(cat "$work/waiting")"
ok "stores into several series take turns, and one that waits names the other"

# A reader of another user shares the lock.
exec 8<"$repo/lock"
flock -s 8
expect_status 11 "$VARVE" --lock-wait 0 store "$repo" b/2 "$work/tree"
message_says 'is read by a process of another user'
exec 8<&-
ok "a writer that readers keep out says so"

store_slowly a/2
expect_status 11 "$VARVE" --lock-wait 0 store "$repo" b/2 "$work/tree"
message_says 'in use by another process'
expect_status 11 env VARVE_LOCK_WAIT=0 "$VARVE" rm "$repo" b/1
expect_status 11 "$VARVE" prune --lock-wait=1s --keep-last 1 "$repo"
expect_status 2 "$VARVE" store --lock-wait 10m "$repo" b/2 "$work/tree"
message_says '10m.*10min'
expect_status 2 "$VARVE" store --lock-wait '' "$repo" b/2 "$work/tree"
expect_status 2 env VARVE_LOCK_WAIT=long "$VARVE" ls "$repo"
ok "--lock-wait limits the wait, and 0 does not wait"

for command in "store $repo b/2 $work/tree" "prune --keep-last 1 $repo a" "prune --no-arrange --keep-last 1 $repo a" "rm --lock-wait 10min $repo b/1"; do
  rm -f "$work/waiting"
  # shellcheck disable=SC2086
  "$VARVE" $command 2>"$work/waiting" 7>&- &
  second=$!
  wait_until "the command says that it waits" says 'waiting for the end'
  kill -TERM $second
  got=0
  wait $second || got=$?
  [ $got -eq 130 ] || fail "$command: status $got: $(cat "$work/waiting")"
  says 'interrupted.*nothing was changed' || fail "$command: $(cat "$work/waiting")"
done
"$VARVE" prune --keep-last 1 "$repo" a >"$work/pruned" 2>"$work/waiting" 7>&- &
pruning=$!
wait_until "the prune says that it waits" says 'waiting for the end'
end_slow_store
wait $pruning
[ "$(versions a) $(versions b)" = "a/2  b/1 " ] || fail "$(versions a) $(versions b)"
ok "SIGTERM ends a wait and leaves nothing; prune waits for a store, and counts what it stored"

store_slowly a/3
expect_status 11 "$VARVE" repair --yes --lock-wait 0 "$repo"
"$VARVE" repair --yes --lock-wait 10min "$repo" 2>"$work/waiting" 7>&- &
repairing=$!
wait_until "the repair says that it waits" says 'waiting for the end'
end_slow_store
wait $repairing
ok "other commands wait as long as they are told to"

if in_own_namespace; then
  # A daemon that sees other files cannot store for the command.
  unshare -m --propagation private "$VARVE" mount -f "$repo" "$mnt" 2>>"$work/daemon.log" &
  daemon=$!
  wait_until "the daemon elsewhere has the lock" is_locked
  "$VARVE" store "$repo" b/3 "$work/tree" 2>"$work/waiting" 7>&- &
  second=$!
  wait_until "the store says that it waits" says "mounted by process .*varve umount"
  kill -TERM "$(pgrep -P $daemon || echo $daemon)"
  wait $daemon || true
  wait $second
  [ "$(versions b)" = "b/1 b/3 " ] || fail "$(versions b)"
  ok "a store waits for the end of a mount whose daemon cannot do its work"

  unshare -m --propagation private "$VARVE" mount -f "$repo" "$mnt" 2>>"$work/daemon.log" &
  daemon=$!
  wait_until "the daemon elsewhere has the lock" is_locked
  expect_status 11 "$VARVE" store --lock-wait 0 "$repo" b/4 "$work/tree"
  message_says 'another mount namespace'
  expect_status 11 "$VARVE" store --lock-wait 6s "$repo" b/4 "$work/tree"
  message_says 'mounted by .*varve umount'
  expect_status 0 "$VARVE" store --lock-wait 10min --stdin f "$repo" b/4 <"$work/tree/file"
  kill -TERM "$(pgrep -P $daemon || echo $daemon)"
  wait $daemon || true
  ok "a store that cannot wait longer ends with 11; the daemon stores a stream at once"
fi

if users_mount; then
  # Root beside a user's mount: the daemon cannot read root's files, and root cannot read the catalog.
  user=65534
  chmod 711 "$work"
  cp "$VARVE" "$work/varve"
  mkdir "$work/theirs" "$work/point"
  chown $user "$work/theirs" "$work/point"
  as_user() { setpriv --reuid=$user --regid=$user --clear-groups env HOME="$work/theirs" XDG_STATE_HOME="$work/theirs" "$work/varve" "$@"; }
  theirs=$work/theirs/repo
  as_user -q init "$theirs"
  export VARVE_TRUST=$theirs
  as_user mount "$theirs" "$work/point"
  for command in "store $theirs a/1 $work/tree" "prune --keep-last 1 $theirs"; do
    # shellcheck disable=SC2086
    expect_status 11 "$VARVE" --lock-wait 0 $command
    # shellcheck disable=SC2086
    expect_status 11 "$VARVE" --lock-wait 6s $command
    message_says 'mounted by .*varve umount'
    rm "$work/waiting"
    # shellcheck disable=SC2086
    "$VARVE" $command 2>"$work/waiting" &
    second=$!
    wait_until "the command says that it waits" says 'mounted by .*at most 10 min'
    as_user umount "$theirs"
    wait $second || fail "$command: $(cat "$work/waiting")"
    as_user mount "$theirs" "$work/point"
  done
  as_user umount "$theirs"
  ok "root waits for the end of a user's mount, or ends with 11"
else
  skip_part "users cannot mount here"
fi
"$VARVE" -q check --read-data "$repo"
