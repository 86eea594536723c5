#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Damage that a restore, a mount, a copy or the arranger found, without any check: the next store does
# not refer to it. A repair takes lost content from every series that has the same content.
limit_s=300
. "$(dirname "$0")/lib.sh"

damage() { python3 "$here/flip_data.py" "$@"; }
damage_header() { printf 'damaged!' | dd of="$(segment)" bs=1 seek=64 conv=notrunc status=none; }
segment() { find "$repo" -name '*.seg' -size +100k | sort | head -1; }
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
is_recorded() { grep -q '^lost' "$repo/checked"; }

mkdir -p "$work/tree/below"
head -c 1000000 /dev/urandom >"$work/tree/below/file"
echo small >"$work/tree/other"
pass_time 3  # The store reads a file again that was changed within 2 seconds before the last one.

# ---- A restore, a dump, a copy ----

for placement in lineage lineage+pool pool; do
  fresh $placement
  damage "$(segment)"
  if is_whole s/mon; then fail "nothing was damaged"; fi
  is_recorded || fail "$placement: the restore recorded nothing"
  expect_status 0 "$VARVE" store "$repo" s/tue "$work/tree"
  if is_recorded; then fail "$placement: the store left chunks: $(cat "$repo/checked")"; fi
  is_whole s/tue || fail "$placement: the next store refers to chunks that a restore found damaged"
  expect_status 0 "$VARVE" repair --yes "$repo"
  is_whole s/mon || fail "$placement: s/mon is not healed"
  ok "$placement: the store after a restore is whole"
done

fresh lineage
damage "$(segment)"
if "$VARVE" dump "$repo" s/mon/below/file >/dev/null 2>&1; then fail "nothing was damaged"; fi
is_recorded || fail "the dump recorded nothing"
fresh lineage
damage "$(segment)"
if "$VARVE" -q copy "$repo" "$work/other-repo" 2>/dev/null; then fail "nothing was damaged"; fi
is_recorded || fail "the copy recorded nothing"
"$VARVE" -q store "$repo" s/tue "$work/tree"
is_whole s/tue
ok "a dump and a copy record what they find"

# ---- The header of a container ----

fresh lineage
damage_header
if is_whole s/mon; then fail "nothing was damaged"; fi
"$VARVE" -q store "$repo" s/tue "$work/tree"
is_whole s/tue || fail "the next store refers to a container whose header is damaged"
ok "the same with a damaged header"

# ---- Bytes that are sound again ----

fresh lineage
cp "$(segment)" "$work/sound"
damage "$(segment)"
if is_whole s/mon; then fail "nothing was damaged"; fi
cp "$work/sound" "$(segment)"
stored=$(stat_of "$repo" container_bytes)
"$VARVE" -q store --checksum "$repo" s/tue "$work/tree"
if is_recorded; then fail "the record still names sound chunks"; fi
[ "$(stat_of "$repo" container_bytes)" -lt $((stored + 500000)) ] || fail "sound data is stored again"
expect_status 0 "$VARVE" status "$repo"
ok "a second read decides: chunks that are sound again are used"

# ---- Mounts ----

fresh lineage+pool
damage "$(segment)"
mount_as_job -o ro
if cat "$mnt/s/mon/below/file" >/dev/null 2>&1; then fail "nothing was damaged"; fi
is_recorded || fail "the mount recorded nothing"
"$VARVE" -q store "$repo" s/tue "$work/tree"
unmount_repo
is_whole s/tue || fail "the next store refers to chunks that a mount found damaged"
fresh lineage+pool
mount_as_job
damage "$(segment)"
if cat "$mnt/s/mon/below/file" >/dev/null 2>&1; then fail "nothing was damaged"; fi
mkdir "$mnt/s/tue.partial"
cp "$work/tree/below/file" "$mnt/s/tue.partial/again"
mv "$mnt/s/tue.partial" "$mnt/s/tue"
expect_status 0 "$VARVE" store "$repo" s/wed "$work/tree"
unmount_repo
"$VARVE" -q restore "$repo" s/tue "$work/restored-tue"
cmp "$work/tree/below/file" "$work/restored-tue/again" || fail "an open version refers to lost chunks"
is_whole s/wed
ok "a mount for reading records damage at once, and a daemon that writes uses it"

# ---- The arranger ----

