#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Faults around a real store (Ceph, started here): varve killed at each request, the gateway and the
# disk killed under load, answers cut, lost and refused, and two writers at once. No acknowledged
# version may be lost, no byte may be wrong, and no head may have two winners. VARVE is the program.
# VARVE_TEST_KILLS: at so many requests it is killed (default 24).
set -Eeuo pipefail
cd "$(dirname "$0")"
. ./ceph_lib.sh
ceph_need
VARVE=$(realpath "${VARVE:?is the path of the varve program to test}")
kills=${VARVE_TEST_KILLS:-24}

work=$(mktemp -d /tmp/varve-s3-XXXXXX)
clean_up() {
  # The proxy ends with its input.
  [ -z "${PROXY_PID:-}" ] || { exec {PROXY[1]}>&- && wait "$PROXY_PID"; } 2>/dev/null || true
  ceph_stop "$work/ceph" 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 143' INT TERM
fail() { echo "FAILED: $*" >&2; exit 1; }
ok() { echo "ok: $*"; }

ceph_start "$work/ceph"
ceph_make_bucket varve-test
coproc PROXY { exec python3 ./proxy.py "${S3_ENDPOINT#http://}"; }
read -r _ port <&"${PROXY[0]}"
proxy() {  # COMMAND
  echo "$*" >&"${PROXY[1]}"
  read -r answer <&"${PROXY[0]}"
}
export AWS_REGION=$S3_REGION AWS_ACCESS_KEY_ID=$S3_KEY AWS_SECRET_ACCESS_KEY=$S3_SECRET HOME=$work
through_proxy() { AWS_ENDPOINT_URL=http://127.0.0.1:$port "$@"; }
directly() { AWS_ENDPOINT_URL=$S3_ENDPOINT "$@"; }

place=s3://varve-test/faults
repo=$work/repo
directly "$VARVE" -q init "$place" --local="$repo"
mkdir -p "$work/source/dir" "$work/versions"
head -c 3M /dev/urandom >"$work/source/big"

change() {  # Changes some of the source.
  head -c 200K /dev/urandom >"$work/source/dir/$((RANDOM % 5))"
  dd if=/dev/urandom of="$work/source/big" bs=64K count=1 seek=$((RANDOM % 40)) conv=notrunc status=none
}
keep() { cp -a "$work/source" "$work/versions/$1"; }

acknowledged=()
# Compares what a fresh folder reads with all acknowledged versions.
verify() {
  local name
  rm -rf "$work/reader"
  "$@" "$VARVE" -q attach "$place" "$work/reader"
  for name in "${acknowledged[@]}"; do
    rm -rf "$work/out"
    "$@" "$VARVE" -q restore "$work/reader" "s/$name" "$work/out" || fail "$name is lost"
    diff -r "$work/versions/$name" "$work/out" || fail "$name has wrong bytes"
  done
}
store() {  # NAME: stores in another process, whose number is in $work/pid
  sh -c 'echo $$ >"$0"; exec "$@"' "$work/pid" "$VARVE" -q store "$repo" "s/$1" "$work/source"
}

killed=0
for ((at = 1; at <= kills; ++at)); do
  change
  keep "k$at"
  proxy at "$at" "kill -9 \$(cat $work/pid)"
  if through_proxy store "k$at" 2>"$work/said"; then
    acknowledged+=("k$at")
  else
    killed=$((killed + 1))
    # What was sealed before the kill is uploaded later.
    through_proxy "$VARVE" -q wait "$repo" 2>"$work/said" || true
    if "$VARVE" ls "$repo" s 2>/dev/null >"$work/list" && grep -qw "k$at" "$work/list"; then
      through_proxy "$VARVE" -q wait "$repo" "s/k$at" && acknowledged+=("k$at")
    fi
  fi
  proxy forget  # A store that made fewer requests was not killed.
  [ $((at % 6)) -ne 0 ] || verify directly
done
[ $killed -ge $((kills / 4)) ] || fail "only $killed of $kills processes were killed"
verify directly
ok "$killed of $kills processes were killed; ${#acknowledged[@]} acknowledged versions are there"

for victim in rgw osd; do
  head -c 60M /dev/urandom >"$work/source/large"
  keep "$victim"
  directly store "$victim" 2>"$work/said" &
  storing=$!
  sleep 0.7
  ceph_kill "$work/ceph" $victim
  sleep 1
  ceph_start "$work/ceph"
  wait $storing || fail "store did not outlast the kill of $victim: $(cat "$work/said")"
  acknowledged+=("$victim")
  verify directly
  directly "$VARVE" -q restore "$work/reader" "s/$victim" "$work/again" &
  reading=$!
  rm -rf "$work/reader/cache"
  ceph_kill "$work/ceph" $victim
  ceph_start "$work/ceph"
  wait $reading || fail "restore did not outlast the kill of $victim"
  diff -r "$work/versions/$victim" "$work/again"
  rm -rf "$work/again"
  rm "$work/source/large"
  ok "a store and a restore outlast the kill of $victim"
done

proxy set cut 0.01
proxy set busy 0.1
proxy set lost 0.03
for ((i = 1; i <= 8; ++i)); do
  change
  keep "c$i"
  through_proxy store "c$i" 2>"$work/said" || fail "store with cut connections: $(cat "$work/said")"
  acknowledged+=("c$i")
done
verify through_proxy
for fault in cut busy lost; do proxy set $fault 0; done
verify directly
ok "cut, refused and lost answers change nothing"

# Two copies of the folder write at once, ten times. At most one of them may win.
for ((i = 1; i <= 10; ++i)); do
  rm -rf "$work/other"
  cp -a "$repo" "$work/other"
  change
  keep "r$i"
  directly "$VARVE" -q store "$repo" "s/r$i" "$work/source" 2>"$work/said-1" & one=$!
  directly "$VARVE" -q store "$work/other" "s/x$i" "$work/source" 2>"$work/said-2" & two=$!
  won=0
  if wait $one; then won=$((won + 1)) winner=r$i; fi
  if wait $two; then won=$((won + 1)) winner=x$i; fi
  [ $won -eq 1 ] || fail "race $i has $won winners: $(cat "$work"/said-?)"
  if [ "$winner" = "x$i" ]; then
    # The loser keeps what it sealed.
    "$VARVE" ls "$repo" s 2>/dev/null >"$work/list"
    grep -qw "r$i" "$work/list" || fail "the loser lost what it had sealed"
    rm -rf "$repo" && mv "$work/other" "$repo"
    mv "$work/versions/r$i" "$work/versions/x$i"
  fi
  acknowledged+=("$winner")
done
verify directly
ok "each of ten races has one winner, and no version of a winner is lost"
directly "$VARVE" -q check --read-data "$work/reader"
ok "${#acknowledged[@]} acknowledged versions were compared, and all data is sound"
