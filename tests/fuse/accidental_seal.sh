#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Users cannot seal an empty or unfinished version by accident, and they can see and remove open
# versions.
limit_s=60
. "$(dirname "$0")/lib.sh"

for user in anna bert carl; do
  mkdir -p "$work/home/$user"
  echo "of $user" >"$work/home/$user/file"
done
"$VARVE" init "$repo" 2>/dev/null
mount_as_job
mkdir "$mnt/home"

versions() { "$VARVE" ls --json "$repo" home | { grep -o "\"state\":\"$1\"" || true; } | wc -l; }
only_one_empty_version() {  # COMMAND…
  if "$@" 2>"$work/stderr"; then fail "it copied as if the version were there: $*"; fi
  [ "$(versions sealed)" -eq 0 ] || fail "$*: $(versions sealed) versions were sealed"
  [ "$(versions open)" -eq 1 ] || fail "$*: $(versions open) versions are open"
  grep -q 'busy' "$work/stderr" || fail "not EBUSY: $(cat "$work/stderr")"
}
only_one_empty_version rsync -a "$work/home/" "$mnt/home/"
rm -rf "$mnt/home"/*
ok "rsync -a one level too high seals nothing"
only_one_empty_version cp -a "$work/home" "$mnt/"
grep -q 'varve seal' "$work/daemon.log" || fail "the log does not say what to do"
rm -rf "$mnt/home"/*
[ "$(versions open)" -eq 0 ] || fail "the open version is still there"
ok "cp -a one level too high seals nothing, and the log says what to do"

expect_status 2 "$VARVE" open "$repo" a/b/c
expect_status 2 "$VARVE" open "$repo" a/latest
[ ! -e "$mnt/a" ] || fail "an empty series is left"
ok "an open that is refused leaves no series, while mounted"

mkdir "$mnt/home/one"
cp "$work/home/anna/file" "$mnt/home/one/"
mkdir "$mnt/home/one/dir"
chmod 700 "$mnt/home/one/dir"
if mkdir "$mnt/home/two" 2>"$work/stderr"; then fail "one was sealed at once"; fi
expect_status 1 "$VARVE" open "$repo" home/two
message_says '60 seconds'
"$VARVE" ls "$repo" home | grep -q 'one (open since .*, 2 entries)' ||
  fail "ls does not show what the open version has now: $("$VARVE" ls "$repo" home)"
"$VARVE" ls -l "$repo" home | grep -q 'open since' || fail "ls -l does not show it"
"$VARVE" stat "$repo" home/one | grep -q 'entries *2' || fail "stat does not show the entries"
"$VARVE" stat --json "$repo" home/one | grep -q '"state":"open"' || fail "stat --json"
"$VARVE" stats --prometheus "$repo" >"$work/metrics"
grep -q 'varve_open_version_opened_timestamp_seconds{.*version="one"}' "$work/metrics" ||
  fail "the metrics lack the open version"
ok "ls, stat and the metrics show an open version beside the daemon"
"$VARVE" rm -n "$repo" home/one >"$work/stdout"
grep -q 'would discard home/one, open since .*, 2 entries' "$work/stdout" || fail "$(cat "$work/stdout")"
[ -e "$mnt/home/one/file" ] || fail "rm -n removed it"
exec 5>>"$mnt/home/one/file"
expect_status 1 "$VARVE" rm "$repo" home/one
exec 5>&-
remove() { "$VARVE" rm "$repo" home/one >/dev/null 2>&1; }
wait_until "rm discards the open version" remove
[ ! -e "$mnt/home/one" ] || fail "it is still in the mount"
ok "rm discards an open version, but not one with a file open for writing"
unmount_repo

mount_repo -o autoseal=1
mkdir "$mnt/home/one"
if mkdir "$mnt/home/two" 2>/dev/null; then fail "an empty version was sealed"; fi
cp "$work/home/anna/file" "$mnt/home/one/"
exec 5>>"$mnt/home/one/file"
sleep_until_idle() { mkdir "$mnt/home/two" 2>/dev/null; }
if mkdir "$mnt/home/two" 2>/dev/null; then fail "a version with an open file was sealed"; fi
exec 5>&-
wait_until "a version that nobody writes is sealed by the next mkdir" sleep_until_idle
sealed "$mnt/home/one"
ok "autoseal=1: the next mkdir seals a version that was not written to for a second"
unmount_repo
mount_repo -o autoseal=0
echo text >"$mnt/home/two/file"
wait_until "the file is closed" mkdir "$mnt/home/three" 2>/dev/null
sealed "$mnt/home/two"
ok "autoseal=0: the next mkdir seals at once"
unmount_repo
mount_repo -o autoseal=off
echo text >"$mnt/home/three/file"
if mkdir "$mnt/home/four" 2>/dev/null; then fail "sealed although it is off"; fi
unmount_repo
expect_status 2 "$VARVE" mount -o autoseal=soon "$repo" "$mnt"
ok "autoseal=off: mkdir never seals"

"$VARVE" ls "$repo" home | grep -q 'three (open since .*, 1 entries)' || fail "ls without a mount"
expect_status 1 "$VARVE" store "$repo" home/four "$work/home"
message_says 'varve seal'
expect_status 2 "$VARVE" store "$repo" b/latest "$work/home"
expect_status 2 "$VARVE" open "$repo" c/d/e
if "$VARVE" ls "$repo" | grep -E '^(b|c)'; then fail "an empty series is left"; fi
"$VARVE" rm "$repo" home/three | grep -q 'discarded home/three' || fail "rm without a mount"
"$VARVE" store "$repo" home/four "$work/home" >/dev/null
ok "without a mount: store refuses beside an open version, rm discards that, no series is left over"
