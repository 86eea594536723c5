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

says() {  # STATUS PATTERN COMMAND…: fails, and the message has the pattern
  local status=$1 pattern=$2
  shift 2
  expect_status "$status" "$VARVE" "$@"
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
  says 2 'repo is the repository, so it comes first' $line
done
[ -z "$(ls dest)" ] && [ "$("$VARVE" ls repo | tr '\n' ' ')" = "s/one s/two " ]
says 2 'src is a directory, and s/x is none; the arguments are REPO SERIES/VERSION DIR' store repo src s/x
says 2 'The directory to restore to comes last' restore repo dest s/one
ok "arguments in a wrong order are recognised"

# What is missing.
says 2 'no repository is named' store
says 2 'DIR is missing; the arguments are REPO VERSION DIR' store s/x src
says 2 '"s" names no version; write SERIES/VERSION, such as s/' store repo s src
says 2 'the directory is missing; the arguments are REPO SERIES/VERSION DIR' restore repo
says 2 'the arguments are REPO SERIES/VERSION DIR' restore repo s/one
says 2 'no version is named; give REPO SERIES/VERSION' seal repo
says 2 'no repository is named, and s/one is not in a mount' seal s/one
says 2 'the name of the new version is missing' clone repo s/one
says 2 'the arguments are REPO SERIES/A SERIES/B' diff repo s/one
says 2 'no name is given' find repo
ok "the missing argument is named"

# What was not found.
for line in "ls repo s/one/dir/none" "dump repo s/one/dir/none" "restore repo s/one/dir/none dest"; do
  # shellcheck disable=SC2086
  says 1 'there is no file "s/one/dir/none"' $line
done
says 1 'there is no file "s/two/none"' ls repo s/latest/none
says 1 'there is no version "s/none"' stat repo s/none
says 1 'there is no series "none"' ls repo none
ok "messages name what was not found"

# Open versions.
"$VARVE" -q store --keep-open repo s/three.partial src >/dev/null
for how in alone mounted; do
  [ $how = alone ] || "$VARVE" mount repo mnt
  for line in "restore repo s/three.partial dest" "restore --to-tar x.tar repo s/three.partial" "dump repo s/three.partial/a" \
    "diff repo s/one s/three.partial" "diff repo s/three.partial s/one" "lock --for 1d repo s/three.partial" \
    "du repo s/three.partial" "wait repo s/three.partial" "ls repo s/three.partial" "clone repo s/three.partial s/four.partial"; do
    # shellcheck disable=SC2086
    says 1 's/three.partial is open: seal it first with `varve seal`, or copy its files from a mount' $line
  done
  "$VARVE" history repo s/a >listed
  "$VARVE" history repo s/three.partial/a | cmp - listed
  "$VARVE" history repo s/one/a | cmp - listed
  says 1 'no sealed version of series "s" has "none"' history repo s/one/none
  says 1 'there is no version "s/thre.partial"; did you mean "three.partial"' restore repo s/thre.partial dest
done
for line in "restore mnt/s/three.partial dest" "dump mnt/s/three.partial/a" "ls mnt/s/three.partial" \
  "diff mnt/s/one mnt/s/three.partial"; do
  # shellcheck disable=SC2086
  says 1 's/three.partial is open: seal it first' $line
done
"$VARVE" umount mnt
"$VARVE" -q rm repo s/three.partial
ok "commands that need a sealed version say that one is open, and what to do"

# The repository itself is no place to restore to, under whatever name.
before=$(find repo -type f | sort | md5sum)
ln -s repo/series link && mkdir bound && mount --bind repo bound
for place in repo repo/new repo/series link/new bound bound/x/y "$work/repo/./new"; do
  says 1 'is in the repository' restore --delete repo s/one "$place"
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
  says 1 'mnt is mounted read-only, so nothing can be changed through it; name the repository .*/repo' $line
done
"$VARVE" ls mnt/s/one >listed && "$VARVE" umount mnt
[ "$("$VARVE" ls repo | tr '\n' ' ')" = "s/one s/two " ]
ok "through a mount for reading, commands that change something are refused, with the reason"

# Times are dates.
"$VARVE" -q lock --until 2099-12-31 repo s/one
says 1 'one is locked until 2099-12-31 00:00:00' rm repo s/one
"$VARVE" -q store --time 2099-01-01 repo c/one src
"$VARVE" prune -n --keep-last 1 repo c >said
grep -q "^keep .*$(date +%F).* last$" said || fail "$(cat said)"
"$VARVE" -q rm repo c/one
says 2 'there is no command "nosuch"' nosuch --help
says 2 'not expected: --nosuch' store --nosuch --help
ok "the end of a lock is a date; a time that is claimed to be after the seal does not count"

"$VARVE" -q init many
for i in 1 2 3 4; do "$VARVE" -q store many "s$i/one" src >/dev/null; done  # More than stdio buffers.
status=0
"$VARVE" stats --prometheus many >/dev/full 2>said || status=$?
[ "$status" -eq 1 ]
grep -q 'cannot write the results: No space left' said || fail "$(cat said)"
says 2 'has a \[ without a \]; write a backslash before it' find repo '['
ok "a full disk below stdout is named; the advice for a pattern is right"

# A wrong command line has an exit code of its own, and changes nothing.
for line in "" "nonsense" "ls --nonsense repo" "init --chunk-size 5K new" "init --chunker none new" \
  "init --parity 26 new" "prune repo" "prune --keep-last x repo" "prune --keep-within 3 repo" "lock repo s/one" \
  "lock --for 1d --until 2099-01-01 repo s/one" "lock --until 2001-01-01 repo s/one" "check --quick --read-data repo" \
  "check --rate fast repo" "check --resume repo" "scrub --for 3 repo" "arrange --policy none repo" \
  "arrange --dead 101 repo" "seal --wait=x repo s/one" "store --time noon repo s/x src" "store --exclude [ repo s/x src" \
  "store --stdin x --from-tar y repo s/x" "store --stdin x repo s/x src" "store --index-memory x repo s/x src" \
  "restore --engine none repo s/one new" "restore --to-tar - --delete repo s/one" "restore --force repo s/one new" \
  "find repo [" "config repo placement=none" "config repo color=red" "mv repo s/one a/b/c" \
  "stats --live repo s/one" "repair --found=maybe repo" "mount -o nonsense repo mnt" "umount" "version more"; do
  # shellcheck disable=SC2086
  expect_status 2 "$VARVE" $line
  [ -n "$message" ] || fail "no message: $line"
done
long=$(printf 'x%.0s' {1..256})
for line in "store repo s/latest src" "store repo s/.. src" "store repo s/$long src" "store repo $long/a src" \
  "store -n repo s/. src" "open repo s/latest" "open repo s/." "clone repo s/one s/.." "clone repo s/one s/latest" \
  "import repo src .." "import repo src $long" "mv repo s/one latest" "mv repo s/one x.partial" "mv repo s $long" \
  "seal repo s/x latest" "seal repo s/x .." "restore --json --to-tar - repo s/one" "mount --json -f repo mnt"; do
  # shellcheck disable=SC2086
  expect_status 2 "$VARVE" $line
  [ -n "$message" ] || fail "no message: $line"
done
[ ! -e new ] && [ "$("$VARVE" ls repo s | tr '\n' ' ')" = "s/one s/two " ]
for line in "status --nonsense repo" "status --max-age soon repo" "status --min-free x repo" "status s repo" "status"; do
  # shellcheck disable=SC2086
  expect_status 3 "$VARVE" $line
done
grep -q '^UNKNOWN - no repository is named' stdout || fail "status: $(cat stdout)"
for line in "ls repo none" "stat repo s/none" "restore repo s/one/none new" "store repo s/one src"; do
  # shellcheck disable=SC2086
  expect_status 1 "$VARVE" $line
done
expect_status 10 "$VARVE" ls src
ok "a wrong command line ends with 2, of status with 3"
