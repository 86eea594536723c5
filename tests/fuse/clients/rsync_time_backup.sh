#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rsync-time-backup with a series as its destination: docs/RECIPES.md. The script is not in Debian.
# RSYNC_TMBACKUP=PATH tests the script itself; without it, this test makes the same calls.
limit_s=60
. "$(dirname "$0")/../lib.sh"
command -v rsync >/dev/null || skip "rsync is not installed"

export HOME=$work/home
mkdir -p "$HOME/.rsync_tmbackup" "$work/src/dir"
head -c 200000 /dev/urandom >"$work/src/dir/random"

# One run: resume an interrupted backup, delete an old one, copy, point `latest` at the result.
same_calls() {  # SOURCE DESTINATION
  local now previous
  [ -n "$(find "$2/backup.marker")" ]
  now=$2/$(date +%Y-%m-%d-%H%M%S)
  previous=$(find "$2" -type d -name '????-??-??-??????' -prune | sort | tail -n 1)
  if [ -f "$2/backup.inprogress" ] && [ -n "$previous" ]; then
    mv -- "$previous" "$now"
    previous=$(find "$2" -type d -name '????-??-??-??????' -prune | sort | tail -n 2 | head -n 1)
    [ "$previous" != "$now" ] || previous=
  fi
  [ -d "$now" ] || mkdir -p -- "$now"
  touch -- "$2/backup.inprogress"
  rsync --compress --numeric-ids --links --hard-links --one-file-system --archive \
    --itemize-changes --verbose --log-file "$HOME/log" \
    ${previous:+--link-dest="$previous"} -- "$1/" "$now/" >/dev/null
  (cd "$2" && rm -f -- latest && ln -s -- "$(basename -- "$now")" latest)
  rm -f -- "$2/backup.inprogress"
}
backup() {
  seq "$((++runs))" >"$work/src/changing"
  # The names have seconds.
  next_second
  if [ -n "${RSYNC_TMBACKUP:-}" ]; then
    bash "$RSYNC_TMBACKUP" "$work/src" "$mnt/s" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
  else
    same_calls "$work/src" "$mnt/s"
  fi
  diff -r -x left "$work/src" "$mnt/s/latest"
}
runs=0
versions() { find "$mnt/s" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort; }

"$VARVE" init "$repo" 2>/dev/null
mount_repo -o beside,rm_deletes,autoseal=0
mkdir "$mnt/s"
touch "$mnt/s/backup.marker"
backup
backup
backup
[ "$(versions | wc -l)" -eq 3 ] || fail "$(versions)"
sealed "$mnt/s/$(versions | head -n 1)"
[ "$(cat "$mnt/s/$(versions | head -n 1)/changing")" = 1 ]
[ "$(readlink "$mnt/s/latest")" = "$(versions | tail -n 1)" ]
ok "each run is a version, with the marker beside it and the program's own latest"

touch "$mnt/s/backup.inprogress"
echo partial >"$mnt/s/$(versions | tail -n 1)/left"
backup
[ "$(versions | wc -l)" -eq 3 ] || fail "the interrupted backup was not continued: $(versions)"
[ ! -e "$mnt/s/backup.inprogress" ]
rm -f "$mnt/s/latest/left"
ok "an interrupted backup is renamed and continued"

rm -rf -- "$mnt/s/$(versions | head -n 1)"
[ "$(versions | wc -l)" -eq 2 ] || fail "$(versions)"
[ "$(cd "$mnt/s" && ls | grep -c backup.marker)" -eq 1 ]
unmount_repo
"$VARVE" -q check "$repo"
ok "an expired backup is deleted by rm -rf"
