#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Messages tell what is wrong with a command line, and name what was not found.
. "$(dirname "$0")/lib.sh"

cd "$work"
"$VARVE" -q init repo
mkdir -p src/dir dest && echo one >src/a && echo two >src/dir/b
"$VARVE" -q store repo s/one src >/dev/null
echo three >>src/a
"$VARVE" -q store repo s/two src >/dev/null

says() {  # PATTERN COMMAND…: fails, and the message has the pattern
  local pattern=$1
  shift
  expect_status 1 "$VARVE" "$@"
  message_says "$pattern"
}

# The repository in a wrong place.
for line in "ls s repo" "du s repo" "stat s/one repo" "diff s/one s/two repo" "find *.c repo" "history s/a repo" \
  "dump s/one/a repo" "restore dest repo" "restore dest repo s/one" "restore s/one repo dest" \
  "store s/x repo src" "store src s/x repo" "seal s/one repo" "open s/x repo" "reopen s/one repo" \
  "clone s/one s/x repo" "mv s/one new repo" "rm s/one repo" "prune --keep-last 1 s repo" \
  "lock --for 1d s/one repo" "config s repo" "config placement=pool repo" "arrange s repo" "import src repo s" \
  "mount mnt repo"; do
  # shellcheck disable=SC2086  # The words of a command line.
  says 'repo is the repository, so it comes first' $line
done
[ -z "$(ls dest)" ] && [ "$("$VARVE" ls repo | tr '\n' ' ')" = "s/one s/two " ]
says 'src is a directory, and s/x is none; the arguments are REPO SERIES/VERSION DIR' store repo src s/x
says 'The directory to restore to comes last' restore repo dest s/one
ok "arguments in a wrong order are recognised"

# What is missing.
says 'no repository is named' store
says 'DIR is missing; the arguments are REPO VERSION DIR' store s/x src
says '"s" names no version; write SERIES/VERSION, such as s/' store repo s src
says 'the directory is missing; the arguments are REPO SERIES/VERSION DIR' restore repo
says 'the arguments are REPO SERIES/VERSION DIR' restore repo s/one
says 'no version is named; give REPO SERIES/VERSION' seal repo
says 'no repository is named, and s/one is not in a mount' seal s/one
says 'the name of the new version is missing' clone repo s/one
says 'the arguments are REPO SERIES/A SERIES/B' diff repo s/one
says 'no name is given' find repo
ok "the missing argument is named"

# What was not found.
for line in "ls repo s/one/dir/none" "dump repo s/one/dir/none" "restore repo s/one/dir/none dest"; do
  # shellcheck disable=SC2086
  says 'there is no file "s/one/dir/none"' $line
done
says 'there is no file "s/two/none"' ls repo s/latest/none
says 'there is no version "s/none"' stat repo s/none
says 'there is no series "none"' ls repo none
ok "messages name what was not found"

# The repository itself is no place to restore to, under whatever name.
before=$(find repo -type f | sort | md5sum)
ln -s repo/series link && mkdir bound && mount --bind repo bound
for place in repo repo/new repo/series link/new bound bound/x/y "$work/repo/./new"; do
  says 'is in the repository' restore --delete repo s/one "$place"
done
umount bound
[ "$(find repo -type f | sort | md5sum)" = "$before" ] || fail "a restore wrote into the repository"
mkdir "$work/repo-2" && "$VARVE" -q restore repo s/one "$work/repo-2"
same_tree --ignore holes src/dir "$work/repo-2/dir"
ok "a restore into the repository is refused"

# A mount for reading alone.
"$VARVE" mount -o ro repo mnt
for line in "seal mnt/s/one" "rm mnt/s/one" "rm mnt s/one" "lock --for 1d mnt/s/one" "mv mnt/s/one other" \
  "config mnt placement=pool" "prune --keep-last 1 mnt" "clone mnt/s/one mnt/s/x" "open mnt/s/x" \
  "reopen mnt/s/two" "store mnt s/x src" "arrange mnt" "import mnt src x"; do
  # shellcheck disable=SC2086
  says 'mnt is mounted read-only, so nothing can be changed through it; name the repository .*/repo' $line
done
"$VARVE" ls mnt/s/one >listed && "$VARVE" umount mnt
[ "$("$VARVE" ls repo | tr '\n' ' ')" = "s/one s/two " ]
ok "through a mount for reading, commands that change something are refused, with the reason"

# Times are dates.
"$VARVE" -q lock --until 2099-12-31 repo s/one
says 'one is locked until 2099-12-31 00:00:00' rm repo s/one
ok "the end of a lock is a date"
