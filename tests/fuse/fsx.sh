#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Random operations against a model, with remounts and kills of the daemon in between.
#
# VARVE_FSX_OPERATIONS (12000) and VARVE_TEST_SEED (1) set their number and the seed.
operations=${VARVE_FSX_OPERATIONS:-12000}
limit_s=$((100 + operations / 100))
. "$(dirname "$0")/lib.sh"
: "${VARVE_FSX:?is the path of the program fsx, which is built beside the tests}"

"$VARVE" init "$repo"
"$VARVE_FSX" "$VARVE" "$repo" "$mnt" "$operations" "${VARVE_TEST_SEED:-1}" 2>"$work/stderr" ||
  fail "the daemon said: $(tail -5 "$work/stderr")"
