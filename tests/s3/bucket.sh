#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The contract of a bucket with a real store: Ceph, started here. VARVE_CONTRACT_BUCKET is the
# program. With VARVE_TEST_S3 ("ENDPOINT REGION BUCKET ACCESS-KEY-ID SECRET"), another store.
set -eu
cd "$(dirname "$0")"
. ./ceph_lib.sh

if [ -z "${VARVE_TEST_S3:-}" ]; then
  ceph_for_test varve-test
  export VARVE_TEST_S3="$S3_ENDPOINT $S3_REGION varve-test $S3_KEY $S3_SECRET"
  # The gateway and the disk are killed while objects are written.
  export VARVE_TEST_S3_OUTAGE="bash -c 'set -eu; . $PWD/ceph_lib.sh; ceph_kill $work rgw; ceph_kill $work osd
    ceph_start $work'"
fi
"$VARVE_CONTRACT_BUCKET" --gtest_filter='*RealStore*'
