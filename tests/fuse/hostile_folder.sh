#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Root uses a repository whose folder another user owns. That user has planted links, pipes and
# other users' folders in it. Nothing outside of it may change, with or without the opt-in.
limit_s=300
. "$(dirname "$0")/lib.sh"

other=4001
as_other() { setpriv --reuid=$other --regid=$other --clear-groups "$@"; }
exec_as_other() { exec setpriv --reuid=$other --regid=$other --clear-groups "$@"; }
chmod 755 "$work"
as_other test -x "$VARVE" || { cp "$VARVE" "$work/varve" && chmod 755 "$work/varve"; VARVE=$work/varve; }

# The victim folder has every name that a misled command would remove, write to or create.
victim=$work/victim
mkdir -m 700 "$victim"
mkdir "$victim/00000001" "$victim/00000001-00000001" "$victim/00000001-00000001/overlay"
for name in data.mdb lock.mdb 00000007.seg 00000007.vol 00000007.man 00000007.man.tmp labels \
  00000007.par.tmp index-00000007.snap reserve scrub lock precious 00000001/precious \
  00000001-00000001/precious 00000001-00000001/overlay/data.mdb; do
  echo "root's own $name" >"$victim/$name"
done
state_of_victim() {
  find "$victim" -printf '%P %y %m %U %s %T@\n' | sort
  find "$victim" -type f -print0 | sort -z | xargs -0 sha256sum
}
before=$(state_of_victim)
victim_is_unchanged() { [ "$(state_of_victim)" = "$before" ] || fail "$1: something outside was changed: $(diff <(echo "$before") <(state_of_victim) || true)"; }

mkdir "$work/tree" "$work/u"
chown $other:$other "$work/u"
head -c 300000 /dev/urandom >"$work/tree/file"
echo text >"$work/tree/text"
repo=$work/u/repo
pristine=$work/u/pristine
as_other "$VARVE" -q init "$pristine"
for version in one two; do as_other "$VARVE" -q store "$pristine" s/$version "$work/tree"; done
[ "$(stat -c %a "$pristine")" = 700 ] || fail "init made a folder of mode $(stat -c %a "$pristine")"
fresh() { rm -rf "$repo"; cp -a "$pristine" "$repo"; }

# Runs each of root's commands. Any answer is allowed, but the command must end.
use_as_root() {
  local words
  for words in "ls REPO" "stats REPO" "check --quick REPO" "check REPO" "scrub REPO" \
    "prune --keep-last 1 REPO" "rm REPO s/one" "repair --yes REPO" \
    "repair --yes --rebuild-catalog REPO" "store REPO s/new $work/tree" "mount REPO $mnt"; do
    timeout -k 1 30 "$VARVE" -q ${words//REPO/$repo} </dev/null >>"$work/log" 2>&1 ||
      [ $? -lt 124 ] || fail "$words: does not end, or crashes"
    if [[ $words = mount* ]] && mountpoint -q "$mnt"; then
      mkdir "$mnt/s/mounted" 2>>"$work/log" || true
      cp "$work/tree/text" "$mnt/s/mounted/" 2>>"$work/log" || true
      unmount_repo >>"$work/log" 2>&1 || umount -l "$mnt"
    fi
  done
}

fresh
for words in "ls REPO" "stats REPO" "check REPO" "prune --keep-last 1 REPO" "rm REPO s/one" \
  "repair --yes REPO" "scrub REPO" "mount REPO $mnt" "store REPO s/new $work/tree" \
  "restore REPO s/one $work/restored"; do
  expect_status 1 "$VARVE" ${words//REPO/$repo}
  message_says "belongs to user $other.*VARVE_TRUST=$repo"
done
same_tree "$pristine" "$repo"
ok "every command refuses a folder that another user owns, and says how to trust it"

export VARVE_TRUST=/elsewhere:$repo/
rm "$repo"/catalog/lock.mdb
"$VARVE" ls "$repo" | grep -q s/
"$VARVE" -q restore "$repo" s/one "$work/restored"
same_tree "$work/tree" "$work/restored"
[ ! -e "$repo/catalog/lock.mdb" ] || fail "root made lock.mdb in another user's repository"
exec_as_other flock -o "$repo/lock" sleep 20 &
holder=$!
wait_until "the writer's lock is held" sh -c "! flock -n '$repo/lock' true"
expect_status 11 "$VARVE" ls "$repo"
message_says "sudo -u '#$other'"
kill $holder
wait $holder || true
wait_until "the writer's lock is free" flock -n "$repo/lock" true
unset VARVE_TRUST
"$VARVE" mount -o trust_owner,ro "$repo" "$mnt"
[ -e "$mnt/s/one/file" ]
unmount_repo
ok "with the opt-in root reads it without making a file, but not beside a writer"

plant() {  # NAME: sets one of the traps
  local at=$repo/${1#*:}
  case $1 in
    folder:*) rm -rf "$at" && as_other ln -s "$victim" "$at" ;;
    file:*) rm -rf "$at" && as_other ln -s "$victim/precious" "$at" ;;
    new:*) rm -rf "$at" && as_other ln -s "$victim/made" "$at" ;;
    hard:*) rm -rf "$at" && ln "$victim/precious" "$at" ;;
    pipe:*) rm -rf "$at" && as_other mkfifo "$at" ;;
  esac
}
export VARVE_TRUST=$repo
series=series/00000001
for trap in folder:staging folder:series folder:$series folder:$series/active \
  folder:$series/volumes folder:$series/manifests folder:$series/parity folder:catalog \
  folder:catalog.new folder:staging/00000001-00000001 file:catalog/data.mdb new:catalog/lock.mdb \
  file:catalog/lock.mdb file:lock new:lock file:reserve new:reserve new:varve.repo.tmp \
  new:scrub.tmp file:varve.repo new:control.sock new:$series/labels.tmp \
  new:$series/manifests/00000003.man.tmp hard:lock hard:reserve hard:catalog/lock.mdb \
  hard:catalog/data.mdb hard:$series/active/00000001.seg hard:$series/active/00000063.seg pipe:lock \
  pipe:catalog/lock.mdb pipe:catalog/data.mdb pipe:varve.repo pipe:reserve; do
  fresh
  plant "$trap"
  use_as_root
  victim_is_unchanged "$trap"
  # Otherwise the link in it would change the link count in the next comparison.
  rm -rf "$repo"
