#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Varve refuses a catalog that crashes LMDB. Only a child process tries it, the kernel's log shows
# no crash, and Varve says that a child process tried it.
. "$(dirname "$0")/lib.sh"

! under_sanitizer || skip "the sanitizer handles the signals"
dmesg >"$work/dmesg" 2>/dev/null || skip "the kernel's log cannot be read"
mkdir "$work/tree"
for i in $(seq 200); do echo "$i" >"$work/tree/$i"; done
"$VARVE" -q init "$repo"
for version in 1 2 3; do "$VARVE" -q store "$repo" s/$version "$work/tree"; done
data=$repo/catalog/data.mdb
# With this flag, LMDB expects several values per entry, but has no cursor for them.
python3 - "$data" <<'PYTHON'
import struct, sys
image = bytearray(open(sys.argv[1], "rb").read())
for at in range(2 * 4096, len(image), 4096):
    flags, lower = struct.unpack_from("<HH", image, at + 10)
    for slot in range((lower - 16) // 2 if flags == 2 else 0):
        node = at + struct.unpack_from("<H", image, at + 16 + 2 * slot)[0]
        if node + 8 <= len(image) and struct.unpack_from("<H", image, node + 4)[0] == 0:
            struct.pack_into("<H", image, node + 4, 4)
open(sys.argv[1], "wb").write(image)
PYTHON

# The kernel names the program that crashes. Another test's programs have another name.
cp "$VARVE" "$work/quiet-$$"
crashes() { dmesg | grep -c "quiet-$$.*segfault" || true; }
before=$(crashes)
expect_status 1 "$work/quiet-$$" ls "$repo"
message_says "data.mdb is damaged.*varve repair"
[ "$(crashes)" -eq "$before" ] || fail "the kernel's log tells of a crash: $(dmesg | tail -1)"
message_says "a child process that tried"
ok "a catalog that LMDB crashes on is refused without a crash in the kernel's log"
