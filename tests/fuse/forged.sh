#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A repository with forged records and right checksums: names that lead elsewhere, endless trees,
# records that are small only while compressed. Every command ends, in bounded memory, and names the
# damage; the other versions keep working. Also tests files that are not Varve's.
. "$(dirname "$0")/lib.sh"
: "${VARVE_FORGE:?is the path of the forging program}"

memory_mib=256
mkdir -p "$work/one/d" "$work/two/d"
for n in 1 2 3; do echo "file $n" >"$work/one/d/$n"; done
cp -a "$work/one/d" "$work/two/"
echo more >"$work/two/d/more"
"$VARVE" -q init "$work/sound"
"$VARVE" -q store "$work/sound" s/v1 "$work/one"
"$VARVE" -q store "$work/sound" s/v2 "$work/two"

# Makes a new copy of the sound repository, and forges a record in it.
forge() {
  rm -rf "$repo"
  cp -a "$work/sound" "$repo"
  "$VARVE_FORGE" "$repo" "$@"
}

# Prints the exit code of a command, which must end in time and in little memory. Its output goes to
# $work/out.
code_of() {
  local code=0
  "$here/measured.py" "$memory_mib" 20 "$@" >"$work/out" 2>&1 || code=$?
  [ $code -lt 99 ] || { cat "$work/out"; fail "$*: exit code $code"; }
  echo $code
}

first_is_readable() {
  rm -rf "$work/copy"
  "$VARVE" -q restore "$repo" s/v1 "$work/copy"
  diff -r "$work/one" "$work/copy"
}

long=$(printf '%0300d' 0)
for name in '../../escaped' '..' '.' '' 'a/b' 'latest' 'half.partial' "$long" 'v1'; do
  forge name 2 "$name"
  [ "$(code_of "$VARVE" check --quick "$repo")" = 1 ] || fail "check does not see the name '$name'"
  grep -q "version 2 of series 1" "$work/out" || fail "check does not say which record"
  [ "$(code_of "$VARVE" ls "$repo" s/latest)" = 1 ] || fail "latest leads to '$name'"
  first_is_readable
  "$VARVE" ls "$repo" >"$work/out"
  grep -q "^s/invalid-name-2" "$work/out" || fail "no other name for '$name'"
done
ok "ls, check and restore replace the forged name of a version, and latest is an error"

forge name 2 '../../escaped'
mount_repo -o ro
[ "$(ls "$mnt/s" | tr '\n' ' ')" = "invalid-name-2 latest v1 " ] || fail "names in the mount"
[ "$(python3 - "$mnt/s/latest" <<'PYTHON'
import errno, os, sys
try:
    print(os.readlink(sys.argv[1]))
except OSError as error:
    print(errno.errorcode[error.errno])
PYTHON
)" = EIO ] || fail "latest of a forged name does not answer EIO"
diff -r "$work/one" "$mnt/s/v1"
diff -r "$work/two" "$mnt/s/invalid-name-2"
unmount_repo
ok "in a mount, latest of a forged name answers EIO, and all versions can be read"

"$VARVE" -q repair --yes "$repo" >"$work/out" 2>&1 || true
"$VARVE" -q check "$repo"
"$VARVE" -q restore "$repo" s/latest "$work/repaired"
diff -r "$work/two" "$work/repaired"
ok "repair gives a version a name that is allowed"

# No calendar has a year for such times.
for seconds in 9223372036854775807 -9223372036854775808 99999999999999999; do
  forge time "$seconds"
  for command in "ls -l $repo s" "ls --json $repo s" "stat $repo s/v2" "stats $repo" "history $repo s/d/more" \
    "prune -n --keep-daily=7 $repo" "status $repo" "rm -n $repo s/v2" "check --quick $repo"; do
    # shellcheck disable=SC2086
    [ "$(code_of "$VARVE" $command)" -le 3 ] || fail "$command with the time $seconds: $(cat "$work/out")"
  done
  first_is_readable
  mount_repo -o ro
  ls -l "$mnt/s" >"$work/out"
  getfattr --only-values -n user.varve.sealed_at "$mnt/s/v2" >"$work/out" 2>&1 ||
    fail "the daemon does not tell the time $seconds: $(cat "$work/out")"
  diff -r "$work/two" "$mnt/s/v2"
  unmount_repo
done
ok "times without a year are shown in some way, and end no process"

forge series '../s'
[ "$(code_of "$VARVE" check --quick "$repo")" = 1 ] || fail "check does not see the series' name"
grep -q "series 1" "$work/out" || fail "check does not say which series"
"$VARVE" -q restore "$repo" invalid-name-1/v2 "$work/of-series"
diff -r "$work/two" "$work/of-series"
ok "a forged name of a series is replaced and reported"

