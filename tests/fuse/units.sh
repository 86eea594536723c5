#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The systemd units are valid and hardened, and the services work without the forbidden operations.
. "$(dirname "$0")/lib.sh"

helpers=$here/../../mount-helpers
units=$work/units
mkdir "$units"
for unit in varve varve-mount varve-prune varve-scrub varve-backup; do
  sed "s|@bindir@/varve|$VARVE|g" "$helpers/$unit@.service.in" >"$units/$unit@$unit.service"
done
cp "$helpers"/*.timer "$units"
setting() { sed -n "s/^$2=//p" "$units/$1@$1.service"; }  # UNIT NAME

if command -v systemd-analyze >/dev/null; then
  for unit in varve varve-mount varve-prune varve-scrub varve-backup; do
    said=$(systemd-analyze verify --man=no "$units/$unit@$unit.service" 2>&1) || fail "$unit: $said"
    [ -z "$said" ] || fail "$unit: $said"
  done
  for line in "varve 5.0" "varve-mount 5.0" "varve-prune 2.5" "varve-scrub 2.5" "varve-backup 2.5"; do
    read -r unit most <<<"$line"
    level=$(systemd-analyze security --offline=yes "$units/$unit@$unit.service" |
      sed -n 's/.*exposure level[^:]*: \([0-9.]*\).*/\1/p')
    awk "BEGIN { exit !($level <= $most) }" || fail "$unit has exposure level $level, not $most"
  done
  ok "the units are valid; systemd-analyze security rates them 5.0 and 2.5 or better"
else
  skip_part "systemd-analyze is missing, so nothing verified the units"
fi

# A separate view of the file systems would hide the mount from the rest of the machine.
! grep -E '^(Protect(System|Home|Kernel|ControlGroups|Proc)|Private(Tmp|Devices|Mounts)|Read(Write|Only)Paths|Inaccessible|BindPaths|TemporaryFileSystem|RootDirectory)' \
  "$units/varve@varve.service" "$units/varve-mount@varve-mount.service" ||
  fail "a unit that mounts gets mounts of its own"
ok "the unit that mounts shares the machine's mounts"

