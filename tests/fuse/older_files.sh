#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files of a repository are put back to states that they had before, or had in another history of the repository, or have
# on a disk that lost a part of the last writes: no version gets wrong bytes or is lost without a word, and repairs end.
# VARVE_TEST_SEED chooses the first history, VARVE_TEST_HISTORIES their number, VARVE_TEST_TRIALS the mixtures of each,
# VARVE_TEST_ONLY one of the mixtures. VARVE_TEST_KEEP is a folder for the mixtures that break a promise.
# In the kinds `delta` and `delta:encrypted`, volumes have frames with prefixes.
limit_s=600
. "$(dirname "$0")/lib.sh"
: "${VARVE_FAULTY_DISK:?is the path of the library made from faulty_disk.cc}"

failed=
seed=${VARVE_TEST_SEED:-1}
for kind in ${VARVE_TEST_KINDS:-lineage lineage+pool pool pool:zero-chunk parity encrypted delta}; do
  unset VARVE_KEY_FILE VARVE_TEST_DELTA
  case $kind in
    encrypted | delta:encrypted)
      (umask 077 && head -c 32 /dev/urandom >"$work/key")
      export VARVE_KEY_FILE=$work/key
      arguments=(--encrypt --key-file "$work/key")
      ;;
    parity | delta) arguments=(--parity 25) ;;
    *:*) arguments=(--placement "${kind%:*}" --pool-index "${kind#*:}") ;;
    *) arguments=(--placement "$kind") ;;
  esac
  case $kind in delta*) export VARVE_TEST_DELTA=1 ;; esac
  mkdir "$work/$kind"
  echo "$kind, seed $seed:"
  python3 "$here/older_files.py" "$work/$kind" "$seed" "${VARVE_TEST_HISTORIES:-1}" "${VARVE_TEST_TRIALS:-2}" \
    "${arguments[@]}" || failed="$failed $kind"
  rm -rf "${work:?}/$kind"
done
[ -z "${failed:-}" ] || fail "broken promises in the kinds$failed"
ok "files of other states give no wrong bytes and lose no version without a word"
