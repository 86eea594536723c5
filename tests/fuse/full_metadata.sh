#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A Btrfs whose space for metadata is full takes changes of files, but no new files. A command that
# cannot write the labels keeps the old ones, ends with 3 and says so; a later command completes them.
limit_s=180
. "$(dirname "$0")/lib.sh"
command -v mkfs.btrfs >/dev/null || skip "no btrfs-progs"

disk=$work/disk
repo=$disk/repo
mkdir "$disk" "$work/one"
head -c 3000000 /dev/urandom >"$work/one/x"

# Fills the space for metadata with small files, whose content is in the metadata, and with names.
fill_metadata() {
  mkdir -p "$disk/ballast" 2>/dev/null || return 0
  python3 - "$disk/ballast" <<'END'
import os, sys, time
for size in 2000, 900, 200, 10, 0:
    failed = n = 0
    while failed < 3:
        n += 1
        try:
            file = os.open("%s/%d-%d-%d" % (sys.argv[1], time.time_ns(), size, n), os.O_CREAT | os.O_WRONLY)
            try:
                os.write(file, b"x" * size)
            finally:
                os.close(file)
        except OSError:
            failed += 1
    os.sync()
END
  sync -f "$disk" || true
}
empty_metadata() { rm -rf "$disk/ballast" && sync -f "$disk"; }
same_labels() { "$VARVE" check "$repo" >"$work/check" 2>&1 && ! grep -q labels "$work/check"; }

incomplete=0
# Runs a command that changes something. Status 0 means that all is done.
changes() {  # COMMAND…
  local status=0 labels
  "$@" >"$work/stdout" 2>"$work/stderr" || status=$?
  for labels in "$repo"/series/0*/labels; do
    [ -s "$labels" ] || fail "$labels is gone after $* ($status)"
  done
  case $status in
    0) same_labels || fail "$* ended with 0, but $(cat "$work/check" "$work/stderr")" ;;
    3)
      incomplete=$((incomplete + 1))
      grep -q 'all changes are made, but not yet noted for a repair' "$work/stderr" || fail "$*: $(cat "$work/stderr")"
      ;;
    *) fail "$* ended with $status: $(cat "$work/stderr")" ;;
  esac
}

new_repository() {
  truncate -s 260M "$work/image"
  mkfs.btrfs -q -f "$work/image" >/dev/null 2>&1
  mount -o loop "$work/image" "$disk" 2>"$work/stderr" || skip "cannot mount Btrfs: $(cat "$work/stderr")"
  "$VARVE" -q init --compression none "$repo"
  for version in s/1 s/2 s/3 s/4 t/1; do "$VARVE" -q store "$repo" $version "$work/one"; done
  rm -f "$repo/reserve"
  fill_metadata
}
end_repository() {
  umount "$disk"
  rm "$work/image"
}

new_repository
changes "$VARVE" rm "$repo" s/1
changes "$VARVE" lock "$repo" s/2 --for 1h
fill_metadata
rm -f "$repo/reserve"
changes "$VARVE" mv "$repo" t u
# A repair that cannot write the labels is no success, and leaves the old ones.
status=0
"$VARVE" repair --yes "$repo" >"$work/stdout" 2>"$work/stderr" || status=$?
case $status in
  0) same_labels || fail "the repair ended with 0, but $(cat "$work/check")" ;;
  1 | 3) grep -qi 'space' "$work/stderr" || fail "the repair says $(cat "$work/stderr")" ;;
  *) fail "the repair ended with $status: $(cat "$work/stderr")" ;;
esac
for labels in "$repo"/series/0*/labels; do [ -s "$labels" ] || fail "the repair has removed $labels"; done
[ $incomplete -gt 0 ] || fail "all labels were written: nothing is tested"
ok "$incomplete of 3 commands end with 3, and the labels stay"
empty_metadata
changes "$VARVE" arrange "$repo"
same_labels || fail "$(cat "$work/check")"
rm -r "$repo/catalog"
"$VARVE" -q repair --yes "$repo"
[ "$("$VARVE" ls "$repo" | sort | tr '\n' ' ')" = "s/2 s/3 s/4 u/1 " ] || fail "$("$VARVE" ls "$repo")"
expect_status 1 "$VARVE" rm "$repo" s/2
message_says locked
ok "with space, the next command writes the labels: a rebuilt catalog has all changes"
end_repository

new_repository
mount_repo
rm -f "$repo/reserve"
incomplete=0
changes "$VARVE" lock "$repo" s/2 --for 1h
changes "$VARVE" rm "$repo" s/1
changes "$VARVE" mv "$repo" s/3 new
[ $incomplete -gt 0 ] || fail "all labels were written: nothing is tested"
ok "$incomplete of 3 commands end with 3 also beside a daemon"
empty_metadata
changes "$VARVE" mv "$repo" s/4 newer
unmount_repo
same_labels || fail "$(cat "$work/check")"
ok "with space, the daemon writes the labels"
end_repository