forge dag 40
[ "$(code_of "$VARVE" check --quick "$repo")" = 1 ] || fail "check does not see the shared nodes"
first_is_readable
[ "$(code_of "$VARVE" restore "$repo" s/v2 "$work/endless")" != 0 ] || fail "restore sees no damage"
for command in "diff $repo s/v1 s/v2" "du $repo" "history $repo s/v2/d" "rm -n $repo s/v2" \
    "repair -n --catalog-only $repo" "ls $repo s/v2/a/b/a"; do
  # shellcheck disable=SC2086
  code_of "$VARVE" $command >/dev/null
done
mount_repo
timeout 20 find "$mnt/s/v2" >"$work/out" 2>&1 && fail "find sees no damage"
diff -r "$work/one" "$mnt/s/v1"
code_of "$VARVE" clone "$mnt/s/v2" "$mnt/s/next" >/dev/null
code_of "$VARVE" seal "$mnt/s/next" >/dev/null
unmount_repo
code_of "$VARVE" rm "$repo" s/v2 >/dev/null
first_is_readable
ok "a tree of 2^40 shared directories makes no command run for ever"

forge dag 40
rm -rf "$repo/catalog"
code_of "$VARVE" repair --yes "$repo" >/dev/null
first_is_readable
forge deep 30
code_of "$VARVE" check --quick "$repo" >/dev/null
ok "a tree of shared directories with right counts is checked once, not for each place"

forge recipe
[ "$(code_of "$VARVE" check --quick "$repo")" = 1 ] || fail "check does not see the recipe"
[ "$(code_of "$VARVE" restore "$repo" s/v2 "$work/large")" != 0 ] || fail "restore takes the recipe"
mount_repo -o ro
cat "$mnt/s/v2/large" >/dev/null 2>&1 && fail "the recipe can be read"
peak=$(awk '/VmHWM/ { print int($2 / 1024) }' "/proc/$(getfattr --absolute-names --only-values -n user.varve.pid "$mnt")/status")
[ -n "${VARVE_TEST_SANITIZER:-}" ] || [ "$peak" -lt $memory_mib ] || fail "the daemon took $peak MiB"
unmount_repo
forge page
[ "$(code_of "$VARVE" check --quick "$repo")" = 1 ] || fail "check does not see the page"
first_is_readable
ok "a recipe and a page that are large only in memory are refused before they are"

forge huge
code_of "$VARVE" check --quick "$repo" >/dev/null
first_is_readable
ok "a check of a file that is one chunk again and again takes no memory for each time"

forge manifest
rm -rf "$repo/catalog"
code_of "$VARVE" repair --yes "$repo" >/dev/null
first_is_readable
ok "a manifest with an endless set of chunks does not cost the repair its memory"

rm -rf "$repo"
cp -a "$work/sound" "$repo"
segment=$(find "$repo/series" -name '*.seg' | head -n 1)
volumes=$repo/series/00000001
for file in "$segment" "$repo/catalog/data.mdb"; do printf 'trailing' >>"$file"; done
for folder in "$repo" "$repo/series" "$volumes" "$volumes/manifests" "$repo/catalog"; do
  echo mine >"$folder/NOTES.txt"
done
mkdir "$repo/my folder"
"$VARVE" check "$repo" >"$work/out" || fail "trailing bytes or a note are damage"
[ "$(grep -c '^note: .*NOTES.txt: unknown' "$work/out")" = 5 ] || fail "unknown files are missing"
grep -q '^note: .*my folder: unknown' "$work/out" || fail "the unknown folder is missing"
grep -q "^note: $segment: 8 bytes follow" "$work/out" || fail "the segment's bytes are missing"
grep -q '^note: .*data.mdb: .* bytes follow' "$work/out" || fail "the catalog's bytes are missing"
"$VARVE" check --json "$repo" | grep -c '"message_type":"note"' | grep -qx 8 || fail "notes in JSON"
ok "check notes unknown files and trailing bytes, and exits with 0"

# One file with three names, and a wrong byte in its stored data.
mkdir -p "$work/linked/d"
head -c 300000 /dev/urandom >"$work/linked/a"
ln "$work/linked/a" "$work/linked/d/b"
ln "$work/linked/a" "$work/linked/z"
rm -rf "$repo"
"$VARVE" -q init "$repo"
"$VARVE" -q store "$repo" s/v1 "$work/linked"
segment=$(find "$repo/series" -name '*.seg' | head -n 1)
python3 - "$segment" <<'PYTHON'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(100_000)
    byte = file.read(1)[0]
    file.seek(100_000)
    file.write(bytes([byte ^ 1]))
PYTHON
"$VARVE" check "$repo" >"$work/out" && fail "check does not see the damage"
"$VARVE" restore "$repo" s/v1 "$work/unlinked" >"$work/told" 2>&1 && fail "restore sees no damage"
for name in a d/b z; do
  grep -q "affects s/v1/$name\$" "$work/out" || fail "check does not name $name"
  grep -q "varve: $name: damaged" "$work/told" || fail "restore does not name $name"
done
ok "a damaged file with several names is named by all of them"
