#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first screen of README.md works as it stands, line by line, and shells complete what it names.
. "$(dirname "$0")/lib.sh"
command -v rsync >/dev/null || skip "rsync is missing"

mkdir "$work/bin"
ln -s "$VARVE" "$work/bin/varve"
export PATH=$work/bin:$PATH
# The lines of the first block behind those that build and install (tests/install/readme.sh runs these too). /etc of the machine may hold
# much, and may change meanwhile, so a folder stands for it.
mkdir "$work/source"
cp /etc/passwd /etc/group "$work/source/"
cp -r /etc/default "$work/source/" 2>/dev/null || true
# One program reads README.md: a second one that ends early would end the first by SIGPIPE.
awk '/^```sh$/ { inside = 1; next } inside && /^```$/ { exit } inside && !/^apt-get|^git clone|install-packages/' \
  "$here/../../README.md" |
  sed "s|/mnt/varve|$work/mnt|g; s|/backup|$work/backup|g; s|/restore|$work/restore|g
       s|/tmp/passwd|$work/passwd|g; s| /etc\([ /]\)| $work/source\1|g; s| /etc$| $work/source|" >"$work/lines"
[ "$(grep -c varve "$work/lines")" -ge 10 ] || fail "README.md has another first block"
! grep -n '[ ]/etc\|/home' "$work/lines" || fail "a line would use the machine's own files"
# diff ends with 0, because nothing changed between the versions.
bash -euxo pipefail "$work/lines" >"$work/said" 2>&1 || fail "$(tail -n 5 "$work/said")"
grep -q '^etc/monday' "$work/said" && grep -q '^etc/tuesday' "$work/said"
cmp "$work/source/passwd" "$work/passwd.monday"
diff -r --no-dereference "$work/source" "$work/restore"
! grep -q " $work/mnt " /proc/self/mounts || fail "it is still mounted"
ok "the first lines of README.md back up, find an old version, and restore"

complete_line() {  # WORD…: prints the completions of the last word
  env -u VARVE_REPO bash -c '
    . "$1"
    compopt() { :; }
    shift
    COMP_WORDS=(varve "$@") COMP_CWORD=$#
    _varve
    printf "%s\n" "${COMPREPLY[@]}"' bash "$here/../../completions/varve.bash" "$@"
}
[ "$(complete_line sta | sort | xargs)" = "stat stats status" ] || fail "commands are not completed"
[ "$(complete_line prune --keep-m | sort | xargs)" = "--keep-minutely --keep-monthly" ] ||
  [ "$(complete_line prune --keep-mo | xargs)" = --keep-monthly ] || fail "options are not completed"
[ "$(complete_line rm "$work/backup/repo" e | xargs)" = etc/ ] || fail "series are not completed"
[ "$(complete_line rm "$work/backup/repo" etc/m | xargs)" = etc/monday ] || fail "no version"
varve mount "$work/backup/repo" "$work/mnt"
mkdir "$work/mnt/etc/\$(touch $(basename "$work"))" "$work/mnt/etc/x;y" 2>/dev/null || true
mkdir "$work/mnt/a b" "$work/mnt/\$(touch pwned)"
varve umount "$work/mnt"
cd "$work"
complete_line ls backup/repo '' >"$work/offered"
complete_line ls backup/repo 'etc/' >>"$work/offered"
[ ! -e pwned ] || fail "a name in a repository was run as a command"
ok "bash completes commands, options, series and versions, and never runs a name"

says() {  # STATUS PATTERN COMMAND…: fails, and the message has the pattern
  local status=$1 pattern=$2
  shift 2
  expect_status "$status" "$@"
  message_says "$pattern"
}
says 2 'no command "muont"; did you mean "mount"?' varve muont
says 1 'no series "ect"; did you mean "etc"?' varve ls backup/repo ect
says 1 'no version "etc/mondya"; did you mean "monday"?' varve stat backup/repo etc/mondya
says 2 'VERSION is missing; the arguments are REPO VERSION DIR' varve store backup/repo
says 2 'is the repository, so it comes first' varve mount "$work/mnt" "$work/backup/repo"
[ "$(varve list backup/repo)" = "$(varve ls backup/repo)" ]
varve mount backup/repo mnt
[ "$(varve snapshots mnt)" = "$(varve ls backup/repo)" ] || fail "a mount is no repository"
[ "$(varve ls mnt/etc | wc -l)" -ge 3 ] || fail "a series in a mount is not listed"
varve check --quick mnt
varve unmount mnt
ok "messages name what was meant or is missing; a mount stands for its repository; aliases work"

# Help and manual.
for command in $(varve --help | sed -n 's/^  \([a-z][a-z-]*\).*/\1/p'); do
  varve help "$command" >"$work/help"
  varve "$command" --help | cmp - "$work/help" || fail "varve help $command differs"
  grep -qF "varve-$command(1)" "$work/help" || fail "$command names no page"
done
varve help | cmp - <(varve --help)
expect_status 2 varve help nonsense
ok "varve help prints the help of each command, which names its page"

if command -v man >/dev/null; then
  for page in "$here"/../../man/*.[158]; do
    said=$(man --warnings -E UTF-8 -l -Tutf8 "$page" 2>&1 >"$work/page") || fail "$page: $said"
    [ -z "$said" ] && [ -s "$work/page" ] || fail "$page: $said"
  done
  ok "the pages of the manual have no faults"
else
  skip_part "man is missing, so nothing formatted the pages"
fi
