#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A real virtual machine goes back to a live snapshot while an encrypted repository is mounted: random bytes repeat, but
# no key and nonce may have two texts (docs/ENCRYPTION.md, "Nonces"). Takes minutes and the network, so it is in a suite of
# its own: `./scripts/test --suite install-slow`.
#   VARVE_TEST_ACCEL=kvm   runs the machine by KVM, for which this machine may be virtual itself; otherwise, QEMU translates
#   VARVE_MIRROR=URL       the Debian mirror of debootstrap
set -Eeuo pipefail
here=$(realpath "$(dirname "$0")")
: "${VARVE:?is the path of the varve program to test}"
export LC_ALL=C.UTF-8
trap 'echo "not ok - line $LINENO of $0: $BASH_COMMAND"' ERR
ok() { echo "ok - $*"; }
skip() { echo "skipped: $*" && exit 77; }

[ "$(id -u)" -eq 0 ] || skip "needs root (chroot, mounts)"
for tool in debootstrap qemu-system-x86_64 qemu-img mdb_dump mkfs.ext4; do
  command -v "$tool" >/dev/null || skip "needs debootstrap, qemu-system-x86, qemu-utils, lmdb-utils and e2fsprogs"
done
[ "$(uname -m)" = x86_64 ] || skip "has a machine of x86-64 only"
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
mirror=${VARVE_MIRROR:-http://deb.debian.org/debian}
python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=20)' \
  "$mirror/dists/$release/InRelease" 2>/dev/null || skip "the mirror $mirror has no release $release, or does not answer"

work=$(mktemp -d "${VARVE_TEST_TMP:-/var/tmp}/varve-vm.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root
debootstrap --variant=minbase --include=linux-image-cloud-amd64,initramfs-tools,fuse3 "$release" "$root" "$mirror" \
  >"$work/debootstrap.log" 2>&1 || { tail "$work/debootstrap.log" && exit 1; }

# The program, and the libraries that it has on this machine.
install -D "$VARVE" "$root/usr/bin/varve"
ldd "$VARVE" | awk '$3 ~ /^\// { print $3 }' | while read -r library; do
  install -D "$library" "$root/usr/lib/varve/${library##*/}"
done
cat >"$root/guest" <<'GUEST'
#!/bin/bash
mount -t proc proc /proc
mount -t tmpfs -o mode=755 run /run
mount -t tmpfs tmp /tmp
modprobe fuse
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 LD_LIBRARY_PATH=/usr/lib/varve
exec <>/dev/ttyS0 >&0 2>&1
stty -echo
echo GUEST IS READY
while read -r line; do
  eval "$line"
  echo "COMMAND ENDED $?"
done
GUEST
chmod 755 "$root/guest"
truncate -s 3G "$work/disk.raw"
mkfs.ext4 -q -d "$root" "$work/disk.raw"
python3 "$here/live_snapshot.py" "$root"/boot/vmlinuz-* "$root"/boot/initrd.img-* "$work/disk.raw" "$work"
ok "two futures of one live snapshot seal no two texts under one key and nonce"
