#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A copy of a newer state over an older one is interrupted after each of its files. A repair of the folder stops, or loses
# no version that could be restored, and the completed copy is whole.
limit_s=300
. "$(dirname "$0")/lib.sh"

for kind in ${VARVE_TEST_KINDS:-lineage:sorted lineage:labels lineage:random pool:labels pool:random encrypted:labels}; do
  arguments_of "${kind%:*}"
  mkdir "$work/$kind"
  python3 "$here/interrupted_copy.py" "$work/$kind" "${kind#*:}" "${arguments[@]}" || fail "$kind"
  rm -rf "${work:?}/$kind"
done
ok "an interrupted copy costs no version, and can be completed"
