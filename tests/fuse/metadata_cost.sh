#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A version in which 1 % of the files changed costs about 1 % of the first one's metadata, and
# examining all entries of a directory takes one request for some tens of them, not one for each.
limit_s=100
. "$(dirname "$0")/lib.sh"

# Names, sizes and times vary like real ones, because equal ones cost almost nothing.
python3 - "$work/tree" <<'PYTHON'
import os, random, sys
rng = random.Random(12)
for folder in range(200):
    top = f"{sys.argv[1]}/{folder // 20:02}/{folder:03}"
    os.makedirs(top)
    for n in range(100):
        path = f"{top}/{rng.randbytes(rng.randrange(3, 14)).hex()}.{n}"
        with open(path, "wb") as file:
            file.write(rng.randbytes(rng.randrange(1, 400)))
        os.utime(path, ns=(0, rng.randrange(10**18, 2 * 10**18)))
PYTHON

used() { python3 "$here/lmdb_pages.py" "$repo/catalog/data.mdb"; }

"$VARVE" init "$repo"
empty=$(used)
"$VARVE" store "$repo" s/one "$work/tree"
one=$(used)
find "$work/tree" -path '*/05/105/*' -o -path '*/02/050/*' | while read -r file; do
  echo changed >>"$file"
done
"$VARVE" store "$repo" s/two "$work/tree"
two=$(used)
"$VARVE" store "$repo" s/three "$work/tree"
three=$(used)
find "$work/tree" -type f | sort | awk 'NR % 100 == 50' | while read -r file; do
  echo changed >>"$file"
done
"$VARVE" store "$repo" s/four "$work/tree"
four=$(used)

first=$((one - empty))
per_mille() { echo "$(($1 * 1000 / first))"; }
echo "catalog: the first version $first bytes for 20,210 entries"
echo "1 % of the files changed, in two directories: $((two - one)) bytes," \
  "$(per_mille $((two - one))) per mille"
echo "nothing changed: $((three - two)) bytes, $(per_mille $((three - two))) per mille"
echo "1 % of the files changed, one in every directory: $((four - three)) bytes," \
  "$(per_mille $((four - three))) per mille"
[ "$(per_mille $((two - one)))" -le 50 ] || fail "a changed percent costs too much"
ok "1 % changed files cost $(per_mille $((two - one))) per mille (at most 50)"
[ "$(per_mille $((three - two)))" -le 10 ] || fail "an unchanged version costs too much"
ok "an unchanged version costs $(per_mille $((three - two))) per mille (at most 10)"
stored=$(stat_of "$repo" chunk_bytes)
echo "unique bytes of the files: $stored; catalog: $four bytes in use"
"$VARVE" check "$repo"

mkdir "$work/wide"
(cd "$work/wide" && seq 2000 | xargs touch)
"$VARVE" store "$repo" wide/one "$work/wide"
mount_as_job -d -o ro
[ "$(find "$mnt/wide/one" -type f -size 0 | wc -l)" -eq 2000 ] || fail "not all is listed"
unmount_repo
wait "$daemon"
looked_up=$(grep -c 'opcode: LOOKUP' "$work/daemon.log") || true
listed=$(grep -c 'opcode: READDIRPLUS' "$work/daemon.log") || true
[ "$listed" -gt 0 ] || fail "the daemon's log does not name its requests"
[ "$looked_up" -le 10 ] || fail "$looked_up names were looked up that were listed"
ok "2,000 entries were looked at with $listed requests to list them, and $looked_up for names"
