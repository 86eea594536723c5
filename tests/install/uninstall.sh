#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs everything to a private folder and removes it again with `ninja uninstall`: nothing but
# the files of others may be left. Then makes a source archive and configures it.
set -Eeuo pipefail
: "${VARVE_BUILD:?is the build directory}"
root=$(realpath "$(dirname "$0")/../..")
export LC_ALL=C.UTF-8
trap 'echo "not ok - line $LINENO of $0: $BASH_COMMAND"' ERR
ok() { echo "ok - $*"; }

work=$(mktemp -d "${VARVE_TEST_TMP:-/var/tmp}/varve-uninstall.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
exec 9>"$VARVE_BUILD/meson-private/install-test.lock"
flock 9  # Meson keeps one list of installed files for each build directory.

# ---- Install and uninstall. ----

meson install -C "$VARVE_BUILD" --no-rebuild --destdir "$work/installed" >install.log
(cd installed && find . ! -type d | sort) >files.txt
for name in bin/varve bin/varve-rm sbin/mount.varve sbin/mount.fuse.varve system/varve@.service \
  system/varve-backup@.timer man1/varve.1 man8/mount.varve.8 libvarve.a pkgconfig/varve.pc \
  varve/browse.h completions/varve site-functions/_varve varve.fish rescue/varve-read.py rescue/varve-read-encrypted.py; do
  grep -qF "/$name" files.txt || { echo "not ok - $name is not installed" && exit 1; }
done
ok "$(wc -l <files.txt) files are installed"

bin=$(dirname "$(find installed -name varve -type f -path '*/bin/*')")
touch "$bin/other" installed/of-another-package
ninja -C "$VARVE_BUILD" uninstall >uninstall.log
(cd installed && find . ! -type d | sort) >left.txt
printf '%s\n' "./of-another-package" "${bin/installed/.}/other" | sort | cmp - left.txt ||
  { cat left.txt && exit 1; }
[ "$(find installed -type d -empty | wc -l)" -eq 0 ] || { find installed -type d -empty && exit 1; }
ok "ninja uninstall removes them and their folders, and nothing else"

# ---- The source archive. ----

if ! git -C "$root" rev-parse HEAD >/dev/null 2>&1; then
  echo "skipped: meson dist needs a git checkout"
  exit 77
fi
meson dist -C "$VARVE_BUILD" --no-tests --allow-dirty --formats gztar >dist.log 2>&1 ||
  { cat dist.log && exit 1; }
version=$(meson introspect "$VARVE_BUILD" --projectinfo |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["version"])')
archive=$VARVE_BUILD/meson-dist/varve-$version.tar.gz
(cd "$VARVE_BUILD/meson-dist" && sha256sum --quiet -c "${archive##*/}.sha256sum")
tar -xzf "$archive"
rm -f "$archive" "$archive.sha256sum"
git -C "$root" ls-tree -r --name-only HEAD | sort >tracked.txt
(cd "varve-$version" && find . ! -type d -printf '%P\n' | sort) | cmp - tracked.txt
meson setup -Dbuildtype=release -Dbenchmarks=false build "varve-$version" >setup.log 2>&1 ||
  { cat setup.log && exit 1; }
ninja -C build -n >ninja.log
ok "meson dist makes an archive of all tracked files, which configures by itself"

grep -qF "varve ($version) " "$root/debian/changelog"
ok "the Debian changelog begins with this version"
