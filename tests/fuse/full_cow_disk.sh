#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Disks that copy on write, and quotas, fill up to the last byte: nothing that was accepted is lost,
# and each command that reads or frees works, with and without the daemon.
limit_s=180
. "$(dirname "$0")/lib.sh"
: "${VARVE_FAULTY_DISK:?is the path of the library made from faulty_disk.cc}"

# Writes files of 4 MB until the disk is full. Removes the file that met an error, and remembers the
# sums of the others.
fill() {  # DIRECTORY
  local n sum bytes
  : >"$work/sums"
  for n in $(seq 1 150); do
    head -c 4000000 /dev/urandom >"$work/piece"
    if ! cp "$work/piece" "$1/$n" 2>/dev/null; then
      rm -f "$1/$n" || fail "the daemon has ended, after $n files"
      break
    fi
    read -r sum bytes _ < <(cksum "$work/piece")
    echo "$sum $bytes $n" >>"$work/sums"
  done
  [ "$n" -lt 150 ] || fail "the disk took it all"
  [ "$n" -gt 5 ] || fail "the disk took only $n files"
  sync "$1/1" || fail "what was accepted cannot be stored"
}
all_there() { (cd "$1" && seq "$(wc -l <"$work/sums")" | xargs cksum) | cmp - "$work/sums"; }

# Another program takes the last byte, also of the space for names and small files.
take_the_last_byte() {
  local n bytes
  mkdir -p "$disk/ballast" 2>/dev/null || return 0
  for bytes in 1M 64k 4k; do
    dd if=/dev/zero of="$disk/ballast/large" bs=$bytes oflag=append conv=notrunc status=none 2>/dev/null || true
    sync -f "$disk" || true
  done
  for n in $(seq 1 20000); do
    head -c 2000 /dev/zero 2>/dev/null >"$disk/ballast/$n" || break
  done
  sync -f "$disk" || true
}

reads_work() {
  local name
  "$VARVE" ls "$repo" >"$work/listed"
  for name in one two; do grep -q "s/$name" "$work/listed" || fail "$name is not listed"; done
  for name in one two; do
    "$VARVE" -q restore "$repo" s/$name "$work/restored"
    diff -r "$work/$name" "$work/restored"
    rm -rf "$work/restored"
  done
  "$VARVE" -q check "$repo"
}

# Runs a command that must make its change. On a disk without room for the labels, it may end with 3.
makes_change() {  # COMMAND…
  local status=0
  "$@" 2>"$work/stderr" || status=$?
  [ $status -eq 0 ] || { [ $status -eq 3 ] && grep -q 'all changes are made' "$work/stderr"; } ||
    fail "$* ended with $status: $(cat "$work/stderr")"
}

# A disk that takes nothing as long as the reserve exists, in an opening that has a crash's rests to
# cut off.
reserve_is_used() {  # PLACEMENT
  repo=$work/repo-$1
  "$VARVE" -q init --placement "$1" --compression none "$repo"
  for name in one two; do "$VARVE" -q store "$repo" s/$name "$work/$name"; done
  [ -e "$repo/reserve" ] || fail "there is no reserve"
  rm "$repo/settled"
  head -c 300000 /dev/urandom >>"$(find "$repo" -name '*.seg' | sort | tail -1)"
  LD_PRELOAD=$VARVE_FAULTY_DISK DISK_BELOW=$repo DISK_FULL_WHILE=$repo/reserve "$VARVE" -q rm "$repo" s/one
  "$VARVE" ls "$repo" >"$work/listed"
  if grep -q s/one "$work/listed"; then fail "the version is still there"; fi
  "$VARVE" -q check --read-data "$repo"
  ok "$1: the opening of a repository takes the reserve of a full disk, and a deletion works"
}

for name in one two; do
  mkdir "$work/$name"
  for n in 1 2 3 4; do head -c 4000000 /dev/urandom >"$work/$name/$n"; done
done

