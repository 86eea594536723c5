#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A user's own files in the folders of a repository survive every removal by Varve.
. "$(dirname "$0")/lib.sh"

mkdir "$work/tree"
head -c 300000 /dev/urandom >"$work/tree/file"
"$VARVE" -q init "$repo"
for version in one two; do
  head -c 100000 /dev/urandom >"$work/tree/$version"
  "$VARVE" -q store "$repo" s/$version "$work/tree"
done
mount_repo
mkdir "$mnt/s/open"
echo first >"$mnt/s/open/first"
unmount_repo
mkdir -p "$repo/staging/00000001-00000063/files" "$repo/catalog.new"

# Each folder gets a file, a folder with a file, and names that are nearly Varve's.
plant_notes() {
  local folder
  while read -r folder; do
    for name in NOTES.txt index-mine.snap notes.tmp 1.seg 00000001.seg.bak 00000001.man.old; do
      echo "keep $folder/$name" >"$folder/$name"
    done
    mkdir -p "$folder/mine"
    echo keep >"$folder/mine/00000001.seg"
  done < <(find "$repo" -type d)
}
plant_notes
notes() { find "$repo" '(' -name '*mine*' -o -name 'N*.txt' -o -name 'notes*' -o -name '1.seg' -o -name '*.bak' -o -name '*.old' -o -path '*/mine/*' ')' -type f -printf '%P %s %T@\n' | sort; }
planted=$(notes)
[ "$(wc -l <<<"$planted")" -gt 80 ]
all_there() { [ "$(notes)" = "$planted" ] || fail "$1: $(diff <(echo "$planted") <(notes) || true)"; }

mount_repo
all_there "the opening"
cp "$work/tree/file" "$mnt/s/open/"
"$VARVE" seal "$mnt/s/open"
all_there "a seal"
unmount_repo
"$VARVE" -q rm "$repo" s/one
"$VARVE" -q prune --keep-last 1 "$repo"
all_there "rm and prune"
"$VARVE" -q arrange --parity 5 "$repo"
all_there "arranging"
"$VARVE" -q repair --yes --rebuild-catalog "$repo"
# The catalogs have new names now, and so do the files in them.
planted=$(sed "s,^catalog/,catalog.damaged-1/,; s,^catalog.new/,catalog/," <<<"$planted" | sort)
all_there "a new catalog"
for version in $("$VARVE" ls "$repo" | grep -o 's/[a-z]*'); do "$VARVE" -q rm "$repo" "$version"; done
mount_repo
rmdir "$mnt/s"
[ ! -e "$mnt/s" ]
unmount_repo
all_there "removing the series"
[ -z "$(find "$repo/series" -name '*.seg' -not -path '*/mine/*' -not -name '1.seg')" ] || fail "segments stay"
"$VARVE" -q check "$repo"
ok "seal, rm, prune, arrange, repair and rmdir keep every file that is not Varve's"

echo mine >"$repo/series/00000000"
"$VARVE" -q store "$repo" t/one "$work/tree"
"$VARVE" -q repair --yes --rebuild-catalog "$repo"
"$VARVE" -q restore "$repo" t/one "$work/restored"
cmp "$work/tree/file" "$work/restored/file"
[ "$(cat "$repo/series/00000000")" = mine ] || fail "the file is gone"
ok "a file that is called like a series' folder is passed over by a repair"

used=$(find "$repo/series" -maxdepth 1 -name '0???????' -printf '%f\n' | sort | tail -1)
stray=$(printf '%08x' $((16#$used + 1)))
echo mine >"$repo/series/$stray"
"$VARVE" -q store "$repo" u/one "$work/tree"
"$VARVE" check "$repo" >"$work/notes"
grep -q "note: .*series/$stray: unknown" "$work/notes" || fail "check does not name it: $(cat "$work/notes")"
[ "$(cat "$repo/series/$stray")" = mine ] || fail "the file is gone"
rm -rf "$work/restored"
"$VARVE" -q restore "$repo" u/one "$work/restored"
cmp "$work/tree/file" "$work/restored/file"
ok "a file that has the next series' name does not stop that series, and check names it"

# The next segments of the pool and of a series have the names of another program's folders.
"$VARVE" -q config "$repo" placement=pool
"$VARVE" -q store "$repo" p/one "$work/tree"
for number in $(seq 1 40); do
  for folder in pool series/$used; do
    [ -e "$repo/$folder/active/$(printf '%08x.seg' "$number")" ] ||
      mkdir "$repo/$folder/active/$(printf '%08x.seg' "$number")"
  done
done
folders=$(find "$repo" -type d -name '*.seg' | sort)
cp -a "$work/tree" "$work/more" && head -c 3000000 /dev/urandom >"$work/more/new"
"$VARVE" -q store "$repo" p/two "$work/more"
rm -rf "$work/restored"
"$VARVE" -q restore "$repo" p/two "$work/restored"
cmp "$work/more/new" "$work/restored/new"
[ "$(find "$repo" -type d -name '*.seg' | sort)" = "$folders" ] || fail "a folder is gone"
"$VARVE" -q check --read-data "$repo"
ok "folders with the names of the next segments do not stop a store"
