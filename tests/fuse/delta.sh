#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The setting `delta`: old versions take less space, and read as before, from a mount, by restore, by the rescue
# readers, after deletions, kills, damage, and a lost catalog.
limit_s=300
. "$(dirname "$0")/lib.sh"

versions=22
python3 "$here/alike_versions.py" "$work/versions" $versions
mapfile -t names < <(ls "$work/versions")

volume_bytes() { find "$1/series" -name '*.vol' -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }'; }
active_bytes() { find "$1/series" -name '*.seg' -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }'; }
store_all() { for name in "${names[@]}"; do "$VARVE" -q store "$repo" "s/$name" "$work/versions/$name"; done; }
deletion() {  # OPTION VERSION…: prints the freed and the dead bytes
  "$VARVE" rm --json "$1" "$repo" "${@:2}" | python3 -c '
import json, sys
print(*[(r["freed_bytes"], r["dead_bytes"]) for r in map(json.loads, sys.stdin) if r["message_type"] == "deletion"])'
}

for kind in lineage encrypted; do
  arguments_of $kind
  repo=$work/$kind-off
  "$VARVE" -q init "${arguments[@]}" --compression zstd:3 "$repo"
  store_all
  off=$(volume_bytes "$repo") off_active=$(active_bytes "$repo")
  repo=$work/$kind
  "$VARVE" -q init "${arguments[@]}" --compression zstd:3 "$repo"
  ! grep -q '^features_required.*delta' "$repo/varve.repo" || fail "the feature is named before it is needed"
  "$VARVE" -q config "$repo" delta=on parity=20
  grep -q '^features_required.*delta' "$repo/varve.repo" || fail "the superblock does not name the feature"
  [ "$("$VARVE" config --json "$repo" | python3 -c 'import json, sys; print(json.load(sys.stdin)["delta"])')" = 1 ] ||
    fail "config does not tell the setting"
  store_all
  on=$(volume_bytes "$repo")
  "$VARVE" stats --delta --json "$repo" | python3 -c '
import json, sys
told = json.load(sys.stdin)
off, on = map(int, sys.argv[1:])
assert told["message_type"] == "delta" and told["volume_bytes"] == on and told["frames"] > 0, told
assert told["containers_left_out"] == 0, told
# The estimate, against the volumes of the repository without the setting.
assert abs(told["estimated_saved_bytes"] - (off - on)) <= 0.2 * (off - on), (told, off, on)
' "$off" "$on"
  "$VARVE" stats --delta "$repo" | grep -q "SAVED, ABOUT" || fail "no table of what delta saves"
  ok "$kind: stats --delta tells what the setting saves"
  [ $((on * 100)) -le $((off * 62)) ] || fail "$kind: the volumes have $on bytes, $off without the setting"
  [ "$(active_bytes "$repo")" = "$off_active" ] || fail "$kind: the newest version is stored in another way"
  "$VARVE" -q check --read-data "$repo"
  restored_is_stored 00 01 04 07 08 11 15 19 21
  ok "$kind: volumes of $on bytes in place of $off, and each version restores"

  mount_repo -o ro
  for name in 00 05 09 13 21; do no_rsync_difference "$work/versions/$name/" "$mnt/s/$name/"; done
  python3 - "$mnt/s/03" "$work/versions/03" <<'PYTHON'
import os, random, sys
rng = random.Random(3)
for _ in range(400):
    name = rng.choice(["dump.sql", "pages", "src/07.c"])
    size = os.path.getsize(f"{sys.argv[2]}/{name}")
    at, count = rng.randrange(size), rng.choice([1, 100, 4096, 70000])
    got, want = (os.pread(os.open(f"{tree}/{name}", os.O_RDONLY), count, at) for tree in sys.argv[1:])
    assert got == want, (name, at, count)
