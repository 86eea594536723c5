#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the static program where nothing else is: a chroot without any library or program, and with
# only what a kernel gives, /proc and /dev/fuse. It lists, checks, repairs, restores, stores and
# mounts. Building it takes minutes, so this is in a suite of its own:
# `./scripts/test --suite install-slow`.
#   VARVE_STATIC=FILE   takes the program that `scripts/static` built
set -Eeuo pipefail
root=$(realpath "$(dirname "$0")/../..")
export LC_ALL=C.UTF-8
trap 'echo "not ok - line $LINENO of $0: $BASH_COMMAND"' ERR
ok() { echo "ok - $*"; }
skip() { echo "skipped: $*" && exit 77; }

[ "$(id -u)" -eq 0 ] || skip "needs root (chroot)"
if [ -z "${VARVE_STATIC:-}" ]; then
  pkg-config --exists nettle liblzma && [ -e /usr/include/bzlib.h ] ||
    skip "needs nettle-dev, liblzma-dev and libbz2-dev"
fi
program=$(realpath "${VARVE_STATIC:-$(cd "$root" && ./scripts/static)}")
work=$(mktemp -d "${VARVE_TEST_TMP:-/var/tmp}/varve-static.XXXXXX")
empty=$work/empty
cleanup() {
  umount -l "$empty/mnt" 2>/dev/null || true
  umount "$empty/dev/fuse" "$empty/proc" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT
mkdir -p "$empty/tmp" "$empty/dev" "$empty/mnt" "$empty/proc"
mount -t proc proc "$empty/proc"
cp "$program" "$empty/varve"
inside() { chroot "$empty" /varve "$@"; }
same() { diff -r --no-dereference "$1" "$2"; }

! readelf -d "$program" 2>/dev/null | grep -q NEEDED
inside --version >/dev/null
ok "the program needs no library and no other file: $(stat -c %s "$program") bytes"

# ---- Store, list, check, restore. ----

mkdir "$work/tree"
cp -a /usr/include/linux "$work/tree/linux"
head -c 5000000 /dev/urandom >"$work/tree/random"
setfattr -n user.note -v kept "$work/tree/random"
cp -a "$work/tree" "$empty/tree"
inside -q init --compression zstd:3 /repo >/dev/null
inside -q store /repo s/one /tree >"$work/out"
printf 'changed' | dd of="$empty/tree/random" bs=1 seek=2000000 conv=notrunc status=none
inside -q store /repo s/two /tree >"$work/out"
inside ls /repo s/one >"$work/list"
[ "$(cat "$work/list")" = $'linux\nrandom' ]
inside -q check --read-data /repo >/dev/null
inside -q restore /repo s/one /out
same "$work/tree" "$empty/out"
[ "$(getfattr --only-values --absolute-names -n user.note "$empty/out/random")" = kept ]
mkdir "$empty/untarred"
inside -q restore --to-tar - /repo s/two | tar -xf - -C "$empty/untarred"
same "$empty/tree" "$empty/untarred"
tar -cf "$empty/archive.tar" -C "$work/tree" .
inside -q store --from-tar /archive.tar /repo s/three >"$work/out"
inside -q restore /repo s/three /out3
same "$work/tree" "$empty/out3"
ok "in an empty folder it stores, lists, checks and restores directories and archives"

# ---- Repositories of the other programs, with parity and without a catalog. ----

for archive in "$root"/tests/golden/repository-*.tar.gz; do
  mkdir "$empty/golden"
  tar -xzf "$archive" -C "$empty/golden"
  inside -q repair --yes /golden >/dev/null
  for version in s/v1 s/v3 t/w; do
    inside -q restore /golden "$version" "/golden-${version//\//-}"
  done
  rm -rf "$empty"/golden*
done
inside -q arrange --parity=10 /repo
segment=$(find "$empty/repo/series" -name '*.seg' -size +1000k | head -n 1)
dd if=/dev/urandom of="$segment" bs=16384 seek=20 count=3 conv=notrunc status=none
! inside -q check --read-data /repo >/dev/null 2>&1
inside -q repair --yes /repo >/dev/null
inside -q check --read-data /repo >/dev/null
rm -rf "$empty/out"
inside -q restore /repo s/one /out
same "$work/tree" "$empty/out"
ok "it rebuilds catalogs, and restores damaged blocks from parity"

# ---- Mount. ----

if [ -c /dev/fuse ]; then
  touch "$empty/dev/fuse"
  mount --bind /dev/fuse "$empty/dev/fuse"
  inside mount -f /repo /mnt 2>"$work/daemon.log" &
  daemon=$!
  for _ in $(seq 200); do
    mountpoint -q "$empty/mnt" && break
    sleep 0.05
  done
  same "$work/tree" "$empty/mnt/s/one"
  umount "$empty/mnt"
  wait "$daemon"
  ok "it mounts"
fi