# Two trees with the same files under other names, some of them changed: the pool stores much twice.
python3 - "$work/trees" <<'PYTHON'
import os, random, sys
rng = random.Random(5)
pieces = [rng.randbytes(rng.randrange(20000, 200000)) for _ in range(50)]
for tree in range(2):
    own = random.Random(tree)
    for i, piece in enumerate(pieces):
        piece = bytearray(piece)
        if own.random() < 0.3:
            at = own.randrange(len(piece))
            piece[at:at] = own.randbytes(own.randrange(10, 5000))
        name = "%s/%d/f%d-%d" % (sys.argv[1], tree, own.randrange(10), i)
        os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "wb") as file:
            file.write(piece)
PYTHON
backdate "$work/trees/0" && backdate "$work/trees/1"

pooled() {  # Stores both trees, and damages the first one's segment.
  rm -rf "$repo"
  "$VARVE" init --placement pool --pool-index zero-chunk:10 --compression none "$repo" 2>/dev/null
  "$VARVE" -q store --no-arrange "$repo" s/mon "$work/trees/0"
  damaged=$(segment)
  "$VARVE" -q store --no-arrange "$repo" t/mon "$work/trees/1"
  damage "$damaged"
  # The second version shares some damaged chunks. The reads below must not make them known.
  rm -rf "$work/twin"
  cp -a "$repo" "$work/twin"
  differing "$work/twin" 1 t/mon >"$work/shared"
}
differing() {  # REPO TREE VERSION: names the files of the version with lost content.
  rm -rf "$work/restored"
  "$VARVE" -q restore "$1" "$3" "$work/restored" 2>/dev/null || true
  diff -rq "$work/trees/$2" "$work/restored" || true
}

pooled
expect_status 3 "$VARVE" arrange "$repo"
message_says 'arranging left damaged chunks where they are, in (a|[0-9]+) container'
grep -q "arranging: .*$(basename "$damaged").*do not match their checksum; its damaged chunks stay" "$work/stderr" ||
  fail "arrange does not name the container: $message"
[ "$(grep -c 'do not match their checksum' "$work/stderr")" -le 3 ] || fail "arrange repeats the damage: $message"
expect_status 0 "$VARVE" arrange "$repo"
if grep -q 'checksum' "$work/stderr"; then fail "arrange reads chunks in quarantine: $message"; fi
"$VARVE" -q store "$repo" s/tue "$work/trees/0"
[ -z "$(differing "$repo" 0 s/tue)" ] || fail "the next store refers to chunks that arranging found damaged"
differing "$repo" 1 t/mon | cmp - "$work/shared" || fail "arranging lost a sound copy"
expect_status 0 "$VARVE" repair --yes "$repo"
[ -z "$(differing "$repo" 0 s/mon; differing "$repo" 1 t/mon)" ] || fail "a repair does not heal all"
ok "arranging names a damaged container, ends with 3, and lets the next store know"

pooled
expect_status 1 "$VARVE" check --read-data "$repo"
"$VARVE" -q store --no-arrange "$repo" s/tue "$work/trees/0"
expect_status 0 "$VARVE" arrange "$repo"
if grep -q 'checksum' "$work/stderr"; then fail "arrange reads chunks in quarantine: $message"; fi
[ -z "$(differing "$repo" 0 s/tue)" ] || fail "arranging lost a sound copy"
differing "$repo" 1 t/mon | cmp - "$work/shared" || fail "arranging lost a sound copy"
expect_status 0 "$VARVE" repair --yes "$repo"
[ -z "$(differing "$repo" 0 s/mon; differing "$repo" 1 t/mon)" ] || fail "a repair does not heal all"
ok "arranging reads no chunks in quarantine, and loses none of the others"

# A lineage moves the chunks that the newest version no longer has.
fresh lineage
damage "$(segment)"
mkdir -p "$work/changed/below"
head -c 1000000 /dev/urandom >"$work/changed/below/file"
echo small >"$work/changed/other"
"$VARVE" -q store --no-arrange "$repo" s/tue "$work/changed"
expect_status 3 "$VARVE" arrange "$repo"
message_says 'arranging left damaged chunks where they are, in a container'
expect_status 0 "$VARVE" arrange "$repo"
"$VARVE" -q store "$repo" s/wed "$work/tree"
is_whole s/wed || fail "the next store refers to chunks that arranging found damaged"
ok "arranging a lineage does the same"

