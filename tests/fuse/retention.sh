#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Deleting, pruning, locking and arranging, with and without a mount. The freed bytes equal the
# forecast exactly, and the remaining versions do not change.
limit_s=400
. "$(dirname "$0")/lib.sh"

series_bytes() { find "$repo/series" -type f -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }'; }

# Prints FIELD of the deletion line of JSON on stdin.
of_deletion() {
  python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
print(*[line[sys.argv[1]] for line in lines if line["message_type"] == "deletion"])' "$1"
}

add_version() {  # N
  local name
  name=v$(printf %02d "$1")
  "$here/retention_tree.py" "$work/tree" "$1"
  cp -a "$work/tree" "$work/versions/$name"
  cp -a "$work/tree" "$mnt/s/$name.partial"
  mv -T "$mnt/s/$name.partial" "$mnt/s/$name"
}

present=()
without() {  # NAME…: removes them from the list of expected versions
  local name left=()
  for name in "${present[@]}"; do [[ " $* " == *" $name "* ]] || left+=("$name"); done
  present=("${left[@]}")
}

# Checks that exactly the expected versions exist, each with its stored content.
all_present() {
  local name want
  want=$(printf 's/%s\n' "${present[@]}")
  [ "$("$VARVE" ls "$repo" s)" = "$want" ] || fail "not the versions: $("$VARVE" ls "$repo" s)"
  for name in "${present[@]}"; do
    if mountpoint -q "$mnt"; then
      same_tree --ignore holes "$work/versions/$name" "$mnt/s/$name"
    else
      "$VARVE" -q restore "$repo" "s/$name" "$work/restored"
      same_tree --ignore holes "$work/versions/$name" "$work/restored"
      rm -rf "$work/restored"
    fi
  done
  "$VARVE" -q check "$repo"
}

# Deletes versions, and checks that the forecast, the command's report and the disk agree.
delete() {  # NAME…; sets freed
  local before forecast after
  before=$(series_bytes)
  forecast=$("$VARVE" rm -n --json "$repo" "${@/#/s/}" | of_deletion freed_bytes)
  [ "$(series_bytes)" -eq "$before" ] || fail "-n changed something"
  freed=$("$VARVE" rm --no-arrange --json "$repo" "${@/#/s/}" | of_deletion freed_bytes)
  after=$(series_bytes)
  [ "$forecast" -eq "$freed" ] || fail "$forecast bytes were forecast, $freed told of"
  [ "$freed" -eq $((before - after)) ] || fail "$freed bytes were told of, $((before - after)) came"
  without "$@"
  all_present
  ok "rm $*: $freed bytes came back, as forecast"
}

mkdir "$work/versions"
"$VARVE" init "$repo"
mount_repo -o noarrange
mkdir "$mnt/s"
for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
  add_version "$n"
  present+=("v$(printf %02d "$n")")
done
all_present
ok "12 versions of a tree that changes"

