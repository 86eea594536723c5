#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# After a check found damage, no new data refers to it: the next store is whole, and the commands that
# pass lost content on name the files.
limit_s=300
. "$(dirname "$0")/lib.sh"

damage() { python3 "$here/flip_data.py" "$@"; }
segment() { find "$repo" -name '*.seg' -size +100k | sort | head -1; }
lines() { grep "\"message_type\":\"$1\"" "$work/stdout" || true; }
fresh() {  # PLACEMENT OPTION…
  rm -rf "$repo" "$work"/restored*
  "$VARVE" init --placement "$@" --compression none "$repo" 2>/dev/null
  "$VARVE" -q store "$repo" s/mon "$work/tree"
}
is_whole() {  # VERSION
  rm -rf "$work/restored"
  "$VARVE" -q restore "$repo" "$1" "$work/restored" 2>/dev/null || return 1
  diff -r "$work/tree" "$work/restored" >/dev/null
}
quarantined() { ! grep -q '^lost' "$repo/checked"; }

mkdir -p "$work/tree/below"
head -c 1000000 /dev/urandom >"$work/tree/below/file"
echo small >"$work/tree/other"
pass_time 3  # The store reads a file again that was changed within 2 seconds before the last one.

for placement in lineage lineage+pool pool; do
  fresh $placement
  damage "$(segment)"
  expect_status 1 "$VARVE" check --read-data "$repo"
  grep -q 'damaged and in quarantine' "$work/stdout" || fail "check says $(cat "$work/stdout")"
  expect_status 2 "$VARVE" status "$repo"
  grep -q 'lost content, below/file in mon' "$work/stdout" || fail "status says $(cat "$work/stdout")"
  expect_status 2 "$VARVE" status --json "$repo"
  lines series | grep -q '"lost":{"files":1,"names":\[{"name":"below/file"}\]' || fail "$(cat "$work/stdout")"

  expect_status 0 "$VARVE" clone "$repo" s/mon s/tue
  message_says 's/mon has a file with lost content: below/file; store the source again'
  expect_status 0 "$VARVE" --quiet seal --json "$repo" s/tue
  lines lost_files | grep -q '"names":\[{"name":"below/file"}\],"version":"s/tue"' || fail "$(cat "$work/stdout")"
  message_says 's/tue has a file with lost content'

  expect_status 0 "$VARVE" store "$repo" s/wed "$work/tree"
  ! grep -q lost "$work/stderr" || fail "store says $message"
  is_whole s/wed || fail "$placement: the next store refers to lost chunks"
  if is_whole s/mon; then fail "nothing was damaged"; fi
  expect_status 2 "$VARVE" status "$repo"  # Of the last check.
  grep -q '^WARNING - 2 versions of s have lost content, below/file in tue; store the source again' "$work/stdout" ||
    fail "status says $(cat "$work/stdout")"
  expect_status 0 "$VARVE" repair --yes "$repo"
  for version in mon tue wed; do is_whole s/$version || fail "$version is not healed"; done
  "$VARVE" -q check --read-data "$repo" || fail "the healed repository has damage"
  expect_status 0 "$VARVE" status "$repo"
  ok "$placement: the store after a check is whole, and a repair heals the other versions"
done

fresh lineage
damage "$(segment)"
expect_status 1 "$VARVE" scrub "$repo"
expect_status 3 "$VARVE" repair --yes "$repo"
grep -q 'this is left: .*lost chunks: [0-9]* (until' "$work/stdout" || fail "repair says $(cat "$work/stdout")"
message_says 'chunks are lost, and new data does not refer to them; store the source again'
expect_status 3 "$VARVE" repair --dry-run --json "$repo"
lines lost_chunks | grep -q '"chunks":[1-9]' || fail "repair says $(cat "$work/stdout")"
"$VARVE" -q store "$repo" s/tue "$work/tree"
is_whole s/tue
ok "what a scrub found is used, and a repair without another copy says how to heal"

# ---- Beside a writer ----

fresh lineage+pool
mount_as_job
"$VARVE" -q clone "$repo" s/mon s/tue.partial
echo more >"$mnt/s/tue.partial/more"
sync "$mnt/s/tue.partial/more"
damage "$(segment)"
expect_status 1 "$VARVE" check --read-data "$repo"
grep -q 'damaged and in quarantine' "$work/stdout" || fail "check says $(cat "$work/stdout")"
quarantined || fail "the daemon left chunks: $(cat "$repo/checked")"
cp "$work/tree/below/file" "$mnt/s/tue.partial/again"
mv "$mnt/s/tue.partial" "$mnt/s/tue2"
cmp "$work/tree/below/file" "$mnt/s/tue2/again" || fail "an open version refers to lost chunks"
grep -q 's/tue2 was sealed with lost content in 1 files: below/file' "$work/daemon.log" ||
  fail "the daemon says $(cat "$work/daemon.log")"
