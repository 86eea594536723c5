#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Parity repairs damage without any copy: flipped bytes, a zeroed container, headers, a lost file.
# It does so after deletions and arranging, with and without a mount, after kills, and on a full
# disk.
limit_s=300
. "$(dirname "$0")/lib.sh"
: "${VARVE_FAULTY_DISK:?is the path of the library made from faulty_disk.cc}"

damage() { python3 "$here/parity.py" "$@"; }

data_bytes() {
  find "$repo/series" -type f -not -name '*.par' -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }'
}

summary_of() {  # KEY: prints a value of a quick check
  "$VARVE" check --quick --json "$repo" | tail -1 | python3 -c '
import json, sys
print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

all_protected() { [ "$(summary_of parity_files_protected)" -eq "$(summary_of parity_files)" ]; }

# Checks that repair restores everything damaged and has nothing else to do.
repaired() {  # WHAT…
  expect_status 1 "$VARVE" check --read-data "$repo"
  expect_status 3 "$VARVE" repair -n "$repo"
  grep -q '^parity: ' "$work/stdout" || fail "$*: parity is not in the plan: $(cat "$work/stdout")"
  expect_status 0 "$VARVE" repair --yes "$repo"
  grep -q 'restored from parity' "$work/stdout" || fail "$*: $(cat "$work/stdout")"
  "$VARVE" -q check --read-data "$repo"
  ok "$*"
}

mkdir -p "$work/versions/one"
python3 - "$work/versions/one" <<'PYTHON'
import random, sys
rng = random.Random(8)
for n in range(26):
    with open(f"{sys.argv[1]}/file-{n:02}", "wb") as file:
        file.write(rng.randbytes(1_000_000))
PYTHON
next_version() {  # OLD NEW SEED: changes three files
  cp -a "$work/versions/$1" "$work/versions/$2"
  python3 - "$work/versions/$2" "$3" <<'PYTHON'
import random, sys
rng = random.Random(int(sys.argv[2]))
for n in range(3):
    with open(f"{sys.argv[1]}/file-{rng.randrange(26):02}", "wb") as file:
        file.write(rng.randbytes(1_000_000))
PYTHON
}
next_version one two 2
next_version two three 3
next_version three four 4

"$VARVE" init --parity=20 --compression none "$repo"
"$VARVE" -q arrange --window 2 "$repo" # Creates volumes after a few versions.
for name in one two three four; do "$VARVE" -q store "$repo" "s/$name" "$work/versions/$name"; done
"$VARVE" check --read-data "$repo" | tee "$work/check"
grep -q '^parity of 20 %' "$work/check" || fail "check does not tell of parity"
all_protected || fail "not all files are protected"
parity=$(stat_of "$repo" parity_bytes)
stored=$(stat_of "$repo" container_bytes)
python3 -c "assert 0.2 <= $parity / $stored < 0.22, $parity / $stored"
[ "$(stat_of "$repo" parity_percent)" -eq 20 ]
ok "parity of 20 % of four versions takes $parity bytes beside $stored"

# ---- Restorable damage ----

mapfile -t found < <(damage containers "$repo/series")
read -r length at file <<<"${found[0]}"
[ "$length" -gt 4000000 ] || fail "the longest container has $length bytes only"
damage zero "$file" "$at" "$length"
repaired "a container of $length bytes that was zeroed"
for line in "${found[@]:1}"; do
  read -r length at file <<<"$line"
  damage flip "$file" "$at"
  damage flip "$file" $((at + 40))
  damage flip "$file" $((at + length / 2))
done
repaired "flipped bytes in $((${#found[@]} - 1)) containers and their heads"
restored_is_stored one two three four
rm "$(find "$repo/series" -name '*.seg' -printf '%s %p\n' | sort -n | head -1 | cut -d' ' -f2)"
repaired "a segment that was removed"
read -r length at file <<<"${found[0]}"
truncate -s $((at + length - 100000)) "$file"
repaired "a segment that was cut short"
restored_is_stored one two three four
rm -rf "$repo/catalog"
damage flip "$file" "$at"
damage flip "$file" $((at + 40))
expect_status 0 "$VARVE" repair --yes --catalog-only "$repo"
grep -q '^parity: ' "$work/stdout" || fail "parity is not in the plan: $(cat "$work/stdout")"
"$VARVE" -q check --read-data "$repo"
restored_is_stored one two three four
ok "a head that was damaged when the catalog was lost"

# ---- Deletions and arranging ----

before=$(data_bytes)
forecast=$("$VARVE" rm -n --json "$repo" s/one | python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
print(*[line["freed_bytes"] for line in lines if line["message_type"] == "deletion"])')
"$VARVE" -q rm --no-arrange "$repo" s/one
[ $((before - $(data_bytes))) -eq "$forecast" ] || fail "the forecast was $forecast"
"$VARVE" -q arrange "$repo"
all_protected || fail "not all files are protected after a deletion"
next_version four five 5
mount_repo
cp -a "$work/versions/five" "$mnt/s/five.partial"
mv -T "$mnt/s/five.partial" "$mnt/s/five"
wait_until "the daemon protects what is new" all_protected
unmount_repo
mapfile -t found < <(damage containers "$repo/series")
for line in "${found[0]}" "${found[2]}" "${found[-1]}"; do
  read -r length at file <<<"$line"
  damage zero "$file" $((at + length / 3)) $((length / 4 + 1))
done
repaired "damage after a deletion, arranging and a seal in the mount"
restored_is_stored two three four five

# ---- Damage to parity, and too much damage ----

group=$(find "$repo/series" -name '*.par' | sort | head -1)
damage flip "$group" $(($(stat -c %s "$group") / 2))
expect_status 1 "$VARVE" check --read-data "$repo"
grep -q "${group##*/}" "$work/stdout" || fail "check does not name the parity file"
"$VARVE" check --quick "$repo"
expect_status 0 "$VARVE" repair --yes "$repo"
[ ! -e "$group" ] || fail "the damaged parity file is still there"
all_protected && fail "what has lost its parity counts as protected"
"$VARVE" -q arrange "$repo"
all_protected || fail "parity was not made again"
"$VARVE" -q check --read-data "$repo"
ok "a damaged parity file is named, removed and made again"

cp -a "$repo" "$work/kept"
read -r length at file <<<"${found[0]}"
sha256sum "$repo"/series/*/active/*.seg | grep -v "${file##*/}" >"$work/others"
damage zero "$file" "$at" "$length"
read -r length at file <<<"${found[1]}"
damage zero "$file" "$at" "$length"
grep -v "${file##*/}" "$work/others" >"$work/untouched"
expect_status 3 "$VARVE" repair --yes "$repo"
grep -q 'quarantine' "$work/stdout" || fail "what is lost is not told: $(cat "$work/stdout")"
sha256sum --quiet -c "$work/untouched" || fail "sound files were changed"
rm -rf "$repo"
mv "$work/kept" "$repo"
ok "damage beyond the parity is told, and changes nothing else"

# ---- Killed while parity is made ----

share() {  # PERCENT KILLED_AT: writes all parity again
  touch "$work/armed"
  env LD_PRELOAD="$VARVE_FAULTY_DISK" DISK_BELOW="$repo" DISK_KILLS_AT="$2" \
    DISK_KILLS_ONCE="$work/armed" DISK_CALLS_IN="$work/calls" \
    ASAN_OPTIONS=verify_asan_link_order=0 "$VARVE" -q arrange --parity="$1" "$repo"
}
share 10 0
calls=$(stat -c %s "$work/calls")
rounds=${VARVE_TEST_ROUNDS:-6}
killed=0
for ((round = 1; round <= rounds; round++)); do
  { share $((round % 2 + 11)) $((calls * round / (rounds + 1) + 1)); } 2>/dev/null ||
    killed=$((killed + 1))
  rm -f "$work/armed"
  "$VARVE" -q check "$repo"
done
[ $killed -gt $((rounds / 2)) ] || fail "only $killed of $rounds were killed at one of $calls calls"
"$VARVE" -q arrange --parity=19 "$repo"
all_protected || fail "not all files are protected after kills"
[ -z "$(find "$repo/series" -name '*.par.tmp')" ] || fail "an unfinished file is still there"
[ "$(find "$repo/series" -name '*.par' | wc -l)" -eq 2 ] || fail "groups that nothing needs are there"
mapfile -t found < <(damage containers "$repo/series")
read -r length at file <<<"${found[0]}"
damage zero "$file" "$at" $((length / 2))
repaired "parity that was made after $killed kills"
"$VARVE" -q arrange --parity=0 "$repo"
[ -z "$(find "$repo/series" -name '*.par')" ] || fail "parity is there that nobody wants"
ok "parity can be turned off"

# ---- A full disk ----

mkdir "$work/small"
mount -t tmpfs -o size=96m none "$work/small"
repo=$work/small/repo
"$VARVE" init --compression none "$repo"
"$VARVE" -q store "$repo" s/one "$work/versions/one"
head -c 40M /dev/zero >"$work/small/filler"
expect_status 0 "$VARVE" arrange --parity=10 "$repo"
message_says 'too full for parity'
[ "$(summary_of parity_files_protected)" -eq 0 ]
"$VARVE" -q check --read-data "$repo"
rm "$work/small/filler"
"$VARVE" -q arrange "$repo"
all_protected || fail "not made when there was room"
umount "$work/small"
ok "a full disk gets no parity, and is told of; later it does"
