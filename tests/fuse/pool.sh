#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Series that share a pool in one mount: written at the same time, killed, deleted, on a full disk.
# Every sealed version stays whole, and the space of deleted data comes back.
limit_s=500
. "$(dirname "$0")/lib.sh"
RANDOM=${VARVE_TEST_SEED:-4}

mkdir "$work/t" "$work/mnt2"
cp -a /usr/include/linux "$work/t/1"
head -c 5000000 /dev/urandom >"$work/t/1/random"
cp -a "$work/t/1" "$work/t/2"
find "$work/t/2" -name '*.h' | sort | awk 'NR % 15 == 0' | while read -r file; do
  echo "// more" >>"$file"
done
head -c 2000000 /dev/urandom | dd of="$work/t/2/random" bs=1M seek=2 conv=notrunc status=none
cp -a "$work/t/2" "$work/t/3"
rm -r "$work/t/3/netfilter"
head -c 3000000 /dev/urandom >"$work/t/3/other"
for tree in 1 2 3; do backdate "$work/t/$tree"; done

declare -A content  # Of each sealed version: the number of its tree.
bytes_of() { du -sb "$1" | cut -f 1; }
pool_bytes() { find "$repo/pool" -name '*.seg' -printf '%s\n' 2>/dev/null | awk '{n += $1} END {print n + 0}'; }

all_are_whole() {  # [MOUNT POINT]
  local version
  for version in "${!content[@]}"; do
    diff -r "$work/t/${content[$version]}" "${1:-$mnt}/$version" >"$work/diff" ||
      fail "$version differs: $(head -3 "$work/diff")"
  done
}
seal_as() {  # SERIES/NAME TREE
  mv -T "$mnt/$1.partial" "$mnt/$1"
  content[$1]=$2
}
store() {  # SERIES/NAME TREE [RSYNC OPTION…]
  rsync -aHX "${@:3}" "$work/t/$2/" "$mnt/$1.partial/"
}

stats_are() {  # PYTHON-EXPRESSION OVER `it` -- WORD…: what `varve stats` says of one version
  local wanted=$1
  shift 2
  "$VARVE" stats --json "$@" >"$work/json"
  python3 -c 'import json, sys; it = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' \
    "$work/json" "$wanted" || fail "$wanted: $(cat "$work/json")"
}

