#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Limits on the kernel's requests per file, for the programs that back up and look at many files.
# Also: what the kernel caches is never out of date.
. "$(dirname "$0")/lib.sh"

files=400
python3 - "$work/tree" $files <<'PYTHON'
import os, sys
for n in range(int(sys.argv[2])):
    folder = f"{sys.argv[1]}/{n // 100:03}"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/{n}", "w") as file:
        file.write(f"{n}\n" * (n % 50 + 1))
    os.utime(f"{folder}/{n}", (1600000000, 1600000000))
PYTHON

answered() {  # prints the number of requests so far
  "$VARVE" stats "$repo" --live --json | python3 -c '
import json, sys
total = 0
for line in sys.stdin:
    sample = json.loads(line)
    if sample.get("name") == "varve_fuse_request_seconds":
        total += sample["count"]
print(total)'
}

# Runs a command that visits each file. Fails if it needs more requests per file, in hundredths.
at_most() {  # HUNDREDTHS WHAT COMMAND...
  local limit=$1 what=$2 before after used
  shift 2
  before=$(answered)
  "$@" >/dev/null
  after=$(answered)
  used=$(((after - before) * 100 / files))
  echo "$what: $used hundredths of a request per file (at most $limit)"
  [ "$used" -le "$limit" ] || fail "$what: $used hundredths of a request per file"
}

"$VARVE" init "$repo"
mount_repo
mkdir "$mnt/s" "$mnt/s/one.partial"
at_most 760 "cp -a into the mount" cp -a "$work/tree/." "$mnt/s/one.partial"
at_most 20 "find in an open version" find "$mnt/s/one.partial" -type f -newermt 2000-01-01
"$VARVE" seal "$mnt/s/one.partial"
at_most 20 "du" du -s "$mnt/s/one"
at_most 230 "ls -lR" ls -lR "$mnt/s/one"
at_most 725 "cp -a out of the mount" cp -a "$mnt/s/one" "$work/copy"
diff -r "$work/tree" "$work/copy"
ok "each file takes as few requests as the kernel needs"

if command -v rsync >/dev/null; then
  mkdir "$mnt/s/two.partial"
  read -r major minor < <(uname -r | tr . ' ' | cut -d' ' -f1,2)
  limit=600
  [ "$major" -gt 6 ] || [ "$major" -eq 6 -a "$minor" -ge 15 ] || limit=1000
  at_most $limit "rsync --link-dest" \
    rsync -a --link-dest=../latest "$work/tree/" "$mnt/s/two.partial/"
  mv -T "$mnt/s/two.partial" "$mnt/s/two"
  [ "$(stat_of "$repo" chunk_bytes)" -lt 60000 ] || fail "rsync copied the files"
  ok "a second backup links each file with few requests"
fi

# The target of `latest` is cached. Each way to change it must show at once, also with another length.
latest_is() { [ "$(readlink "$mnt/s/latest")" = "$1" ] || fail "latest is not $1 after $2"; }
"$VARVE" seal "$mnt/s/two.partial" 2>/dev/null || true
for name in a a-longer-name b; do
  mkdir "$mnt/s/$name.partial"
  echo "$name" >"$mnt/s/$name.partial/file"
  mv -T "$mnt/s/$name.partial" "$mnt/s/$name"
  latest_is "$name" "a rename that seals"
  [ "$(cat "$mnt/s/latest/file")" = "$name" ] || fail "latest leads elsewhere"
  [ "$(stat -c %s "$mnt/s/latest")" = ${#name} ] || fail "latest has another size"
done
mkdir "$mnt/s/by-command"
echo by-command >"$mnt/s/by-command/file"
"$VARVE" seal "$mnt/s/by-command"
latest_is by-command "varve seal"
mv "$mnt/s/by-command" "$mnt/s/c"
latest_is c "a rename"
"$VARVE" clone "$mnt/s/c" "$mnt/s/cloned"
latest_is c "a clone"
"$VARVE" seal "$mnt/s/cloned"
latest_is cloned "the seal of a clone"
"$VARVE" rm "$mnt/s/cloned"
latest_is c "varve rm"
[ "$(cat "$mnt/s/latest/file")" = by-command ]
ok "the cached target of latest is never out of date"

# Readers and a program that seals, at the same time.
(
  while [ ! -e "$work/stop" ]; do
    readlink "$mnt/s/latest" >/dev/null
    cat "$mnt/s/latest/file" >/dev/null 2>&1 || true
  done
) &
reader=$!
for n in $(seq 20); do
  mkdir "$mnt/s/v$n.partial"
  echo "$n" >"$mnt/s/v$n.partial/file"
  mv -T "$mnt/s/v$n.partial" "$mnt/s/v$n"
  latest_is "v$n" "a seal beside readers"
done
touch "$work/stop"
wait $reader
ok "readers of latest and 20 seals do not wait for each other"

# Attributes: names of one file, and a file that is written, show one state.
mkdir "$mnt/s/w.partial"
cd "$mnt/s/w.partial"
echo first >a
ln a b
mkdir d
ln a d/c
chmod 600 b
[ "$(stat -c %a a)$(stat -c %a d/c)" = 600600 ] || fail "chmod through another name"
echo more >>d/c
[ "$(stat -c %s a)" = 11 ] && [ "$(stat -c %s b)" = 11 ] || fail "a write through another name"
truncate -s 3 b
[ "$(stat -c %s a)" = 3 ] && [ "$(cat d/c)" = fir ] || fail "a truncation through another name"
touch -d 2001-02-03 a
[ "$(stat -c %Y b)" = "$(stat -c %Y a)" ] || fail "the time through another name"
mv b e
[ "$(stat -c %h a)" = 3 ] && [ ! -e b ] || fail "a rename"
rm a
[ "$(stat -c %h e)" = 2 ] && [ ! -e a ] || fail "a removal"
ln -s e link
[ "$(readlink link)" = e ]
ln -sfn somewhere/else link
[ "$(readlink link)" = somewhere/else ] || fail "a link that was replaced"
cd /
"$VARVE" seal "$mnt/s/w.partial"
[ "$(stat -c %s "$mnt/s/w/e")" = 3 ] && [ "$(readlink "$mnt/s/w/link")" = somewhere/else ]
unmount_repo
ok "attributes and links show each change at once, also through another name"

# A read-only mount has no socket to ask for the number. The log has a line for each request.
at_most_read_only() {  # HUNDREDTHS OPTIONS DIRECTORY UNCOUNTED: copies the directory out of such a mount
  local before used
  mount_as_job -d -o "$2"
  before=$(grep -c "opcode:" "$work/daemon.log")
  rm -rf "$work/copy"
  cp -a "$3" "$work/copy"
  used=$((($(grep "opcode:" "$work/daemon.log" | tail -n +$((before + 1)) |
    grep -vcE "$4") * 100) / files))
  unmount_repo
  wait "$daemon"
  diff -r "$work/tree" "$work/copy"
  echo "cp -a out of a mount with -o $2: $used hundredths of a request per file (at most $1)"
  [ "$used" -le "$1" ] || fail "$used hundredths of a request per file with -o $2"
}
# cp of coreutils 9.1 lists the attributes of a file twice, that of 9.7 four times, and the kernel caches no list.
at_most_read_only 120 ro "$mnt/s/one" 'FORGET|XATTR'
at_most_read_only 120 ro,series=s,version=one "$mnt" FORGET
ok "a copy out of a read-only mount opens no file and asks for no attributes"
