#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The blocks of docs/RECIPES.md about object stores, run as they are written, and the line for fstab.
limit_s=240
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
start_store
store_command set lock_kind 1 >/dev/null

# Writes the blocks to $work/block-N: the places of the recipes become those of this test.
python3 - "$here/../../docs/RECIPES.md" "$work" "$place" <<'END'
import re, sys
page, work, place = sys.argv[1:]
section = open(page).read().split("## A repository in an object store\n")[1].split("\n## ")[0]
for number, text in enumerate(re.findall(r"^```\w*\n(.*?)^```", section, re.S | re.M)):
    text = text.replace("s3://backup/laptop", place)
    for folder in ("/etc/varve", "/var/lib/laptop", "/mnt/laptop", "/home", "/srv/keeper", "/restored"):
        # Not behind another path: "home/first" is a version.
        text = re.sub(rf"(^|[\s=]){folder}", rf"\g<1>{work}{folder}", text)
    open(f"{work}/block-{number}", "w").write(text)
END
[ -e "$work/block-7" ] && [ ! -e "$work/block-9" ] || fail "the page has other blocks"
mkdir -p -m 755 "$work"/etc/varve "$work"/home "$work"/mnt "$work"/var/lib "$work"/srv "$work"/bin "$work"/config/varve
ln -s "$VARVE" "$work/bin/varve"
export PATH=$work/bin:$PATH XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/config
echo content >"$work/home/file"
run() {  # N: runs a block
  bash -euo pipefail "$work/block-$1" >"$work/stdout" 2>"$work/stderr" ||
    fail "block $1: $(cat "$work/stdout" "$work/stderr")"
}
(umask 077 && printf '{"Version": 1, "AccessKeyId": "%s", "SecretAccessKey": "%s"}' "$AWS_ACCESS_KEY_ID" \
  "$AWS_SECRET_ACCESS_KEY" >"$work/etc/varve/laptop.json")

run 0
grep -q '^OK\|^WARNING' "$work/stdout" && grep -q 'object lock' "$work/stdout" || fail "$(cat "$work/stdout")"
ok "the first backup"

cp "$work/block-1" "$work/config/varve/laptop.conf"
keep=()
for variable in AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY; do keep[${#keep[@]}]=$variable=${!variable}; unset $variable; done
echo more >>"$work/home/file"
run 2
grep -q RandomizedDelaySec "$here/../../mount-helpers/varve-backup@.timer"
export "${keep[@]}" VARVE_KEY_FILE=$work/etc/varve/laptop.key
[ "$("$VARVE" ls "$place" | wc -l)" = 2 ]
ok "the daily commands take everything from the file of the instance"

run 3
grep -qx file "$work/stdout" || fail "$(cat "$work/stdout")"
ok "a second machine reads"

# The first machine's folder would answer for the place, so this is a third machine.
export XDG_STATE_HOME=$work/other-state XDG_CACHE_HOME=$work/other-cache
if [ -e /usr/sbin/mount.fuse.varve ] || [ -e /sbin/mount.fuse.varve ]; then
  cp "$work/block-4" "$work/fstab" && mkdir -p "$work/mnt/laptop"
  mount -T "$work/fstab" "$work/mnt/laptop" && grep -q content "$work/mnt/laptop/home/latest/file"
  umount "$work/mnt/laptop"
else
  # As mount(8) calls the helper.
  read -r what where _ options _ <"$work/block-4"
  mkdir -p "$where"
  ln -sf "$VARVE" "$work/bin/mount.fuse.varve"
  env -u VARVE_KEY_FILE "$work/bin/mount.fuse.varve" "$what" "$where" -o "$options"
  grep -q content "$where/home/latest/file"
  umount "$where"
fi
ok "a line of fstab mounts the place with its key file and the credentials"

export XDG_STATE_HOME=$work/fresh-state XDG_CACHE_HOME=$work/fresh-cache
run 5
cmp "$work/home/file" "$work/restored/file"
ok "a fresh machine restores"

run 6
ok "a keeper reclaims and checks"
run 7
grep -q 'no damage\|all that are needed' "$work/stdout" "$work/stderr" || fail "$(cat "$work/stdout")"
ok "a new machine takes over for a lost one"