twice() {  # Two series with the same content, stored twice.
  rm -rf "$repo"
  "$VARVE" init "$@" --compression none "$repo" 2>/dev/null
  "$VARVE" -q store --no-arrange "$repo" s/mon "$work/tree"
  "$VARVE" -q store --no-arrange "$repo" t/mon "$work/tree"
}

# ---- The record ----

# Several readers add to the record at once.
rm -rf "$repo"
"$VARVE" init --compression none "$repo" 2>/dev/null
for n in 1 2 3 4 5 6; do
  mkdir -p "$work/many/$n"
  head -c 600000 /dev/urandom >"$work/many/$n/file"
done
backdate "$work/many"
for n in 1 2 3 4 5 6; do "$VARVE" -q store "$repo" "s$n/mon" "$work/many/$n"; done
# shellcheck disable=SC2046
damage $(find "$repo" -name '*.seg')
mkdir "$work/read" "$work/again"
readers=()
for n in 1 2 3 4 5 6; do
  "$VARVE" -q restore "$repo" "s$n/mon" "$work/read/$n" 2>"$work/reader-$n" &
  readers+=($!)
done
for n in "${readers[@]}"; do if wait "$n"; then fail "nothing was damaged"; fi; done
if grep -h 'cannot be recorded' "$work"/reader-*; then fail "a reader did not record its damage"; fi
for n in 1 2 3 4 5 6; do
  "$VARVE" -q store "$repo" "s$n/tue" "$work/many/$n"
  "$VARVE" -q restore "$repo" "s$n/tue" "$work/again/$n" || fail "the damage of s$n was not recorded"
done
ok "readers that find damage at the same time lose none of it"

fresh lineage
damage "$(segment)"
if is_whole s/mon; then fail "nothing was damaged"; fi
printf 'X' | dd of="$repo/checked" bs=1 seek=80 conv=notrunc status=none
expect_status 0 "$VARVE" store "$repo" s/tue "$work/tree"
message_says 'checked is damaged: damage found by earlier commands is not known here'
ok "a damaged record is no silence"

fresh lineage
damage "$(segment)"
mkdir -p "$work/readable"
mount --bind "$repo" "$work/readable"
mount -o remount,bind,ro "$work/readable"
expect_status 3 "$VARVE" restore "$work/readable" s/mon "$work/restored-ro"
message_says 'cannot be recorded, so new data may refer to them: .* is mounted read-only'
[ "$(grep -c 'cannot be recorded' "$work/stderr")" -eq 1 ] || fail "the restore repeats: $message"
umount "$work/readable"
if setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$VARVE" && chmod 755 "$work"; then
  chown -R 65534:65534 "$repo"
  expect_status 3 env VARVE_TRUST="$repo" "$VARVE" restore "$repo" s/mon "$work/restored-root"
  message_says 'belongs to another user'
  [ ! -e "$repo/checked" ] || [ "$(stat -c %u "$repo/checked")" = 65534 ] || fail "root left a record that the owner cannot read"
fi
ok "a reader that cannot record damage for the owner says so once"

# ---- A daemon tells what others found ----

fresh lineage
mount_as_job
damage "$(segment)"
if cat "$mnt/s/mon/below/file" >/dev/null 2>&1; then fail "nothing was damaged"; fi
expect_status 0 "$VARVE" clone "$mnt/s/mon" "$mnt/s/tue"
message_says 's/mon has a file with lost content: below/file'
unmount_repo
ok "a clone through a daemon names files with damage that a read just found"

# ---- A lost table ----

fresh lineage
damage_header
"$VARVE" -q store --checksum "$repo" s/tue "$work/tree" || true
expect_status 3 "$VARVE" repair --yes "$repo"
message_says 'lost with the table of their container, so their content cannot be recognized anywhere'
ok "a repair says when no content can be found again"

# ---- Another series has the content ----

for kind in '--placement lineage' '--placement lineage --encrypt'; do
  if [ "${kind#*--encrypt}" != "$kind" ]; then
    echo secret >"$work/passphrase"
    chmod 600 "$work/passphrase"
    export VARVE_PASSPHRASE_FILE=$work/passphrase
  fi
  # shellcheck disable=SC2086
  twice $kind
  damage "$(segment)"
  expect_status 0 "$VARVE" repair --yes "$repo"
  is_whole s/mon || fail "$kind: a repair does not take content from another series"
  "$VARVE" -q check --read-data "$repo" || fail "$kind: the repaired repository has damage"
done
ok "a repair takes lost content from another series"
