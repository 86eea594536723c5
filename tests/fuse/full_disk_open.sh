#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A disk of 160 MiB fills up while a version is open: no accepted data is lost, and users can read,
# seal and remove the version.
limit_s=120
. "$(dirname "$0")/lib.sh"

repo_on_disk 160
head -c 200000000 /dev/urandom >"$work/random"
"$VARVE" init --compression none "$repo"
mount_repo
mkdir "$mnt/s"

piece() { dd if="$work/random" of="$2" bs=1000000 skip="$1" count=1 status=none; }  # N FILE

# Writes files of 1 MB and some small ones until the disk is full. $work/whole lists the files that
# were closed without an error, with their sums. Removes the file that met the error.
fill() {  # DIRECTORY NAMES…
  local dir=$1 n
  shift
  for n in "$@"; do
    if ! piece "$n" "$dir/$n" 2>/dev/null; then
      rm -f "$dir/$n"
      return
    fi
    echo "small $n" >"$dir/small-$n" 2>/dev/null || { rm -f "$dir/small-$n"; return; }
  done
  fail "the disk took it all"
}
remember() { (cd "$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum) >"$work/sums"; }
all_there() { (cd "$1" && sha256sum --quiet -c "$work/sums"); }
device_full() {
  local left
  left=$(df --output=avail -B1K "$work/disk" | tail -1)
  fallocate -l $((left - 4))K "$work/disk/ballast" || true
}

v=$mnt/s/one.partial
mkdir "$v"
fill "$v" $(seq 1 190)
files=$(find "$v" -type f | wc -l)
[ "$files" -gt 150 ] || fail "only $files files were taken"
rm "$v/1" "$v/small-1"
remember "$v"
all_there "$v"
mv -T "$v" "$mnt/s/one"
all_there "$mnt/s/one"
ok "full, rm, seal: all $files files but those removed are there"
"$VARVE" rm "$repo" s/one >/dev/null
mkdir "$v"
fill "$v" $(seq 1 190)
remember "$v"
unmount_repo
mount_repo
all_there "$v"
ok "full, umount, mount: what was closed without an error is there"
[ "$(find "$v" -type f | wc -l)" -eq "$(wc -l <"$work/sums")" ] || fail "other files than before"
rm -rf "$v"
[ ! -e "$v" ] || fail "the open version is still there"
ok "and it can be dropped"

mkdir "$v"
fill "$v" $(seq 1 190)
remember "$v"
unmount_repo
mount_repo
"$VARVE" seal "$v"
all_there "$mnt/s/one"
ok "and it can be sealed"
"$VARVE" rm "$repo" s/one >/dev/null

# Another program takes the last byte.
mkdir "$v"
for n in 1 2 3; do piece "$n" "$v/$n"; done
mkdir "$v/d"
sync "$v/1"
device_full
for n in 4 5 6 7; do echo "last words" >"$v/d/$n" 2>/dev/null || rm -f "$v/d/$n"; done
remember "$v"
unmount_repo
mount_repo
all_there "$v"
ok "with not a byte left an open version can be unmounted, mounted and read"
"$VARVE" seal "$v"
all_there "$mnt/s/one"
ok "and sealed, by means of the reserve"
rm "$work/disk/ballast"
"$VARVE" rm "$repo" s/one >/dev/null
unmount_repo

# Without a reserve, and with more changes than fit on the disk, no change is lost silently.
mount_repo
mkdir "$v"
rm -f "$repo/reserve"
for n in $(seq 1 20); do piece "$n" "$v/$n"; done
device_full
rm -f "$repo/reserve"
device_full2() { cat /dev/zero >"$work/disk/ballast2" 2>/dev/null || true; }
device_full2
if ! "$VARVE" umount "$mnt" 2>"$work/stderr"; then
  grep -q 's/one.partial' "$work/stderr" || fail "the message names no version: $(cat "$work/stderr")"
  mountpoint -q "$mnt" || fail "unmounted although it refused"
  rm "$work/disk/ballast" "$work/disk/ballast2"
  remember "$v"
  unmount_repo
  mount_repo
  all_there "$v"
  ok "umount refuses where it would lose changes, names the version, and works after space was made"
else
  rm "$work/disk/ballast" "$work/disk/ballast2"
  mount_repo
  [ "$(find "$v" -type f -size +0 | wc -l)" -eq 20 ] || fail "umount lost files in silence"
  ok "all changes were stored before the disk was full"
fi
rm -rf "$v"
unmount_repo

# store on a full disk, and store again with space.
fallocate -l 40M "$work/disk/ballast"
mkdir "$work/tree"
for n in $(seq 1 110); do piece "$n" "$work/tree/$n"; done
expect_status 1 "$VARVE" store "$repo" s/stored "$work/tree"
message_says 'full: free at least [0-9]* MiB more'
message_says 'continues'
expect_status 1 "$VARVE" store "$repo" s/stored "$work/tree"
mount_repo
kept=$(find "$mnt/s/stored" -type f | wc -l)
[ "$kept" -gt 50 ] || fail "store kept $kept files only"
(cd "$mnt/s/stored" && for f in *; do cmp "$f" "$work/tree/$f"; done)
ok "store keeps $kept whole files when the disk is full, also when it is run again"
unmount_repo
rm "$work/disk/ballast"
"$VARVE" store "$repo" s/stored "$work/tree" >/dev/null
"$VARVE" -q restore "$repo" s/stored "$work/restored"
diff -r "$work/tree" "$work/restored"
ok "store goes on with what it had stored"
"$VARVE" check --read-data "$repo"
ok "check finds nothing"
