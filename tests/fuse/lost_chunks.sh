#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# New data must not refer to chunks whose bytes are lost. A file that needs them must not keep the
# other files of an open version from becoming durable.
limit_s=240
. "$(dirname "$0")/lib.sh"

# Flips a byte in each 2 KiB of the containers' data, but not in their headers.
damage() {  # SEGMENT
  python3 - "$1" <<'PYTHON'
import os, sys
size = os.path.getsize(sys.argv[1])
with open(sys.argv[1], "r+b") as file:
    for at in range(200_000, size - 200_000, 2048):
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 255]))
PYTHON
}

head -c 1000000 /dev/urandom >"$work/data"
mkdir "$work/tree" && cp "$work/data" "$work/tree/file"
for placement in lineage pool; do
  rm -rf "$repo" "$work"/restored*
  "$VARVE" init --placement "$placement" --compression none "$repo" 2>/dev/null
  "$VARVE" -q store "$repo" s/mon "$work/tree"
  mount_repo
  mkdir "$mnt/s/tue"
  cp "$work/data" "$mnt/s/tue/copy"
  sync "$mnt/s/tue/copy"
  unmount_repo
  segment=$(find "$repo" -name '*.seg' -size +100k | head -1)
  damage "$segment"
  "$VARVE" -q repair --yes "$repo" >"$work/repaired" 2>&1 || true
  mount_repo
  if cat "$mnt/s/tue/copy" >/dev/null 2>&1; then fail "nothing was damaged"; fi
  "$VARVE" -q rm "$repo" s/mon
  cp "$work/data" "$mnt/s/tue/again"
  "$VARVE" -q seal "$mnt/s/tue"
  cmp "$work/data" "$mnt/s/tue/again" || fail "new data refers to lost chunks"
  unmount_repo
  "$VARVE" -q restore "$repo" s/tue "$work/restored" 2>/dev/null || true
  cmp "$work/data" "$work/restored/again"
  ok "$placement: after a deletion, too, lost content is stored again when it comes back"

  rm -rf "$repo"
  "$VARVE" init --placement "$placement" --compression none "$repo" 2>/dev/null
  "$VARVE" -q store "$repo" s/mon "$work/tree"
  mount_as_job
  "$VARVE" -q clone "$repo" s/mon s/tue
  segment=$(find "$repo" -name '*.seg' -size +100k | head -1)
  damage "$segment"
  # A change inside a chunk makes Varve read the chunk.
  printf 'change' | dd of="$mnt/s/tue/file" bs=1 seek=500001 conv=notrunc status=none 2>/dev/null || true
  echo whole >"$mnt/s/tue/other"
  wait_for_checkpoint "$mnt/s/tue"
  kill_daemon
  mount_repo
  [ "$(cat "$mnt/s/tue/other")" = whole ] || fail "another file was not durable after a checkpoint"
  ok "$placement: a file that cannot be cut does not keep the checkpoint from the others"
  unmount_repo

  rm -rf "$repo" "$work/restored"
  pass_time 3  # The store reads a file again that was changed within 2 seconds before the last one.
  "$VARVE" init --placement "$placement" --compression none "$repo" 2>/dev/null
  "$VARVE" -q store "$repo" s/mon "$work/tree"
  "$VARVE" store "$repo" s/tue "$work/tree" 2>"$work/said"
  grep -q "1 of them unchanged and not read" "$work/said" || fail "an unchanged file was read"
  damage "$(find "$repo" -name '*.seg' -size +100k | head -1)"
  "$VARVE" -q repair --yes "$repo" >"$work/repaired" 2>&1 || true
  "$VARVE" store "$repo" s/wed "$work/tree" 2>"$work/said"
  ! grep -q "unchanged" "$work/said" || fail "a file with lost data counts as unchanged"
  "$VARVE" store "$repo" s/thu "$work/tree" 2>"$work/said"
  grep -q "1 of them unchanged and not read" "$work/said" || fail "the file is read forever"
  for version in wed thu; do
    "$VARVE" -q restore "$repo" "s/$version" "$work/restored.$version"
    cmp "$work/data" "$work/restored.$version/file"
  done
  ok "$placement: an unchanged file whose data was lost is stored again by the next store"
done

# ---- The repair drops an open version, and the quarantine has no chunks that only this version needed. ----

for placement in lineage pool; do
  rm -rf "$repo"
  "$VARVE" -q init --placement "$placement" --compression none "$repo"
  "$VARVE" -q store "$repo" s/mon "$work/tree"
  mount_repo
  mkdir "$mnt/s/tue.partial"
  head -c 300000 /dev/urandom >"$mnt/s/tue.partial/file"
  sync "$mnt/s/tue.partial/file"
  unmount_repo
  rm -r "$repo"/staging/*
  find "$repo" -name '*.seg' -exec truncate -s 4096 {} \;
  expect_status 3 "$VARVE" repair --yes "$repo"
  grep -q 'lost: the open version tue' "$work/stdout" || fail "the repair does not name the dropped version"
  sha256sum "$repo/catalog/data.mdb" "$repo"/series/*/labels >"$work/before"
  expect_status 3 "$VARVE" repair --yes "$repo"
  grep -q 'this is left: .*lost chunks: [0-9]* (until' "$work/stdout" || fail "a second repair does $(cat "$work/stdout")"
  sha256sum --quiet -c "$work/before" || fail "a second repair changes the repository"
  ok "$placement: a repair that drops an open version leaves nothing to a second one"
done

# The opening at the end of a repair frees a container of the pool to which nothing refers any more.
rm -rf "$repo"
"$VARVE" -q init --placement pool --compression none "$repo"
mount_repo
mkdir -p "$mnt/s/tue.partial"
for round in 1 2; do
  head -c 300000 /dev/urandom >"$mnt/s/tue.partial/file"
  sync "$mnt/s/tue.partial/file"
done
unmount_repo
rm "$repo"/pool/active/*.seg
expect_status 3 "$VARVE" repair --yes "$repo"
sha256sum "$repo/catalog/data.mdb" "$repo"/series/*/labels >"$work/before"
expect_status 3 "$VARVE" repair --yes "$repo"
! grep -q '^quarantine' "$work/stdout" || fail "a second repair does $(cat "$work/stdout")"
sha256sum --quiet -c "$work/before" || fail "a second repair changes the repository"
ok "pool: a lost chunk that an opening frees leaves nothing to a second repair"
