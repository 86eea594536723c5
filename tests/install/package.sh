#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages, installs them in an empty Debian of the release that built them, uses them there as
# a stranger would, removes and purges them, and checks that nothing is left. Takes minutes and
# the network, so it is in a suite of its own: `./scripts/test --suite install-slow`.
#   VARVE_PACKAGES=FOLDER   takes the packages that `scripts/package FOLDER` made
#   VARVE_MIRROR=URL        the Debian mirror of debootstrap
#   VARVE_LINTIAN=0         does not run lintian
set -Eeuo pipefail
root=$(realpath "$(dirname "$0")/../..")
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
trap 'echo "not ok - line $LINENO of $0: $BASH_COMMAND"' ERR
ok() { echo "ok - $*"; }
skip() { echo "skipped: $*" && exit 77; }

[ "$(id -u)" -eq 0 ] || skip "needs root (chroot, mounts)"
for tool in debootstrap dpkg-buildpackage dh; do
  command -v "$tool" >/dev/null || skip "needs debootstrap, debhelper and dpkg-dev"
done
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
mirror=${VARVE_MIRROR:-http://deb.debian.org/debian}
python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=20)' \
  "$mirror/dists/$release/InRelease" 2>/dev/null || skip "the mirror $mirror has no release $release, or does not answer"

work=$(mktemp -d "${VARVE_TEST_TMP:-/var/tmp}/varve-deb.XXXXXX")
chroot=$work/debian
cleanup() {
  umount -R "$chroot/mnt/varve" "$chroot/dev" "$chroot/proc" 2>/dev/null || true
  mountpoint -q "$chroot/proc" || rm -rf --one-file-system "$work"
}
trap cleanup EXIT
inside() { chroot "$chroot" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
  LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }

# ---- Build. ----

packages=${VARVE_PACKAGES:-$work/packages}
if ! compgen -G "$packages/*.deb" >/dev/null; then
  "$root/scripts/package" "$packages" >"$work/build.log" 2>&1 ||
    { tail -50 "$work/build.log" && exit 1; }
fi
version=$(sed -n "s/^ *version: '\([^']*\)',.*/\1/p" "$root/meson.build" | head -n 1)
program=$(echo "$packages"/varve_"$version"_*.deb)
library=$(echo "$packages"/libvarve-dev_"$version"_*.deb)
[ -f "$program" ] && [ -f "$library" ]
ok "two packages of version $version: $(stat -c %s "$program"), $(stat -c %s "$library") bytes"
if [ "${VARVE_LINTIAN:-1}" != 0 ] && command -v lintian >/dev/null; then
  lintian --allow-root --fail-on error "$packages"/*.changes
  ok "lintian finds no error"
fi

# ---- An empty Debian, with what the packages depend on. ----

debootstrap --variant=minbase "$release" "$chroot" "$mirror" >"$work/debootstrap.log" 2>&1 || { tail "$work/debootstrap.log" && exit 1; }
mount -t proc proc "$chroot/proc"
mount --bind /dev "$chroot/dev"
depends() { dpkg-deb -f "$1" Depends | tr ',' '\n' | sed 's/(.*//; s/|.*//; s/ //g'; }
mapfile -t needed < <(depends "$program"; depends "$library")
inside apt-get install -y -qq --no-install-recommends "${needed[@]}" \
  fuse3 python3 zstd g++ pkg-config >"$work/apt.log" 2>&1 || { tail "$work/apt.log" && exit 1; }
list() { (cd "$chroot" && find . -path ./proc -prune -o -path ./dev -prune -o -path ./sys -prune -o \
  -path ./run -prune -o \
  -path ./tmp -prune -o -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o \
  -path ./var/cache -prune -o -print | sort); }
list >"$work/before.txt"

cp "$program" "$library" "$chroot/tmp"
inside sh -c 'dpkg -i /tmp/*.deb' >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log" && exit 1; }
ok "dpkg -i installs both"

# ---- Use. ----

inside varve --version | grep -F "$version" >/dev/null
cat >"$chroot/tmp/use.sh" <<'USE'
set -eu
cd /tmp
varve init repo
varve -q store repo etc/monday /etc
cp -a /etc etc.copy
echo changed >>etc.copy/hostname
varve -q store repo etc/tuesday etc.copy
varve -q restore repo etc/monday monday
diff -r --no-dereference /etc monday
varve check --read-data repo
varve ls repo
python3 /usr/share/varve/rescue/varve-read.py repo restore etc/tuesday tuesday
diff -r --no-dereference etc.copy tuesday
if [ -c /dev/fuse ]; then
  mkdir -p /mnt/varve
  mount -t fuse.varve /tmp/repo /mnt/varve
  diff -r --no-dereference /etc /mnt/varve/etc/monday
  mkdir /mnt/varve/etc/wednesday.partial
  cp -a /etc/hostname /mnt/varve/etc/wednesday.partial
  mv -T /mnt/varve/etc/wednesday.partial /mnt/varve/etc/wednesday
  umount /mnt/varve
  rmdir /mnt/varve
  varve ls repo | grep etc/wednesday
fi
USE
inside sh /tmp/use.sh >"$work/use.log" 2>&1 || { cat "$work/use.log" && exit 1; }
ok "init, store, restore, check, mount -t fuse.varve and the reader in Python work"

for file in share/man/man1/varve.1.gz share/man/man8/mount.fuse.varve.8.gz sbin/mount.varve \
  lib/systemd/system/varve@.service share/bash-completion/completions/varve \
  share/zsh/vendor-completions/_varve share/fish/vendor_completions.d/varve.fish; do
  [ -e "$chroot/usr/$file" ] || [ -L "$chroot/usr/$file" ] || { echo "not ok - no $file" && exit 1; }
done
ok "manual pages, mount helpers, units and completions are there"

mkdir "$chroot/tmp/examples"
cp "$root"/examples/*.cc "$chroot/tmp/examples"
inside sh -ec 'cd /tmp/examples
for name in backup browse; do
  g++ -std=c++20 -o $name $name.cc $(pkg-config --cflags --libs --static varve)
done
./backup repo laptop monday /etc
./browse repo laptop monday | grep hostname' >"$work/use.log" 2>&1 || { cat "$work/use.log" && exit 1; }
ok "libvarve-dev builds the examples, which store and browse"

# ---- Remove. ----

inside dpkg -r varve libvarve-dev >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log" && exit 1; }
! inside sh -c 'command -v varve' >/dev/null
inside dpkg -P varve libvarve-dev >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log" && exit 1; }
list | diff "$work/before.txt" - || { echo "not ok - files are left or missing" && exit 1; }
! inside dpkg -s varve >/dev/null 2>&1
! inside dpkg -s libvarve-dev >/dev/null 2>&1
[ -d "$chroot/tmp/repo/series" ]
ok "dpkg -r and dpkg -P leave nothing but the repository"
