#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The work that seals and deletions leave is arranged: by the command itself without a mount, or by
# the daemon after the next mount. A partial backup does not make the next one more expensive.
limit_s=200
. "$(dirname "$0")/lib.sh"

departing() { stat_of "$repo" departing_bytes; }
nothing_departs() { [ "$(departing)" -eq 0 ]; }

add_state() { # N: makes the next state of the tree and keeps a copy of it
  "$here/retention_tree.py" "$work/tree" "$1"
  cp -a "$work/tree" "$work/versions/v$1"
}

all_there() {  # NAME…
  restored_is_stored "$@"
  "$VARVE" -q check "$repo"
}

mkdir "$work/versions"
"$VARVE" init "$repo"
"$VARVE" -q arrange --window 2 "$repo" # Lets chunks depart after a few versions.
for n in 1 2 3 4; do
  add_state $n
  "$VARVE" -q store --no-arrange "$repo" "s/v$n" "$work/tree"
done
[ "$(departing)" -gt 100000 ] || fail "only $(departing) bytes depart"
[ "$(stat_of "$repo" volume_bytes)" -eq 0 ] || fail "it was arranged all the same"
ok "store --no-arrange leaves arranging to others"

add_state 5
"$VARVE" -q store "$repo" s/v5 "$work/tree"
nothing_departs || fail "$(departing) bytes were left"
[ "$(stat_of "$repo" volume_bytes)" -gt 100000 ] || fail "nothing was archived"
all_there v1 v2 v3 v4 v5
ok "store arranges all that is owed, and every version is as it was"

add_state 6
"$VARVE" -q store --keep-open "$repo" s/v6 "$work/tree"
"$VARVE" -q seal --no-arrange "$repo" s/v6 >/dev/null
[ "$(departing)" -gt 0 ] || fail "seal --no-arrange arranged"
add_state 7
"$VARVE" -q store --keep-open "$repo" s/v7 "$work/tree"
"$VARVE" -q seal "$repo" s/v7 >/dev/null
nothing_departs || fail "$(departing) bytes were left by seal"
ok "seal does too"

add_state 8
"$VARVE" -q store --no-arrange "$repo" s/v8 "$work/tree"
left=$(departing)
[ "$left" -gt 0 ] || fail "nothing departs"
"$VARVE" rm --no-arrange "$repo" s/v3 >/dev/null
[ "$(departing)" -gt 0 ] || fail "rm --no-arrange arranged"
"$VARVE" rm "$repo" s/v2 >/dev/null
nothing_departs || fail "$(departing) bytes were left by rm"
add_state 9
"$VARVE" -q store --no-arrange "$repo" s/v9 "$work/tree"
[ "$(departing)" -gt 0 ] || fail "nothing departs"
"$VARVE" prune --keep-last 4 "$repo" s >/dev/null
nothing_departs || fail "$(departing) bytes were left by prune"
all_there v6 v7 v8 v9
ok "so do rm and prune, after the deletion"

# An interruption after the seal ends only the arranging.
for n in 10 11 12; do
  add_state $n
  : >"$work/out"
  "$VARVE" store "$repo" "s/v$n" "$work/tree" >"$work/out" 2>"$work/err" &
  job=$!
  wait_until "the seal is told" test -s "$work/out"
  kill -INT $job 2>/dev/null || true
  wait $job || fail "ended with $? after an interruption: $(cat "$work/err")"
done
all_there v9 v10 v11 v12
ok "an interruption after the seal puts the rest off"

add_state 13
"$VARVE" -q store --no-arrange "$repo" s/v13 "$work/tree"
[ "$(departing)" -gt 0 ] || fail "nothing departs"
mount_repo
wait_until "the daemon has arranged what was left" nothing_departs
unmount_repo
all_there v9 v10 v11 v12 v13
ok "a daemon goes on with what was left before it was mounted"

# full, full, a twentieth, full: the window line.
mount_repo
mkdir "$mnt/w"
python3 - "$work/full" <<'END'
import os, random, sys
source = random.Random(5)
os.mkdir(sys.argv[1])
for i in range(100):
    with open(f"{sys.argv[1]}/f{i:03}", "wb") as out:
        out.write(source.randbytes(200 * 1024))
END
store_full() {  # NAME
  cp -a "$work/full" "$mnt/w/$1.partial"
  mv -T "$mnt/w/$1.partial" "$mnt/w/$1"
  wait_until "arranged" nothing_departs
}
new_bytes() { "$VARVE" stat --json "$repo" "w/$1" | python3 -c '
import json, sys
print(json.load(sys.stdin)["new_bytes"])'; }
change() { # COUNT SEED: gives this many files other bytes of the same length
  python3 - "$work/full" "$1" "$2" <<'END'
import random, sys
source = random.Random(int(sys.argv[3]))
for i in source.sample(range(100), int(sys.argv[2])):
    with open(f"{sys.argv[1]}/f{i:03}", "wb") as out:
        out.write(source.randbytes(200 * 1024))
END
}
store_full full-1
change 3 21
store_full full-2
mkdir "$mnt/w/part.partial"
cp -a "$work/full/f01"[0-4] "$mnt/w/part.partial/"
mv -T "$mnt/w/part.partial" "$mnt/w/part"
wait_until "arranged" nothing_departs
"$VARVE" stat "$repo" w/part | grep -q '^kind *side' || fail "a twentieth is no side version"
mkdir "$mnt/w/empty"
"$VARVE" -q seal "$mnt/w/empty" >/dev/null
change 4 22
store_full full-3
[ "$(new_bytes part)" -eq 0 ] || fail "the partial version stored $(new_bytes part) bytes"
real=$((4 * 200 * 1024))
stored=$(new_bytes full-3)
[ $((stored * 100)) -le $((real * 105)) ] || fail "$stored bytes were stored for $real changed ones"
[ "$stored" -gt 0 ] || fail "nothing was stored"
diff -r "$work/full" "$mnt/w/full-3"
unmount_repo
"$VARVE" -q check --read-data "$repo"
ok "full, full, a twentieth, empty, full: $stored bytes stored for $real changed ones"