within() {  # UNIT COMMAND…: runs with the unit's capabilities and limit of tasks
  local unit=$1 capabilities= capability
  shift
  for capability in $(setting "$unit" CapabilityBoundingSet); do
    capability=${capability#CAP_}
    capabilities+=,+${capability,,}
  done
  setpriv --no-new-privs --bounding-set="-all$capabilities" "$@"
}
"$VARVE" init "$repo" >/dev/null
within varve "$VARVE" mount -o allow_other "$repo" "$mnt"
mkdir -p "$mnt/s/one"
cp -a "$here" "$mnt/s/one/"
"$VARVE" seal "$mnt/s/one" >/dev/null
mkdir "$mnt/s/two" && echo two >"$mnt/s/two/file" && "$VARVE" seal "$mnt/s/two" >/dev/null
within varve-prune "$VARVE" prune --keep-last 1 "$repo" >/dev/null
[ ! -e "$mnt/s/one" ]
within varve-scrub "$VARVE" scrub "$repo" >/dev/null
within varve "$VARVE" umount "$mnt"
mkdir "$work/tree" && echo three >"$work/tree/file"
"$VARVE" -q store "$repo" s/three "$work/tree"
within varve-prune "$VARVE" prune --keep-last 1 "$repo" >/dev/null
within varve-scrub "$VARVE" scrub "$repo" >/dev/null
ok "mount, prune, scrub and umount work with the units' capabilities and no new privileges"

# The units that prune and check go by the name of an instance.
export XDG_CONFIG_HOME=$work/config
mkdir -p -m 755 "$work/config/varve"
"$VARVE" -q store --no-arrange "$repo" s/four "$work/tree"
printf '%s\n' "VARVE_REPO=$repo" 'VARVE_KEEP=--keep-last 1' VARVE_SCRUB=--restart >"$work/config/varve/home.conf"
for unit in varve-prune varve-scrub; do
  start=$(setting "$unit" ExecStart)
  within "$unit" sh -c "${start//%i/home}" >/dev/null
  ! grep -q '%f\|/etc/default' "$units/$unit@$unit.service" || fail "$unit goes by a path"
done
[ "$("$VARVE" ls "$repo")" = s/four ] || fail "pruned to $("$VARVE" ls "$repo")"
ok "the units that prune and check take the repository and options from the file of their instance"

# The commands of the unit that backs up, with the defaults that it sets.
printf '%s\n' "VARVE_REPO=$repo" VARVE_SERIES=s "VARVE_SOURCE=$work/tree" VARVE_STORE=--no-arrange \
  'VARVE_KEEP=--keep-last 1' >"$work/config/varve/varve-backup.conf"
unit_command() {  # UNIT INSTANCE: its command as systemd reads it, for a shell
  sed -e ':more' -e '/\\$/{' -e N -e 's/\\\n *//' -e 'b more' -e '}' "$units/$1@$1.service" |
    sed -n 's/^ExecStart=//p' | sed "s/\\\$\\\$/\$/g; s/%i/$2/g"
}
backs_up() {  # [STATUS-OPTION…]: runs the unit's command; its standard output goes to $work/stdout
  within varve-backup env VARVE_STATUS="${*:---max-age 1h}" sh -c "$(unit_command varve-backup varve-backup)"
}
[ "$(grep -c '^ExecStart=' "$units/varve-backup@varve-backup.service")" -eq 1 ] || fail "the unit has other commands"
expect_status 0 backs_up
"$VARVE" ls "$repo" | grep -q '^s/20[0-9-]*T[0-9]*Z$' || fail "the version has no time as its name"
[ "$("$VARVE" ls "$repo" | wc -l)" -eq 1 ] || fail "nothing was pruned"
grep -q '^OK - ' "$work/stdout" || fail "the status is: $(cat "$work/stdout")"
ok "the unit that backs up stores a version, prunes, and looks at the status"

# A file that vanished, a warning, and a source that is not mounted.
conf=$work/config/varve/varve-backup.conf
printf 'file\nvanished\n' >"$work/list"
sed -i "s|^VARVE_STORE=.*|VARVE_STORE=--no-arrange --files-from $work/list|" "$conf"
next_second
expect_status 1 backs_up
message_says 'vanished'
grep -q '^WARNING - the newest version of s, .*, is incomplete' "$work/stdout" ||
  fail "no status after an incomplete store: $(cat "$work/stdout")"
[ "$("$VARVE" ls "$repo" | wc -l)" -eq 2 ] || fail "the newest complete version was pruned"
next_second
expect_status 1 backs_up --min-free 1000T
sed -i "s|^VARVE_STORE=.*|VARVE_STORE=--no-arrange|" "$conf"
"$VARVE" -q store --no-arrange "$repo" s/second "$work/tree"
mv "$work/tree" "$work/aside" && mkdir "$work/tree"
next_second
expect_status 13 backs_up
grep -q '^CRITICAL - the store into s was refused' "$work/stdout" || fail "the status is: $(cat "$work/stdout")"
[ "$("$VARVE" ls "$repo" | wc -l)" -eq 3 ] || fail "a refused store is pruned"
rmdir "$work/tree" && mv "$work/aside" "$work/tree"
next_second
expect_status 0 backs_up
ok "all steps of the unit run; it ends with the worst result, and prunes nothing for an empty source"

# The unit that mounts an instance.
printf '%s\n' "VARVE_REPO=$repo" "VARVE_MOUNT=$work/shown" VARVE_OPTIONS=series=s >"$work/config/varve/varve-mount.conf"
start=$(setting varve-mount ExecStart) stop=$(setting varve-mount ExecStop)
within varve-mount sh -c "${start//%i/varve-mount}" 2>"$work/daemon.log" &
wait_until "the mount appears" mountpoint -q "$work/shown"
[ "$(ls "$work/shown" | wc -l)" -eq 2 ] || fail "it shows $(ls "$work/shown")"
within varve-mount sh -c "${stop//%i/varve-mount}"
wait
! mountpoint -q "$work/shown"
ok "the unit of an instance mounts its repository, and unmounts it"

# The same units with a key: as a credential, and in the file of the instance.
(umask 077; head -c 32 /dev/urandom >"$work/key" && mkdir "$work/credentials")
repo=$work/encrypted
"$VARVE" -q init --encrypt --key-file "$work/key" "$repo"
printf '%s\n' "VARVE_REPO=$repo" VARVE_SERIES=s "VARVE_SOURCE=$work/tree" 'VARVE_KEEP=--keep-last 2' \
  "VARVE_MOUNT=$work/shown" >"$work/config/varve/secret.conf"
for unit in varve varve-mount varve-prune varve-scrub varve-backup; do
  [ "$(setting "$unit" LoadCredential | xargs)" = "varve.passphrase varve.key-file" ] || fail "$unit loads no key"
done
unit_runs() {  # UNIT: the commands of the unit for the instance
  within "$1" env VARVE_STATUS="--max-age 1h" sh -c "$(unit_command "$1" secret)" >/dev/null
}
unit_runs varve-backup 2>"$work/stderr" && fail "a backup needs no key"
grep -q 'is encrypted' "$work/stderr" || fail "a missing key is: $(cat "$work/stderr")"
cp "$work/key" "$work/credentials/varve.key-file"
CREDENTIALS_DIRECTORY=$work/credentials unit_runs varve-backup
next_second  # The version's name is the time in seconds.
echo "VARVE_KEY_FILE=$work/key" >>"$work/config/varve/secret.conf"
for unit in varve-backup varve-prune varve-scrub; do unit_runs "$unit"; done
[ "$("$VARVE" --key-file "$work/key" ls "$repo" | wc -l)" -eq 2 ] || fail "there are not two versions"
start=$(setting varve-mount ExecStart) stop=$(setting varve-mount ExecStop)
within varve-mount sh -c "${start//%i/secret}" 2>"$work/daemon.log" &
wait_until "the mount appears" mountpoint -q "$work/shown"
cmp "$work/tree/file" "$work/shown/s/latest/file"
within varve-mount sh -c "${stop//%i/secret}"
wait
ok "with a credential or a key in the file of the instance, the units use an encrypted repository"
