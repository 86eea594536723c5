#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Back In Time (backintime-common) in a series that is mounted as its profile's folder:
# docs/RECIPES.md.
limit_s=90
. "$(dirname "$0")/../lib.sh"
command -v backintime >/dev/null || skip "backintime is not installed"
# Debian's Python has its modules.
export PATH=/usr/bin:/bin
backintime --version >/dev/null 2>&1 || skip "backintime does not start"

export HOME=$work/home XDG_CONFIG_HOME=$work/home/.config XDG_DATA_HOME=$work/home/.local/share
unset DBUS_SESSION_BUS_ADDRESS DISPLAY
folder=$work/backups/backintime/test/root/1
mkdir -p "$HOME" "$work/src/dir" "$folder"
head -c 200000 /dev/urandom >"$work/src/dir/random"
cat >"$work/config" <<END
config.version=6
profiles=1
profiles.version=1
profile1.name=Main
profile1.snapshots.mode=local
profile1.snapshots.path=$work/backups
profile1.snapshots.path.host=test
profile1.snapshots.path.user=root
profile1.snapshots.path.profile=1
profile1.snapshots.include.1.type=0
profile1.snapshots.include.1.value=$work/src
profile1.snapshots.include.size=1
profile1.snapshots.no_on_battery=false
profile1.snapshots.notify.enabled=false
profile1.snapshots.smart_remove=false
profile1.snapshots.remove_old_snapshots.enabled=false
profile1.snapshots.min_free_space.enabled=false
profile1.snapshots.min_free_inodes.enabled=false
profile1.schedule.mode=0
END

"$VARVE" init "$repo" 2>/dev/null
mount_repo
mkdir "$mnt/bit"
unmount_repo
mnt=$folder
mount_repo -o series=bit,beside,rm_deletes,autoseal=0

# Back In Time flushes its log by an alarm five seconds later. Python gives up the handler when it ends, so the alarm may
# still kill a slow process whose work is done (status 142). The checks below tell whether it was done.
in_time() {
  local status=0
  backintime --config "$work/config" "$@" >"$work/log" 2>&1 || status=$?
  [ $status -eq 0 ] || [ $status -eq 142 ]
}
backup() {
  seq "$((++runs))" >"$work/src/changing"
  next_second
  in_time backup || fail "$(cat "$work/log")"
  [ "$(snapshots | wc -l)" -eq "$runs" ] || fail "$(ls -a "$folder"; cat "$work/log")"
  diff -r "$work/src" "$folder/last_snapshot/backup$work/src"
}
snapshots() { find "$folder" -mindepth 1 -maxdepth 1 -type d -name '2*' -printf '%f\n' | sort; }
runs=0
backup
backup
backup
oldest=$(snapshots | head -n 1)
sealed "$folder/$oldest"
[ "$(cat "$folder/$oldest/backup$work/src/changing")" = 1 ] || fail "the oldest snapshot"
ok "each snapshot is a version; last_snapshot is beside them"

in_time remove-and-do-not-ask-again "$oldest" || fail "$(cat "$work/log")"
[ "$(snapshots | wc -l)" -eq 2 ] || fail "$(snapshots; cat "$work/log")"
[ ! -e "$folder/$oldest" ]
unmount_repo
"$VARVE" -q check "$repo"
ok "a snapshot that is removed is deleted as a whole"
