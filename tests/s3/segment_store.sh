#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The contracts of the segment store of an attached folder, and of the log of commits, with a real
# store, as bucket.sh. VARVE_CONTRACT_SEGMENT_STORE and VARVE_CONTRACT_COMMIT_LOG are the programs.
set -eu
cd "$(dirname "$0")"
. ./ceph_lib.sh

if [ -z "${VARVE_TEST_S3:-}" ]; then
  ceph_for_test varve-test
  export VARVE_TEST_S3="$S3_ENDPOINT $S3_REGION varve-test $S3_KEY $S3_SECRET"
fi
"$VARVE_CONTRACT_COMMIT_LOG" --gtest_filter='*RealStore*'
"$VARVE_CONTRACT_SEGMENT_STORE" --gtest_filter='*RealStore*'
