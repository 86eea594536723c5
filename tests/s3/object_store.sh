#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fuse/object_store.sh with a real store: Ceph, started here, or the one that VARVE_TEST_STORE
# names (s3://BUCKET/PREFIX, with the address and credentials of the environment). VARVE is the
# program.
set -eu
cd "$(dirname "$0")"
. ./ceph_lib.sh

if [ -z "${VARVE_TEST_STORE:-}" ]; then
  ceph_for_test varve-test
  export AWS_ENDPOINT_URL=$S3_ENDPOINT AWS_REGION=$S3_REGION
  export AWS_ACCESS_KEY_ID=$S3_KEY AWS_SECRET_ACCESS_KEY=$S3_SECRET
  export VARVE_TEST_STORE=s3://varve-test/machines/laptop
fi
../fuse/object_store.sh