"$VARVE" du "$repo" s
alone=$("$VARVE" du --json "$repo" s/v06 | head -1 | python3 -c '
import json, sys
print(json.load(sys.stdin)["unique_bytes"])')
[ "$alone" -eq "$("$VARVE" rm -n --json "$mnt/s/v06" | of_deletion freed_bytes)" ] ||
  fail "du and the forecast disagree"
"$VARVE" stat "$mnt/s/v06" | grep -q '^state *sealed$' || fail "stat does not say sealed"
"$VARVE" stat "$mnt/s/latest" | grep -q '^state *sealed, latest$' || fail "stat knows no latest"
"$VARVE" diff "$repo" s/v06 s/v07 >"$work/diff"
LC_ALL=C sort >"$work/wanted" <<'END'
+ new_07
- new_04
M big
M changing
M third
m ./
m static/
m static/f2
END
LC_ALL=C sort "$work/diff" | diff "$work/wanted" - || fail "diff lists other names"
[ -z "$("$VARVE" diff --read-data "$mnt/s/v06" "$mnt/s/v06")" ] || fail "a version is not itself"
[ "$("$VARVE" diff "$repo" s/v06 s/v07 static | wc -l)" -eq 2 ] || fail "diff below a path"
"$VARVE" history --json "$repo" s/third | python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
want = ["new" if n == 1 else "changed" if n % 3 == 1 else "same" for n in range(1, 13)]
assert [line["change"] for line in lines] == want, lines'
[ "$("$VARVE" history "$mnt/s/v04/new_04" | wc -l)" -eq 4 ] || fail "history of a path in the mount"
ok "du, stat, diff and history tell what is there"

delete v01
"$VARVE" arrange --policy original --window 1 "$mnt/s"
all_present
ok "arranged by the daemon, and nothing changed"
delete v06
[ "$freed" -gt 300000 ] || fail "an archived version gave $freed bytes"
[ "$(readlink "$mnt/s/latest")" = v12 ]
delete v12
[ "$(readlink "$mnt/s/latest")" = v11 ]
[ ! -e "$mnt/s/v12" ] || fail "a deleted version is still there"
delete v03 v04 v09
(
  cd "$mnt/s/v02"
  "$VARVE" -q rm "$repo" s/v02
  ls . >/dev/null 2>&1 && fail "a deleted version is still listed"
  cat big >/dev/null 2>&1 && fail "a file of a deleted version is still read"
  true
)
without v02
all_present
ok "who stands in a deleted version is told that it is gone"

exec 8<"$mnt/s/v05/big"
expect_status 1 "$VARVE" rm "$repo" s/v05
message_says 'open'
exec 8<&-
expect_status 1 "$VARVE" rm "$repo" s/v05 s/none
message_says 'there is no version "s/none"'
"$VARVE" lock --for 2h "$mnt/s/v05"
expect_status 1 "$VARVE" lock --for 1h "$repo" s/v05
expect_status 1 "$VARVE" rm --force "$repo" s/v05
message_says 'locked'
all_present
ok "open files and locks refuse a deletion"
"$VARVE" clone "$repo" s/latest s/clone.partial
expect_status 1 "$VARVE" rm "$repo" s/v11
message_says 'clone.partial'
"$VARVE" stat "$repo" s/v11 | grep -q '^base of *s/clone.partial$' || fail "stat names no clone"
rm -rf "$mnt/s/clone.partial"
[ ! -e "$mnt/s/clone.partial" ] || fail "the clone is still there"
"$VARVE" open "$repo" s/next
for place in "$repo s/next" "$mnt/s/next"; do
  # shellcheck disable=SC2086 # Two words.
  expect_status 1 "$VARVE" lock --for 2h $place
  message_says 'is open: seal it first'
done
rmdir "$mnt/s/next"
ok "an open version cannot be locked, and lock says why"
all_present
ok "a version that a clone is based on is kept"

expect_status 2 "$VARVE" prune "$repo"
message_says 'no rule'
unmount_repo
"$VARVE" arrange "$repo"
all_present
"$VARVE" stats --categories "$repo"
ok "arranged without a mount, and nothing changed"
delete v08
before=$(series_bytes)
"$VARVE" prune -n --keep-last 2 "$repo" s | tee "$work/forecast"
grep -q '^keep .*s/v05 .*locked' "$work/forecast" || fail "prune does not tell of the lock"
grep -q '^would delete .*s/v07 ' "$work/forecast" || fail "prune does not tell of v07"
forecast=$("$VARVE" prune -n --json --keep-last 2 "$repo" | of_deletion freed_bytes)
all_present
freed=$(VARVE_REPO=$repo "$VARVE" prune --no-arrange --json --keep-last 2 s |
  of_deletion freed_bytes)
[ "$forecast" -eq "$freed" ] && [ "$freed" -eq $((before - $(series_bytes))) ] ||
  fail "prune: $forecast forecast, $freed told of, $((before - $(series_bytes))) came"
without v07
all_present
ok "prune: $freed bytes came back, as forecast"

mount_repo
expect_status 1 rmdir "$mnt/s/v10"
message_says 'read-only'
unmount_repo
mount_repo -o rmdir_deletes,noarrange
expect_status 1 rm "$mnt/s/v10/big"
message_says 'read-only'
expect_status 1 rmdir "$mnt/s/v05"
message_says 'not permitted'
exec 8<"$mnt/s/v10/big"
expect_status 1 rmdir "$mnt/s/v10"
message_says 'busy'
exec 8<&-
rmdir "$mnt/s/v10"
without v10
all_present
ok "rmdir deletes a version where it was asked for"
add_version 13
present+=(v13)
mkdir "$mnt/s/v14.partial"
echo kept >"$mnt/s/v14.partial/file"
"$VARVE" prune --keep-last 1 "$mnt/s" >/dev/null
[ "$(cat "$mnt/s/v14.partial/file")" = kept ] || fail "prune took a partial"
without v11
"$VARVE" seal "$mnt/s/v14.partial"
mkdir "$work/versions/v14"
cp -a "$mnt/s/v14/." "$work/versions/v14/"
present+=(v14)
all_present
ok "versions can be added after that, and partials are not pruned"
"$VARVE" arrange "$mnt/s"
all_present
unmount_repo
"$VARVE" stats --prometheus "$repo" >"$work/figures"
grep -q '^varve_versions{.*series="s"} 3$' "$work/figures" || fail "metrics"
"$VARVE" check --read-data "$repo"

# Fills the disk to the last byte: each round takes the space that writing reserved but did not use.
fill_disk() {
  for _ in 1 2 3 4; do
    cat /dev/zero >>"$work/disk/ballast" 2>/dev/null || true
    sync -f "$work/disk"
  done
}
truncate -s 150M "$work/image"
mkfs.ext4 -q -m 0 "$work/image"
mkdir "$work/disk"
if ! mount -o loop "$work/image" "$work/disk" 2>/dev/null; then
  echo "no loop device here: deleting on a full disk is not tested"
  exit 0
fi
repo=$work/disk/repo
rm -rf "$work/versions" "$work/tree"
mkdir "$work/versions"
present=()
"$VARVE" init --compression none "$repo"
mount_repo -o noarrange
mkdir "$mnt/s"
for n in 1 2 3 4 5 6; do
  add_version "$n"
  present+=("v0$n")
done
"$VARVE" -q arrange --policy original --window 1 "$mnt/s" >/dev/null
fill_disk
available=$(df --output=avail -B1 "$work/disk" | tail -1)
[ "$available" -lt 262144 ] || fail "the disk is not full: $available bytes are left"
delete v03
fill_disk
delete v06
unmount_repo
fill_disk
delete v01 v04
ok "deleting works on a full disk, with a mount and without"
fill_disk
before=$(series_bytes)
"$VARVE" rm "$repo" s/v02 >"$work/out" 2>&1 || fail "arranging on a full disk: $(cat "$work/out")"
without v02
all_present
[ "$(series_bytes)" -le "$before" ] || fail "what arranging could not finish takes space"
ok "arranging after that is put off, or fits, and loses nothing"

# A repair that lost a version's tree, or content of a version: then the version takes the place of no sound one.
hollow=$work/hollow
"$VARVE" -q init "$hollow"
mkdir "$work/small"
for n in 1 2 3; do
  head -c 20000 /dev/urandom >"$work/small/file"
  "$VARVE" -q store --no-arrange "$hollow" a/v$n "$work/small" >/dev/null
done
cp -a "$hollow" "$work/cut"
rm -r "$hollow/catalog" "$hollow/series/00000001/manifests/00000003.man"
expect_status 3 "$VARVE" repair --yes "$hollow"
expect_status 1 "$VARVE" status "$hollow"
grep -q 'newest version of a, v3, is incomplete' "$work/stdout" || fail "$(cat "$work/stdout")"
find "$work/cut/series" -name '*.seg' | sort | tail -1 | xargs rm
expect_status 3 "$VARVE" repair --yes "$work/cut"
for damaged in "$hollow" "$work/cut"; do
  expect_status 0 "$VARVE" prune -n --keep-last 1 "$damaged" a
  grep -q '^keep .*a/v2 .*newest complete' "$work/stdout" || fail "$(cat "$work/stdout")"
  grep -q '^would delete .*a/v1 ' "$work/stdout"
done
ok "a damaged version takes the place of no sound one"
