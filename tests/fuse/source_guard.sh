#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A source that is empty or shrank, an empty stream and a failed command are no backup: exit code 13 or 1, no version,
# with and without a daemon. `varve status`, the metrics and the unit that backs up tell of it.
. "$(dirname "$0")/lib.sh"

src=$work/src
mkdir -p "$src/d"
for i in 1 2 3 4 5 6 7 8 9 10; do head -c 20000 /dev/urandom >"$src/d/$i"; done
"$VARVE" -q init "$repo"
empty() { mv "$src" "$work/aside" && mkdir -p "$src/lost+found"; }
full() { rm -r "$src" && mv "$work/aside" "$src"; }
versions() { "$VARVE" ls "$repo" | xargs; }
is_refused() {  # VERSION PATTERN: the store of the source, which leaves no open version, and its plan
  expect_status 13 "$VARVE" store -n "$repo" "$1" "$src"
  message_says "$2"
  expect_status 13 "$VARVE" store "$repo" "$1" "$src"
  message_says "$2"
  [ "$(versions)" = "$present" ] || fail "there are $(versions)"
}

present=
empty
is_refused home/0 "$src is empty; nothing was stored.*--allow-shrunk"
full
"$VARVE" -q store "$repo" home/1 "$src"
expect_status 0 "$VARVE" status "$repo"
present=home/1
size=$(du -sb "$repo" | cut -f1)
empty
for night in 2 3 4; do is_refused "home/$night" "is empty, and home/1 has 11 names"; done
"$VARVE" -q prune --keep-last 3 "$repo" >/dev/null
[ "$(versions)" = home/1 ] || fail "there are $(versions)"
[ $(($(du -sb "$repo" | cut -f1) - size)) -lt 1000000 ] || fail "refused stores take space"
expect_status 2 "$VARVE" status "$repo"
grep -q '^CRITICAL - the store into home was refused .* empty' "$work/stdout" || fail "$(cat "$work/stdout")"
said=$("$VARVE" status --json "$repo" || true)
grep -q '"refused":{[^}]*"reason":"empty"' <<<"$said" || fail "the JSON has no refusal: $said"
gauge='^varve_store_refused_timestamp_seconds{.*series="home",reason="empty"} [0-9]'
"$VARVE" stats --prometheus "$repo" >"$work/metrics"
grep -q "$gauge" "$work/metrics" || fail "the metrics have no refusal"
ok "three nights without the disk store nothing, delete nothing, and are told"

full
"$VARVE" -q store "$repo" home/5 "$src"
expect_status 0 "$VARVE" status "$repo"
"$VARVE" stats --prometheus "$repo" >"$work/metrics"
! grep -q '^varve_store_refused_timestamp_seconds{' "$work/metrics" || fail "the refusal stays"
present="home/1 home/5"
rm "$src"/d/[1-6]
is_refused home/6 'lost 54 % of the names and .* of the bytes of home/5; nothing was stored'
expect_status 2 "$VARVE" status "$repo"
cp -r "$src" "$work/snapshot"  # Another path and device, with what is left.
expect_status 13 "$VARVE" store "$repo" home/6 "$work/snapshot"
expect_status 0 "$VARVE" store --allow-shrunk "$repo" home/6 "$work/snapshot"
expect_status 0 "$VARVE" status "$repo"
expect_status 0 "$VARVE" store "$repo" home/7 "$src"
ok "a source that lost more than half is refused, unless the user allows it"

# Each night one more folder cannot be read: the measure stays the complete version, and not the remainder of the last night.
without_root_rights() { setpriv --bounding-set=-dac_override,-dac_read_search "$@"; }
for i in a b c d e; do
  mkdir -p "$work/steps/$i"
  for j in $(seq 40); do echo "$i $j" >"$work/steps/$i/$j"; done
done
expect_status 0 "$VARVE" store "$repo" steps/1 "$work/steps"
chmod 0 "$work/steps/a" "$work/steps/b"
expect_status 3 without_root_rights "$VARVE" store "$repo" steps/2 "$work/steps"
expect_status 1 "$VARVE" status --json "$repo"
grep '"series":"steps"' "$work/stdout" | grep -q '"problems":2' || fail "the status has no problems: $(cat "$work/stdout")"
chmod 0 "$work/steps/c"
expect_status 13 without_root_rights "$VARVE" store --dry-run --json "$repo" steps/3 "$work/steps"
message_says 'steps/1'
expect_status 3 without_root_rights "$VARVE" store --dry-run --allow-shrunk "$repo" steps/3 "$work/steps"
for night in 3 4; do
  expect_status 13 without_root_rights "$VARVE" store "$repo" "steps/$night" "$work/steps"
  message_says 'lost 60 % of the names and .* of the bytes of steps/1; nothing was stored.* 3 problems'
