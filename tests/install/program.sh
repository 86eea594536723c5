#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The built program: the hardening that Debian gives its own packages, and few libraries to load.
#   VARVE=FILE          the program
#   VARVE_HARDENED=no|most|all  no: the flags are the packager's; most: all but _FORTIFY_SOURCE, which needs the optimizer
set -Eeuo pipefail
: "${VARVE:?is the path of the varve program to test}" "${VARVE_HARDENED:?is no, most or all}"
export LC_ALL=C.UTF-8
trap 'echo "not ok - line $LINENO of $0: $BASH_COMMAND"' ERR
ok() { echo "ok - $*"; }

# Each command loads all of them: those that few commands use are loaded by dlopen().
libraries=$(ldd "$VARVE" | wc -l)
[ "$libraries" -le 20 ] || { ldd "$VARVE" && exit 1; }
for name in libarchive liblzma libcurl libClp libIPSec_MB; do
  ! readelf -d "$VARVE" | grep -q "NEEDED.*$name" || exit 1
done
ok "a command loads $libraries libraries, 20 at most"

[ "$VARVE_HARDENED" != no ] || exit 0
readelf -hW "$VARVE" | grep -q 'Type: *DYN'
readelf -lW "$VARVE" | grep -q GNU_RELRO
readelf -dW "$VARVE" | grep -q 'FLAGS.*NOW'
! readelf -lW "$VARVE" | grep GNU_STACK | grep -q E || exit 1
ok "the program's place in memory is random, its tables are read-only, and its stack has no code"

symbols=$(readelf --dyn-syms -W "$VARVE")
grep -q __stack_chk_fail <<<"$symbols"
if [ "$VARVE_HARDENED" = all ]; then grep -q '__memcpy_chk' <<<"$symbols"; fi
ok "functions check their stack and the sizes of buffers"

if [ "$(uname -m)" = x86_64 ]; then
  [ "$(objdump -d "$VARVE" --no-show-raw-insn | grep -c endbr64)" -gt 1000 ]
  ok "indirect calls have marked targets"
fi