expect_status 0 "$VARVE" clone "$mnt/s/tue2" "$mnt/s/wed"
message_says 's/tue2 has a file with lost content: below/file'
expect_status 0 "$VARVE" seal "$mnt/s/wed"
message_says 's/wed has a file with lost content: below/file'
expect_status 0 "$VARVE" store "$repo" s/thu "$work/tree"
kill -TERM "$daemon"
wait "$daemon" || true
is_whole s/thu || fail "a store in the daemon refers to lost chunks"
ok "the daemon quarantines what a check beside it found, at once"

fresh lineage
damage "$(segment)"
# Holds the repository's lock without being a daemon.
exec 9<"$repo/lock"
flock -x 9
expect_status 1 "$VARVE" check --read-data "$repo"
grep -q 'the quarantine of damaged chunks is not up to date yet' "$work/stderr" || fail "check says $message"
flock -u 9
exec 9<&-
if quarantined; then fail "the record does not name the chunks"; fi
expect_status 2 "$VARVE" status "$repo"
grep -q 'lost content, below/file in mon' "$work/stdout" || fail "status says $(cat "$work/stdout")"
"$VARVE" -q store "$repo" s/tue "$work/tree"
quarantined || fail "the writer left chunks"
is_whole s/tue || fail "the next writer refers to lost chunks"
ok "without the lock, the record names the chunks, and the next writer takes them"

fresh lineage
damage "$(segment)"
mkdir -p "$work/readable"
mount --bind "$repo" "$work/readable"
mount -o remount,bind,ro "$work/readable"
expect_status 1 "$VARVE" check --read-data "$work/readable"
grep -q 'not in quarantine yet' "$work/stdout" || fail "check says $(cat "$work/stdout")"
message_says 'run the check where it can write'
umount "$work/readable"
ok "a check that cannot write says that nothing is recorded"

# ---- Data that is sound again ----

fresh lineage
cp "$(segment)" "$work/sound"
damage "$(segment)"
expect_status 1 "$VARVE" check --read-data "$repo"
cp "$work/sound" "$(segment)"
expect_status 0 "$VARVE" check --read-data "$repo"
expect_status 0 "$VARVE" status "$repo"
stored=$(stat_of "$repo" container_bytes)
"$VARVE" -q store --checksum "$repo" s/tue "$work/tree"
[ "$(stat_of "$repo" container_bytes)" -lt $((stored + 500000)) ] || fail "sound data is stored again"
ok "a check that finds the chunks sound ends the quarantine"

# ---- Encrypted ----

echo secret >"$work/passphrase"
chmod 600 "$work/passphrase"
export VARVE_PASSPHRASE_FILE=$work/passphrase
for placement in lineage pool; do
  rm -rf "$repo"
  "$VARVE" init --encrypt --placement $placement --compression none "$repo" >/dev/null 2>&1
  "$VARVE" -q store "$repo" s/mon "$work/tree"
  damage "$(segment)"
  expect_status 1 "$VARVE" check --read-data "$repo"
  expect_status 0 "$VARVE" store "$repo" s/tue "$work/tree"
  is_whole s/tue || fail "$placement: the next store refers to lost chunks"
  expect_status 0 "$VARVE" repair --yes "$repo"
  is_whole s/mon
done
"$VARVE" -q clone "$repo" s/tue s/wed.partial
mount_as_job
damage $(find "$repo" -name '*.seg' -size +100k)
expect_status 1 "$VARVE" check --read-data "$repo"
grep -q 'damaged and in quarantine' "$work/stdout" || fail "check says $(cat "$work/stdout")"
cp "$work/tree/below/file" "$mnt/s/wed.partial/again"
expect_status 0 env -u VARVE_PASSPHRASE_FILE "$VARVE" seal "$mnt/s/wed.partial"
message_says 's/wed has .* with lost content: .*below/file'
cmp "$work/tree/below/file" "$mnt/s/wed/again" || fail "an open version refers to lost chunks"
unmount_repo
ok "the same in an encrypted repository"
