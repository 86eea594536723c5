#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The catalog is lost together with data of an open version: repairs and checks name the files of the open version.
limit_s=240
. "$(dirname "$0")/lib.sh"

mkdir "$work/tree"
head -c 1000000 /dev/urandom >"$work/tree/file"
head -c 1000000 /dev/urandom >"$work/new"
data_files() { find "$repo" \( -name '*.seg' -o -name '*.vol' \) -type f | sort; }

for kind in lineage pool encrypted; do
  arguments_of $kind
  rm -rf "$repo"
  "$VARVE" -q init "${arguments[@]}" "$repo"
  "$VARVE" -q store "$repo" s/mon "$work/tree" >/dev/null
  before=$(data_files)
  mount_repo
  mkdir -p "$mnt/s/tue/below/lost files"
  cp "$work/new" "$mnt/s/tue/below/lost files/new"
  ln "$mnt/s/tue/below/lost files/new" "$mnt/s/tue/link"
  cp "$work/tree/file" "$mnt/s/tue/below/whole"  # Refers to the data of s/mon.
  sync "$mnt/s/tue/below/lost files/new"
  unmount_repo
  mapfile -t files < <(comm -13 <(echo "$before") <(data_files))
  [ ${#files[@]} -gt 0 ] || fail "$kind: the open version has no files"
  rm "${files[@]}"
  rm -r "$repo/catalog"
  for round in 1 2; do
    expect_status 3 "$VARVE" repair --yes "$repo"
    line=$(grep 's/tue is open' "$work/stdout") || fail "$kind, repair $round names nothing: $(cat "$work/stdout")"
    grep -q '2 files of it' <<<"$line" || fail "$kind, repair $round: $line"
    for name in 'below/lost files/new' link; do grep -q "$name" <<<"$line" || fail "$kind, $name: $line"; done
    ! grep -q whole <<<"$line" || fail "$kind, repair $round: $line"
  done
  expect_status 1 "$VARVE" check "$repo"
  grep -q 'below/lost files/new' "$work/stdout" || fail "$kind: the check names nothing: $(cat "$work/stdout")"
  mount_repo
  cmp "$work/tree/file" "$mnt/s/tue/below/whole"
  ! cat "$mnt/s/tue/link" >"$work/read" 2>/dev/null || fail "$kind: a file was read without its data"
  cp "$work/new" "$mnt/s/tue/link"
  cmp "$work/new" "$mnt/s/tue/below/lost files/new"
  "$VARVE" -q seal "$mnt/s/tue"
  unmount_repo
  expect_status 0 "$VARVE" repair --yes "$repo"
  "$VARVE" -q check --read-data "$repo" >"$work/check" || fail "$kind: $(cat "$work/check")"
  ok "$kind: lost files of an open version are named until they are written again"
done