for placement in pool lineage+pool; do
  repo=$work/repo-$placement
  content=()
  "$VARVE" init --compression none --placement $placement "$repo"
  mount_as_job
  mkdir "$mnt/a" "$mnt/b" "$mnt/c"

  store a/one 1 & one=$!
  cp -a "$work/t/1" "$mnt/b/one.partial" & two=$!
  store c/one 2
  wait $one $two
  seal_as a/one 1; seal_as b/one 1; seal_as c/one 2
  all_are_whole
  ok "$placement: three series were written at the same time"

  before=$(du -sb "$repo/series" "$repo/pool" 2>/dev/null | awk '{n += $1} END {print n}')
  store a/two 2 --link-dest="$mnt/a/one" && seal_as a/two 2
  store b/two 2 && seal_as b/two 2
  after=$(du -sb "$repo/series" "$repo/pool" 2>/dev/null | awk '{n += $1} END {print n}')
  [ $placement != pool ] || [ $((after - before)) -lt $(($(bytes_of "$work/t/2") / 3)) ] ||
    fail "a tree that the pool has took $((after - before)) bytes"
  # Tree 2 is in c, and what a/two had of it is in the pool by now.
  if [ $placement = pool ]; then
    stats_are "it['kept_bytes'] > $(bytes_of "$work/t/2") / 2" -- "$mnt/b/two"
    stats_are "it['promoted_bytes'] == 0" -- "$mnt/b/two"
  else
    stats_are "it['promoted_bytes'] > 1000000" -- "$mnt/a/two"
    stats_are "it['kept_bytes'] > 1000000" -- "$mnt/b/two"
  fi
  stats_are "it['rewritten_bytes'] == it['sparse_containers'] == 0" -- "$repo" b/two
  stats_are "sum(it['utilisation']) == it['containers'] > 0" -- "$repo" b/two
  VARVE_REPO=$repo "$VARVE" stats b/two | grep -Eq '^kept +.* in [1-9][0-9]* chunks$'
  "$VARVE" clone "$mnt/a/two" "$mnt/a/three.partial"
  expect_status 1 "$VARVE" stats "$mnt/a/three.partial"
  message_says 'is open'
  expect_status 2 "$VARVE" stats --live "$mnt/a/two"
  message_says 'whole repository'
  store a/three 3 --delete && seal_as a/three 3
  "$VARVE" clone "$mnt/b/one" "$mnt/b/again.partial"  # An older version: a copy.
  seal_as b/again 1
  all_are_whole
  ok "$placement: link-dest, clones of the newest and of an older version"

  for round in 1 2 3 4; do
    (store a/k 3 || true) 2>/dev/null & one=$!
    (store b/k 2 || true) 2>/dev/null & two=$!
    (cp -a "$work/t/1/." "$mnt/c/k$round.partial/" || true) 2>/dev/null & three=$!
    gone=
    for version in "${!content[@]}"; do
      [ $((RANDOM % 3)) -ne 0 ] || gone="$gone $mnt/$version"
    done
    # In every other round, the kill also meets merging.
    wait_for_later=--no-arrange
    [ $((round % 2)) -ne 0 ] || wait_for_later=
    (sleep "0.$((RANDOM % 5))"; for version in $gone; do
      "$VARVE" rm $wait_for_later "$version" || true
    done) >/dev/null 2>&1 & four=$!
    sleep "0.$((RANDOM % 90 + 10))"
    kill_daemon
    wait $one $two $three $four 2>/dev/null || true
    mount_as_job
    for version in $gone; do
      version=${version#"$mnt/"}
      [ -e "$mnt/$version" ] || unset "content[$version]"
    done
    all_are_whole
    rm -rf "$mnt/c/k$round.partial" 2>/dev/null || true
    [ ! -e "$mnt/c/k$round.partial" ] || rmdir "$mnt/c/k$round.partial"
  done
  store a/k 3 --delete && seal_as a/k 3
  store b/k 2 --delete && seal_as b/k 2
  all_are_whole
  ok "$placement: four kills while series were written, versions removed and containers merged"

  # Content that is deleted and stored again at the same time.
  (for n in 1 2 3 4; do
    cp -a "$work/t/1" "$mnt/b/x$n.partial" && mv -T "$mnt/b/x$n.partial" "$mnt/b/x$n"
    diff -r "$work/t/1" "$mnt/b/x$n" && "$VARVE" rm --no-arrange "$mnt/b/x$n"
  done) >"$work/loop-b" 2>&1 & loop=$!
  (for n in 1 2 3 4; do
    cp -a "$work/t/1" "$mnt/c/x$n.partial" && mv -T "$mnt/c/x$n.partial" "$mnt/c/x$n"
    diff -r "$work/t/1" "$mnt/c/x$n" && "$VARVE" rm --no-arrange "$mnt/c/x$n"
  done) >"$work/loop-c" 2>&1 & loop2=$!
  "$VARVE" mount -o ro "$repo" "$work/mnt2"
  wait $loop || fail "storing and deleting in b: $(head -5 "$work/loop-b")"
  wait $loop2 || fail "storing and deleting in c: $(head -5 "$work/loop-c")"
  all_are_whole "$work/mnt2"
  "$VARVE" umount "$work/mnt2"
  all_are_whole
  ok "$placement: the same content stored and deleted by two series; a read-only mount beside"

  first=$(printf '%s\n' "${!content[@]}" | sort | head -1)
  cp -a "$mnt/$first" "$work/out"
  diff -r "$work/t/${content[$first]}" "$work/out"
  rm -rf "$work/out"
  for version in "${!content[@]}"; do "$VARVE" rm "$mnt/$version" >/dev/null; done
  "$VARVE" umount "$mnt"
  wait "$daemon" || true
  mount_as_job
  "$VARVE" umount "$mnt"
  wait "$daemon" || true
  [ "$(pool_bytes)" -eq 0 ] || fail "the empty pool has $(pool_bytes) bytes"
  ok "$placement: nothing is left after the last version"
  rm -rf "$repo"
done

repo_on_disk 200
content=()
"$VARVE" init --compression none --placement pool "$repo"
mount_as_job
mkdir "$mnt/a" "$mnt/b"
store a/one 1 && seal_as a/one 1
store b/one 2 && seal_as b/one 2
mkdir "$work/t/big"
for n in 1 2 3 4 5 6; do head -c 9000000 /dev/urandom >"$work/t/big/$n"; done
available=$(df --output=avail -B1M "$work/disk" | tail -1)
fallocate -l $((available - 32))M "$work/disk/ballast"
full=0
mkdir "$mnt/a/two.partial"
cp -r "$work/t/big/." "$mnt/a/two.partial/" 2>"$work/stderr" || full=$?
[ $full -ne 0 ] || { sync "$mnt/a/two.partial"/* 2>"$work/stderr" && fail "the disk is not full"; }
grep -q 'No space left' "$work/stderr" || fail "not ENOSPC: $(head -3 "$work/stderr")"
all_are_whole
before=$(pool_bytes)
"$VARVE" rm --no-arrange "$mnt/b/one" >/dev/null
unset "content[b/one]"
[ "$(pool_bytes)" -lt "$before" ] || fail "deleting on a full disk freed nothing"
all_are_whole
ok "a version was deleted from the pool of a full disk"
before=$(pool_bytes)
rm -rf "$mnt/a/two.partial"/*
rmdir "$mnt/a/two.partial"
[ "$(pool_bytes)" -lt "$((before - 4000000))" ] ||
  fail "dropping a version on a full disk freed $((before - $(pool_bytes))) bytes"
kill_daemon
mount_as_job
all_are_whole
store a/two 2 && seal_as a/two 2
all_are_whole
"$VARVE" umount "$mnt"
wait "$daemon" || true
mount_as_job
all_are_whole
"$VARVE" umount "$mnt"
ok "after the open version was dropped the next backup fits"