exercise() {  # KIND [PLACEMENT]: the disk is mounted at $disk
  local v
  repo=$disk/repo
  "$VARVE" -q init --placement "${2:-lineage}" --compression none "$repo"
  mount_repo
  mkdir "$mnt/s"
  for name in one two; do cp -r "$work/$name" "$mnt/s/$name.partial" && mv -T "$mnt/s/$name.partial" "$mnt/s/$name"; done
  v=$mnt/s/open.partial
  mkdir "$v"
  fill "$v"
  take_the_last_byte
  ok "$1: full, $(wc -l <"$work/sums") files of 4 MB accepted; $(df --output=avail -B1 "$disk" | tail -1) bytes free"
  all_there "$v"
  reads_work
  ok "$1: full, mounted: versions are listed, restored and checked"
  makes_change "$VARVE" seal "$v"
  all_there "$mnt/s/open"
  ok "$1: full: the open version is sealed, and every accepted file is there"
  take_the_last_byte
  unmount_repo
  reads_work
  ok "$1: full, without the daemon: versions are listed, restored and checked"
  makes_change "$VARVE" -q rm "$repo" s/open
  take_the_last_byte
  makes_change "$VARVE" -q rm "$repo" s/one
  rm -rf "$disk/ballast"
  mount_repo
  mkdir "$v"
  fill "$v"
  take_the_last_byte
  rm -rf "$v"
  [ ! -e "$v" ] || fail "the open version is still there"
  ok "$1: full: versions are deleted, and the open version is dropped"
  mkdir "$v"
  fill "$v"
  take_the_last_byte
  makes_change "$VARVE" -q rm "$repo" s/two
  makes_change "$VARVE" seal "$v"
  all_there "$mnt/s/open"
  ok "$1: full: after rm a version is sealed"
  unmount_repo
  rm -rf "$disk/ballast"
  makes_change "$VARVE" -q rm "$repo" s/open
  mount_as_job
  mkdir "$v"
  fill "$v"
  kill_daemon
  # A container that was written, but not located: cutting it off takes new blocks.
  head -c 300000 "$work/piece" >>"$(find "$repo" -name '*.seg' | sort | tail -1)" 2>/dev/null || true
  take_the_last_byte
  makes_change "$VARVE" -q rm "$repo" s/open.partial
  ok "$1: full, and the daemon was killed: the open version is dropped"
  "$VARVE" -q check --read-data "$repo"
  rm -rf "$disk/ballast"
  umount "$disk"
}

mount_image() {  # OPTIONS
  disk=$work/disk
  mkdir -p "$disk"
  mount -o "loop${1:+,$1}" "$work/image" "$disk" 2>"$work/mount.log"
}
new_image() { rm -f "$work/image" && truncate -s "$1M" "$work/image"; }

btrfs_disk() {  # MIB
  new_image "$1"
  mkfs.btrfs -q "$work/image" >/dev/null 2>&1 && mount_image
}

for placement in lineage pool; do reserve_is_used $placement; done

if ! command -v mkfs.btrfs >/dev/null; then
  skip_part "no btrfs-progs"
elif ! btrfs_disk 500; then
  skip_part "cannot mount Btrfs: $(cat "$work/mount.log")"
else
  exercise "Btrfs"
  btrfs_disk 500
  exercise "Btrfs with a pool" pool
  btrfs_disk 1000
  btrfs quota enable "$disk"
  btrfs qgroup limit 250M "$disk"
  exercise "Btrfs with a quota of its own"
fi

if ! command -v mkfs.xfs >/dev/null; then
  skip_part "no xfsprogs"
elif ! { new_image 400 && mkfs.xfs -q -m reflink=1 "$work/image" && mount_image; }; then
  skip_part "cannot mount XFS: $(cat "$work/mount.log")"
else
  exercise "XFS with reflinks"
  if ! { new_image 800 && mkfs.xfs -q -m reflink=1 "$work/image" && mount_image prjquota; }; then
    skip_part "cannot mount XFS with quotas: $(cat "$work/mount.log")"
  else
    xfs_quota -x -c "project -s -p $disk 42" -c 'limit -p bhard=250m 42' "$disk" >/dev/null
    exercise "XFS with a quota of a project"
  fi
fi