done
chmod 700 "$work"/steps/*
expect_status 0 "$VARVE" store "$repo" steps/5 "$work/steps"
"$VARVE" -q rm "$repo" steps/1 steps/2 steps/5 >/dev/null
ok "versions of a source that cannot be read whole do not lower the measure"

mkdir -p "$work"/snaps/2001-0{1,2,3}-01
for i in 1 2 3; do touch "$work"/snaps/2001-0{1,2,3}-01/$i; done
touch -d 2001-01-01 "$work"/snaps/*
expect_status 0 "$VARVE" store "$repo" dated/n1 "$work/steps"
expect_status 0 "$VARVE" import "$repo" "$work/snaps" dated
rm "$work"/steps/[a-c]/*
expect_status 13 "$VARVE" store "$repo" dated/n2 "$work/steps"
message_says 'of dated/n1; nothing was stored'
"$VARVE" ls "$repo" dated | xargs "$VARVE" -q rm "$repo" >/dev/null
ok "an import of older snapshots does not lower the measure"

mkdir "$work/cut"
for i in $(seq 12); do head -c 1000 /dev/urandom >"$work/cut/$i"; done
"$VARVE" -q store "$repo" cut/1 "$work/cut"
truncate -s 0 "$work"/cut/*
expect_status 13 "$VARVE" store "$repo" cut/2 "$work/cut"
message_says 'has 0 files with content, and cut/1 has 12; 100 % of the bytes are lost; nothing was stored.*--allow-shrunk'
expect_status 0 "$VARVE" store --allow-shrunk "$repo" cut/2 "$work/cut"
"$VARVE" -q rm "$repo" cut/1 cut/2 >/dev/null
ok "files that are all empty now are refused, too"

expect_status 2 "$VARVE" config "$repo" guard=maybe
expect_status 0 "$VARVE" config "$repo" guard=off
mkdir "$work/nothing"
expect_status 0 "$VARVE" store "$repo" home/8 "$work/nothing"
"$VARVE" -q config "$repo" guard=on
expect_status 13 "$VARVE" store "$repo" home/9 "$work/nothing"
ok "guard=off stores any source"

mkdir -m 0 "$work/closed"
for how in '' --allow-shrunk --keep-open; do
  # shellcheck disable=SC2086  # Nothing or one word.
  expect_status 1 without_root_rights "$VARVE" store $how "$repo" closed/1 "$work/closed"
  message_says "cannot open $work/closed: Permission denied"
  expect_status 1 "$VARVE" ls "$repo" closed
done
ok "a directory that cannot be opened leaves no version and no series"

# Streams.
present=$(versions)
: | expect_status 13 "$VARVE" store --stdin f "$repo" db/1
: | expect_status 1 "$VARVE" store --from-tar - "$repo" db/1
tar -cf - -T /dev/null | expect_status 13 "$VARVE" store --from-tar - "$repo" db/1
expect_status 2 "$VARVE" store --allow-empty "$repo" db/1 "$src"
expect_status 2 "$VARVE" store --allow-shrunk --stdin f "$repo" db/1
[ "$(versions)" = "$present" ] || fail "there are $(versions)"
: | expect_status 0 "$VARVE" store --allow-empty --stdin f "$repo" db/1
grep -qx db/1 < <("$VARVE" ls "$repo") || fail "an empty stream cannot be stored"
"$VARVE" -q rm "$repo" db/1 >/dev/null
ok "an empty stream is no version, unless the user allows it"

dump() {  # VERSION COMMAND…
  local version=$1
  shift
  "$VARVE" store --stdin-from-command dump.sql "$repo" "$version" -- "$@"
}
commands() {  # SERIES: the cases of a command, here and in a daemon
  expect_status 0 dump "$1/whole" sh -c 'echo to-stderr >&2; printf "%s" "$1 $#"' - "a  b" -q
  message_says '^to-stderr'
  [ "$("$VARVE" dump "$repo" "$1/whole/dump.sql")" = "a  b 2" ] || fail "the words of the command changed"
  present=$(versions)
  expect_status 1 dump "$1/failed" sh -c 'head -c 5000000 /dev/urandom; exit 3'
  message_says 'sh ended with exit code 3; nothing was stored'
  expect_status 1 dump "$1/late" sh -c 'echo half; exec >&-; sleep 0.3; exit 4'
  message_says 'exit code 4'
  expect_status 1 dump "$1/killed" sh -c 'echo half; kill -9 $$'
  message_says 'signal 9'
  expect_status 1 dump "$1/none" "$work/no-program"
  message_says 'no-program'
  expect_status 13 dump "$1/empty" true
  expect_status 2 "$VARVE" store --stdin-from-command f "$repo" "$1/x"
  message_says 'command is missing'
  [ "$(versions)" = "$present" ] || fail "there are $(versions)"
  # A signal to varve ends the command, and its version.
  mkfifo "$work/fifo"
  "$VARVE" store --stdin-from-command f "$repo" "$1/stopped" -- \
    sh -c 'echo $$ >"$1"; echo half; exec sleep 1000' - "$work/fifo" 2>"$work/stopped" &
  local job=$! child
  read -r child <"$work/fifo"
  kill -TERM $job
  local code=0
  wait $job || code=$?
  [ $code -eq 130 ] || fail "a stopped store ended with $code: $(cat "$work/stopped")"
  [ ! -e "/proc/$child" ] || fail "the command runs on"
  rm "$work/fifo"
  wait_until "the version is dropped" dropped
}
dropped() { [ "$(versions)" = "$present" ]; }
commands db
VARVE_REPO=$repo expect_status 0 "$VARVE" store --stdin-from-command f db/environment -- echo text
ok "a command becomes a version only if it ends with 0"

mount_repo
commands mounted
present=$(versions)
"$VARVE" -q store "$repo" mounted-home/1 "$src"
present=$(versions)
empty
is_refused mounted-home/2 'is empty, and mounted-home/1 has'
full
rm "$src"/d/[7-9]
is_refused mounted-home/2 'lost .* of mounted-home/1'
[ "$(ls "$mnt/mounted-home" | xargs)" = "1 latest" ] || fail "the mount has $(ls "$mnt/mounted-home")"
expect_status 2 "$VARVE" status "$repo" mounted-home
expect_status 0 "$VARVE" store --allow-shrunk "$repo" mounted-home/2 "$src"
expect_status 0 "$VARVE" status "$repo" mounted-home
unmount_repo
ok "a daemon refuses the same sources and commands"

"$VARVE" check --read-data "$repo" >/dev/null
ok "the repository is sound"
