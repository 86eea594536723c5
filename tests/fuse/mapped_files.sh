#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No command maps a file of the repository's disk for shared writing: where the file system copies on
# write, a write to such a mapping needs a new block, and a full disk would end the process by SIGBUS.
. "$(dirname "$0")/lib.sh"

command -v strace >/dev/null || skip "no strace"
strace -o /dev/null true 2>/dev/null || skip "strace cannot trace here"

mkdir "$work/tree"
head -c 3000000 /dev/urandom >"$work/tree/file"
traced() {  # NAME COMMAND… (a sanitizer cannot search for leaks in a traced process)
  ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 \
    strace -f -y -e trace=mmap -o "$work/trace.$1" "${@:2}" >>"$work/log"
}

traced init "$VARVE" -q init "$repo"
traced store "$VARVE" -q store "$repo" s/one "$work/tree"
traced ls "$VARVE" ls "$repo"
traced restore "$VARVE" -q restore "$repo" s/one "$work/restored"
traced mount "$VARVE" mount -f "$repo" "$mnt" &
daemon=$!
wait_until "the mount appears" mountpoint -q "$mnt"
cp -r "$work/tree" "$mnt/s/two.partial"
sync -f "$mnt"
traced ls_open "$VARVE" ls "$repo"
traced check_open "$VARVE" -q check "$repo"
mv -T "$mnt/s/two.partial" "$mnt/s/two"
unmount_repo
wait $daemon
traced check "$VARVE" -q check --read-data "$repo"
traced rm "$VARVE" -q rm "$repo" s/one
traced arrange "$VARVE" -q arrange "$repo"
traced repair "$VARVE" -q repair --yes --rebuild-catalog "$repo"
"$VARVE" -q check "$repo"

is_shared='PROT_WRITE[^,]*, MAP_SHARED'
grep -hE "$is_shared" "$work"/trace.* | grep -F "<$repo/" >"$work/found" || true
[ ! -s "$work/found" ] || fail "mapped for shared writing: $(head -3 "$work/found")"
for trace in "$work"/trace.*; do
  grep -qF "<$repo/" "$trace" || fail "the trace ${trace##*.} shows no file of the repository"
  grep -qE "$is_shared.*(/dev/shm/|/run/|/memfd:)" "$trace" ||
    fail "the trace ${trace##*.} shows no table of readers"
done
ok "12 commands map files of the repository for reading only"
