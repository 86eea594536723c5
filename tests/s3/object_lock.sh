#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Locks of objects in a real store: Ceph, started here. VARVE and VARVE_CONTRACT_BUCKET are the programs.
set -Eeuo pipefail
cd "$(dirname "$0")"
. ./ceph_lib.sh
VARVE=$(realpath "${VARVE:?is the path of the varve program to test}")
ceph_for_test locked lock
ceph_make_bucket plain
fail() { echo "FAILED: $*" >&2; exit 1; }
ok() { echo "ok: $*"; }
export HOME=$work XDG_STATE_HOME=$work/state AWS_ENDPOINT_URL=$S3_ENDPOINT AWS_REGION=$S3_REGION
export AWS_ACCESS_KEY_ID=$S3_KEY AWS_SECRET_ACCESS_KEY=$S3_SECRET
refused() {  # TEXT PLACE
  if "$VARVE" init "$2" --local="$work/none" --object-lock=30 2>"$work/stderr"; then fail "init $2 works"; fi
  grep -q -- "$1" "$work/stderr" || fail "$(cat "$work/stderr")"
}

for bucket in locked plain; do
  [ $bucket = plain ] || export VARVE_TEST_S3_LOCKS=1
  VARVE_TEST_S3="$S3_ENDPOINT $S3_REGION $bucket $S3_KEY $S3_SECRET" \
    "$VARVE_CONTRACT_BUCKET" --gtest_filter='*ProbeOfLocks*RealStore*' || fail "$bucket"
  unset VARVE_TEST_S3_LOCKS
done
ok "the store locks objects, extends locks, and refuses to remove a locked version"

refused object-lock-enabled s3://plain/x
ok "a bucket without locks is refused"

mkdir "$work/source"
head -c 300K /dev/urandom >"$work/source/data"
place=s3://locked/machines/laptop
if ! "$VARVE" -q init "$place" --local="$work/here" --object-lock=10 2>"$work/stderr"; then
  # Ceph 16 ignores If-None-Match in a bucket that keeps versions.
  grep -q 'conditional requests.*bucket without versions' "$work/stderr" || fail "$(cat "$work/stderr")"
  ok "a bucket with locks that ignores conditions is refused"
  exit 0
fi
"$VARVE" -q store "$place" s/one "$work/source"
"$VARVE" -q store "$place" s/two "$work/source"
"$VARVE" -q check "$place"
"$VARVE" status "$place" >"$work/status" || true
grep -q 'object lock: yes' "$work/status" && grep -q 'keeps old versions: yes' "$work/status"
"$VARVE" -q config "$place" object-lock=100
"$VARVE" -q wait "$place"
"$VARVE" -q check "$place"
"$VARVE" -q prune --keep-last 1 "$place" s
"$VARVE" -q attach --write "$place" "$work/second"
"$VARVE" -q store "$work/second" s/three "$work/source"
"$VARVE" -q check "$work/second"
"$VARVE" -q restore "$work/second" s/three "$work/out"
cmp "$work/source/data" "$work/out/data"
ok "objects are locked, locks are extended, and a folder takes over"
