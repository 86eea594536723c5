#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the library to a private folder and builds the examples against it, with the flags that
# pkg-config gives and nothing else. Then the examples back a tree up twice and read it again.
set -Eeuo pipefail
: "${VARVE_BUILD:?is the build directory with the library}"
root=$(realpath "$(dirname "$0")/../..")
export LC_ALL=C.UTF-8
trap 'echo "not ok - line $LINENO of $0: $BASH_COMMAND"' ERR
ok() { echo "ok - $*"; }

work=$(mktemp -d "${VARVE_TEST_TMP:-/var/tmp}/varve-install.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

# ---- Install and build. ----

exec 9>"$VARVE_BUILD/meson-private/install-test.lock"
flock 9  # uninstall.sh installs from this build directory, too.
meson install -C "$VARVE_BUILD" --no-rebuild --tags devel --destdir "$work/installed" >install.log
exec 9>&-
pc=$(find installed -name varve.pc)
export PKG_CONFIG_SYSROOT_DIR=$work/installed PKG_CONFIG_PATH=$work/${pc%/*}
headers=$(cd "$root/include" && ls varve/*.h)
installed=$(cd installed && find . -name '*.h' -printf 'varve/%f\n' | sort)
[ "$installed" = "$headers" ]
ok "every public header is installed, and no other"

read -ra compile <<<"${CXX:-g++}"
compile+=(-std=c++20 -Wall -Wextra -Wpedantic -Werror)
include=$(find "$work/installed" -path '*/varve/repository.h')
include=${include%/varve/*}
for header in $headers; do echo "#include <$header>" >"only_$(basename "$header" .h).cc"; done
"${compile[@]}" -fsyntax-only -I"$include" only_*.cc
ok "each header compiles by itself"

private='/(fmt|nlohmann|CLI|openssl|isa-l|fuse3|curl)/|/(argon2|expat|lmdb|zstd|xxhash|archive|archive_entry)\.h'
"${compile[@]}" -M -I"$include" only_*.cc >included.txt
grep -q '/varve/repository\.h' included.txt
! grep -E "$private" included.txt || exit 1
ok "no header of another library is needed to compile"

read -ra flags <<<"$(pkg-config --cflags --libs --static varve)"
for example in backup browse; do
  "${compile[@]}" -o "$example" "$root/examples/$example.cc" "${flags[@]}"
done
ok "the examples build with the flags of varve.pc alone"

# ---- Use. ----

mkdir -p tree/folder
seq 100000 >tree/folder/numbers
head -c 3000000 /dev/urandom >tree/random
printf 'first\n' >tree/note
ln -s note tree/link
cp -a tree first
./backup repo laptop monday tree >monday.txt
grep -q '^laptop/monday: 5 entries, ' monday.txt

printf 'second\n' >tree/note
printf 'x' | dd of=tree/random bs=1 seek=1500000 conv=notrunc status=none
touch tree/added
./backup repo laptop tuesday tree >tuesday.txt
grep -q '^laptop/tuesday: 6 entries, ' tuesday.txt
new=$(sed -n 's/.* \([0-9]*\) of them new$/\1/p' tuesday.txt)
[ "$new" -gt 0 ] && [ "$new" -lt 300000 ]
ok "the second backup stores only what changed ($new bytes)"

[ "$(./browse repo | tr '\n' ' ')" = 'laptop/monday laptop/tuesday ' ]
[ "$(./browse repo laptop monday | awk '{ print $2 }' | tr '\n' ' ')" = 'folder link note random ' ]
./browse repo laptop latest folder | grep -q ' 588895 numbers$'
ok "series, versions and directories are listed"

for file in folder/numbers random note; do
  ./browse repo laptop monday "$file" | cmp - "first/$file"
  ./browse repo laptop tuesday "/$file" | cmp - "tree/$file"
done
ok "every version gives back its own bytes"

# ---- Errors. ----

fails() {  # STATUS TEXT COMMAND...: the command ends with the status, and the text on stderr
  local wanted=$1 text=$2 status=0
  shift 2
  "$@" >out.txt 2>err.txt || status=$?
  if [ "$status" -ne "$wanted" ] || ! grep -qF -- "$text" err.txt || [ -s out.txt ]; then
    echo "not ok - $* ended with $status, not $wanted with \"$text\":"
    cat out.txt err.txt
    exit 1
  fi
}
fails 1 'browse: folder/missing: no such name' ./browse repo laptop monday folder/missing
fails 1 'browse: note/below: not a directory' ./browse repo laptop monday note/below
fails 1 'browse: no such series' ./browse repo desktop monday
fails 1 'browse: no such version' ./browse repo laptop sunday
fails 1 'is not a Varve repository' ./browse tree
fails 1 'backup: a version of this name exists already' ./backup repo laptop monday tree
fails 1 'No such file or directory' ./backup repo laptop wednesday missing
fails 1 'store a directory outside it' ./backup repo laptop wednesday repo/series
fails 2 'usage: backup' ./backup repo
fails 2 'usage: browse' ./browse repo laptop
[ "$(./browse repo | wc -l)" -eq 2 ]
ok "mistakes get a message and a status other than 0, and store nothing"

status=0
./browse repo laptop monday random >/dev/full 2>err.txt || status=$?
[ "$status" -eq 1 ] && grep -q '^browse: cannot write' err.txt
ok "a full standard output is an error"