PYTHON
  unmount_repo
  ok "$kind: a mount reads files of old versions, whole and at any place"

  reader=(varve-read.py)
  [ $kind = lineage ] || reader=(varve-read-encrypted.py --key-file "$work/key")
  for name in 00 10; do
    mkdir "$work/rescued"
    python3 "$here/../../rescue/${reader[0]}" "${reader[@]:1}" "$repo" restore "s/$name" "$work/rescued"
    diff -r "$work/versions/$name" "$work/rescued"
    rm -rf "$work/rescued"
  done
  ok "$kind: the rescue reader restores old versions"

  # In the frames of the largest volume, of which many have prefixes. For a damaged header, a repair first tries all
  # values of each byte of the header, which takes 13 s; other tests damage headers.
  read -r size volume < <(find "$repo/series" -name '*.vol' -printf '%s %p\n' | sort -n | tail -1)
  cp "$volume" "$work/volume"
  for at in $((size / 2)) $((size / 2 + 6000)); do
    printf '\377\000\125' | dd of="$volume" bs=1 seek=$at conv=notrunc status=none
  done
  expect_status 1 "$VARVE" check --read-data "$repo"
  for name in "${names[@]}"; do
    rm -rf "$work/restored"
    "$VARVE" -q restore "$repo" "s/$name" "$work/restored" 2>"$work/stderr" && continue
    python3 - "$work/versions/$name" "$work/restored" <<'PYTHON'
import os, sys
for root, _, files in os.walk(sys.argv[1]):
    for name in files:
        path = os.path.join(root, name)
        other = path.replace(sys.argv[1], sys.argv[2], 1)
        if not os.path.exists(other): continue
        a, b = open(path, "rb").read(), open(other, "rb").read()
        wrong = [i for i in range(min(len(a), len(b))) if a[i] != b[i] and b[i] != 0]
        assert not wrong, f"{path} has wrong bytes at {wrong[:3]}"
PYTHON
  done
  rm -rf "$work/restored"
  expect_status 0 "$VARVE" repair --yes "$repo"
  cmp "$work/volume" "$volume" || fail "parity did not restore the volume"
  "$VARVE" -q check --read-data "$repo"
  ok "$kind: damage gives no wrong byte, and parity repairs it"

  rm -rf "$repo/catalog"
  expect_status 0 "$VARVE" repair --yes "$repo"
  restored_is_stored 00 07 15 21
  ok "$kind: a lost catalog is made again"

  left=("${names[@]}")
  for gone in "03 04 11" "00 01 02 05" "20 21" "08 09 10 12 13 14"; do
    mapfile -t gone_names < <(tr ' ' '\n' <<<"$gone" | sed 's,^,s/,')
    forecast=$(deletion -n "${gone_names[@]}")
    freed=$(deletion --no-arrange "${gone_names[@]}")
    [ "$freed" = "$forecast" ] || fail "$kind: deleting $gone freed $freed, not $forecast"
    "$VARVE" -q arrange "$repo"
    "$VARVE" -q check --read-data "$repo"
    mapfile -t left < <(comm -23 <(printf '%s\n' "${left[@]}") <(tr ' ' '\n' <<<"$gone"))
    restored_is_stored "${left[0]}" "${left[${#left[@]} / 2]}" "${left[-1]}"
  done
  ok "$kind: deletions free what they say, and the versions left restore"
done

# Killed while volumes are compressed together.
arguments_of lineage
repo=$work/killed
"$VARVE" -q init --compression zstd:3 "$repo"
for name in "${names[@]}"; do "$VARVE" -q store --no-arrange "$repo" "s/$name" "$work/versions/$name"; done
"$VARVE" -q arrange "$repo"
"$VARVE" -q config "$repo" delta=1
for round in 1 2 3 4 5 6 7 8 9; do
  timeout -s KILL "0.0$((round * 7))" "$VARVE" -q arrange "$repo" || true
  "$VARVE" -q check --read-data "$repo"
done
"$VARVE" -q arrange "$repo"
"$VARVE" -q check --read-data "$repo"
restored_is_stored "${names[@]}"
"$VARVE" -q config "$repo" delta=off
"$VARVE" -q arrange "$repo"
restored_is_stored 00 11
ok "kills leave each version whole, and what is there stays readable without the setting"
