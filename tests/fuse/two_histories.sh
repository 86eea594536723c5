#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A folder with files of two histories of one repository, as an interrupted copy of one state over another leaves it
# after an older state was written to: no version is restored with the bytes of another file. A repair decides once, and
# names each version that it drops.
limit_s=600
. "$(dirname "$0")/lib.sh"

count=${VARVE_TEST_MIXTURES:-2}
for kind in ${VARVE_TEST_KINDS:-lineage lineage+pool pool parity encrypted}; do
  arguments=(--placement "$kind")
  if [ "$kind" = encrypted ]; then
    (umask 077 && head -c 32 /dev/urandom >"$work/key")
    export VARVE_KEY_FILE=$work/key
    arguments=(--encrypt --key-file "$work/key")
  fi
  if [ "$kind" = parity ]; then arguments=(--parity 25); fi
  mkdir "$work/$kind"
  python3 "$here/two_histories.py" "$work/$kind" "${VARVE_TEST_SEED:-1}" "$count" "${arguments[@]}" || fail "$kind"
  rm -rf "${work:?}/$kind"
done
ok "no version gets the bytes of another history, and a second repair changes nothing"
