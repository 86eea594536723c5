#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The first block of README.md, from the first to the last line, as a stranger runs it: in an empty Debian 12 and in an empty
# Debian 13, with the packages that its lines install and no others. Takes minutes and the network, so it is in a
# suite of its own: `./scripts/test --suite install-slow`.
#   VARVE_RELEASES="bookworm trixie"   the releases
#   VARVE_MIRROR=URL                   the Debian mirror of debootstrap
set -Eeuo pipefail
root=$(realpath "$(dirname "$0")/../..")
export LC_ALL=C.UTF-8
trap 'echo "not ok - line $LINENO of $0: $BASH_COMMAND"' ERR
ok() { echo "ok - $*"; }
skip() { echo "skipped: $*" && exit 77; }

[ "$(id -u)" -eq 0 ] || skip "needs root (chroot, mounts)"
[ -c /dev/fuse ] || skip "/dev/fuse is missing"
command -v debootstrap >/dev/null || skip "needs debootstrap"
git -C "$root" rev-parse HEAD >/dev/null 2>&1 || skip "is not a clone, so it cannot be cloned"
mirror=${VARVE_MIRROR:-http://deb.debian.org/debian}
python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=20)' \
  "$mirror/dists/bookworm/InRelease" 2>/dev/null || skip "the mirror $mirror does not answer"

work=$(mktemp -d "${VARVE_TEST_TMP:-/var/tmp}/varve-readme.XXXXXX")
cleanup() {
  umount -R "$work"/*/mnt/varve "$work"/*/dev "$work"/*/proc 2>/dev/null || true
  grep -q " $work" /proc/mounts || rm -rf --one-file-system "$work"
}
trap cleanup EXIT
git clone -q --bare "$root" "$work/varve.git"

awk '/^```sh$/ { inside = 1; next } inside && /^```$/ { exit } inside' "$root/README.md" |
  sed 's|^git clone URL |git clone -q /varve.git |' >"$work/block.sh"
[ "$(grep -c varve "$work/block.sh")" -ge 12 ]

for release in ${VARVE_RELEASES:-bookworm trixie}; do
  chroot=$work/$release
  debootstrap --variant=minbase "$release" "$chroot" "$mirror" >"$work/debootstrap.log" 2>&1 || { tail "$work/debootstrap.log" && exit 1; }
  before=$(chroot "$chroot" dpkg-query -f '.\n' -W | wc -l)
  mount -t proc proc "$chroot/proc"
  # Devices of its own: each distribution lets all users open /dev/fuse.
  mount -t tmpfs -o mode=755 dev "$chroot/dev"
  for device in null zero full random urandom tty; do cp -a "/dev/$device" "$chroot/dev/"; done
  mkdir -m 1777 "$chroot/dev/shm"
  mknod -m 666 "$chroot/dev/fuse" c 10 229
  cp -a "$work/varve.git" "$chroot/varve.git"
  cp "$work/block.sh" "$chroot/block.sh"
  begin=$(date +%s)
  chroot "$chroot" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash -euxo pipefail -c 'cd /root && . /block.sh' \
    >"$work/$release.log" 2>&1 || { tail -n 40 "$work/$release.log" && exit 1; }
  after=$(chroot "$chroot" dpkg-query -f '.\n' -W | wc -l)
  diff -r --no-dereference "$chroot/etc" "$chroot/restore"
  ok "$release: README's first block ends well, in $(($(date +%s) - begin)) s, with $((after - before)) packages more"
done