done
ok "planted links, hard links and pipes lead root's commands nowhere"

fresh
mount --bind "$victim" "$repo/staging"
expect_status 1 "$VARVE" ls "$repo"
message_says "on another file system"
use_as_root
umount "$repo/staging"
victim_is_unchanged "a mount on staging"
ok "nothing is done in what is mounted inside a repository"

cat >"$work/swap.py" <<'PYTHON'
import ctypes, os, sys
libc = ctypes.CDLL(None)
os.chdir(sys.argv[1])
pairs = [(name.encode(), (name + ".x").encode()) for name in sys.argv[2:]]
while True:
    for a, b in pairs:
        libc.renameat2(-100, a, -100, b, 2)
PYTHON
for name in "staging" "catalog" "series $series/active"; do
  fresh
  for folder in $name; do as_other ln -s "$victim" "$repo/$folder.x"; done
  exec_as_other /usr/bin/python3 "$work/swap.py" "$repo" $name &
  swapper=$!
  for _ in 1 2; do use_as_root; done
  kill $swapper
  wait $swapper 2>/dev/null || true
  victim_is_unchanged "a race on $name"
  rm -rf "$repo"
done
ok "folders that are exchanged for links meanwhile lead nowhere"

# The overlay of an open version, which `ls` measures.
repo=$work/overlay
"$VARVE" -q init "$repo"
mount_repo
mkdir -p "$mnt/s/open" && echo text >"$mnt/s/open/file"
unmount_repo
overlay=$(find "$repo/staging" -name overlay)
for name in lock.mdb data.mdb; do
  for link in "ln" "ln -s"; do
    cp "$overlay/data.mdb" "$victim/$name"
    before=$(state_of_victim)
    mv "$overlay/$name" "$work/kept"
    $link "$victim/$name" "$overlay/$name"
    "$VARVE" ls "$repo" >>"$work/log" 2>&1 || true
    victim_is_unchanged "$link $name of an overlay"
    rm -f "$overlay/$name"
    mv "$work/kept" "$overlay/$name"
  done
done
ok "ls reads an overlay through the repository's own folder only"

unset VARVE_TRUST
mkdir -m 777 "$work/open"
expect_status 1 "$VARVE" init "$work/open"
message_says "writable by others"
chmod 755 "$work/open"
"$VARVE" -q init "$work/open"
chmod 777 "$work/open/catalog"
expect_status 1 "$VARVE" ls "$work/open"
message_says "chmod go-w"
(cd "$work" && expect_status 1 "$VARVE" ls open)
message_says "set VARVE_TRUST=$work/open "
VARVE_TRUST=$work/open "$VARVE" -q ls "$work/open"
chmod 755 "$work/open/catalog"
"$VARVE" -q ls "$work/open"
ok "folders that others may write to are refused by init and by every opening"

"$VARVE" -q init "$work/new/parents/repo"
[ "$(stat -c %a "$work/new/parents/repo")" = 700 ]
"$VARVE" mount "$work/new/parents/repo" "$work/new/mnt/point"
mountpoint -q "$work/new/mnt/point"
"$VARVE" umount "$work/new/mnt/point"
expect_status 10 "$VARVE" mount "$work/nothing" "$work/new/other"
[ ! -e "$work/new/other" ]
ok "init makes the folders above the repository, and mount the mount point"
