#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `varve store` and `varve restore` need few descriptors for a tree of any depth and width.
limit_s=90
. "$(dirname "$0")/lib.sh"

# Makes, compares or measures trees whose paths are too long for a system call.
deep() { python3 - "$@" <<'PYTHON'
import os, sys

def walk(root, visit):
    fd = os.open(root, os.O_RDONLY)
    level = 0
    while True:
        visit(fd, level)
        level += 1
        try:
            below = os.open("directory", os.O_RDONLY, dir_fd=fd)
        except FileNotFoundError:
            return level - 1
        os.close(fd)
        fd = below

action, root = sys.argv[1:3]
if action == "make":
    levels = int(sys.argv[3])
    os.mkdir(root)
    def add(fd, level):
        for i in range(3):
            os.close(os.open(f"file{i}", os.O_CREAT, 0o600, dir_fd=fd))
        if level < levels:
            os.mkdir("directory", dir_fd=fd)
    walk(root, add)
else:
    files = []
    levels = walk(root, lambda fd, level: files.append(len(os.listdir(fd))))
    print(levels, sum(files))
PYTHON
}

"$VARVE" init "$repo" >/dev/null
limited() { (ulimit -n 48 && "$@"); }
for levels in 40 400 2000; do
  deep make "$work/tree" $levels
  limited "$VARVE" -q store "$repo" "s/$levels" "$work/tree" >/dev/null
  limited "$VARVE" -q store -n "$repo" "s/$levels-again" "$work/tree" >/dev/null
  for how in '' --scatter; do
    # shellcheck disable=SC2086
    limited "$VARVE" -q restore $how "$repo" "s/$levels" "$work/out"
    [ "$(deep measure "$work/tree")" = "$(deep measure "$work/out")" ] || fail "$levels levels: not all is restored"
    [ -n "$how" ] || mv "$work/out" "$work/other"
  done
  limited "$VARVE" -q restore --to-tar - "$repo" "s/$levels" | tar -t >/dev/null 2>&1 || true
  mkdir -p "$work/empty" && "$VARVE" -q store --allow-shrunk "$repo" e/one "$work/empty" >/dev/null 2>&1 || true
  limited "$VARVE" -q restore --delete "$repo" e/one "$work/other"
  [ -z "$(ls -A "$work/other")" ] || fail "$levels levels: --delete leaves something"
  rm -rf "$work/tree" "$work/out" "$work/other"
done
for n in $(seq 6 24); do
  (ulimit -n "$n" && "$VARVE" check "$repo") >"$work/stdout" 2>"$work/stderr" || true
  ! grep -q 'would not be seen' "$work/stderr" || fail "$n descriptors: check says $(cat "$work/stderr")"
done
below=$work/filled
for n in $(seq 60); do
  below=$below/d
  mkdir -p "$below"
  echo hi >"$below/f"
done
"$VARVE" -q store "$repo" f/filled "$work/filled"
for n in $(seq 16 24); do
  rm -rf "$work/out"
  (ulimit -n "$n" && "$VARVE" restore "$repo" f/filled "$work/out") >"$work/stdout" 2>"$work/stderr" || true
  ! grep -q 'damaged' "$work/stderr" || fail "$n descriptors: restore says $(grep damaged "$work/stderr" | head -2)"
done
rm -rf "$work/out"
mkdir "$work/large" && head -c 300000 /dev/urandom >"$work/large/file"
"$VARVE" init "$work/source" >/dev/null && "$VARVE" -q store "$work/source" l/large "$work/large"
for n in $(seq 24 38); do
  rm -rf "$work/target"
  (ulimit -n "$n" && "$VARVE" copy "$work/source" "$work/target") >"$work/stdout" 2>"$work/stderr" || true
  ! grep -q -e --incomplete "$work/stderr" || fail "$n descriptors: copy says $(cat "$work/stderr")"
done
rm -rf "$work/target"
ok "a lack of descriptors is no suspicion against the storage"

ok "trees of 40, 400 and 2000 levels need at most 48 descriptors"

mkdir "$work/wide" "$work/wide/links"
for i in $(seq 300); do
  mkdir "$work/wide/$i" && echo "$i" >"$work/wide/$i/file" && ln "$work/wide/$i/file" "$work/wide/links/$i"
done
limited "$VARVE" -q store "$repo" w/one "$work/wide" >/dev/null
for how in '' --scatter; do
  # shellcheck disable=SC2086
  limited "$VARVE" -q restore $how "$repo" w/one "$work/out"
  same_tree "$work/wide" "$work/out"
  rm -r "$work/out"
done
ok "so do many directories with files that have more names elsewhere"
