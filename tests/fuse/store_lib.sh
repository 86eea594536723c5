# SPDX-License-Identifier: Apache-2.0
# Sourced after lib.sh by tests of repositories in object stores. The store is tests/s3/store.py, or
# the one that VARVE_TEST_STORE names (s3://BUCKET/PREFIX, with AWS_ENDPOINT_URL and credentials in
# the environment). Sets $place.

export XDG_CACHE_HOME=$work/cache HOME=$work  # No files of AWS.
place=${VARVE_TEST_STORE:-s3://varve-test/machines/laptop}

start_store() {  # [OPTION…] of store.py
  [ -z "${VARVE_TEST_STORE:-}" ] || return 0
  coproc STORE { exec python3 "$here/../s3/store.py" "$@"; }
  read -r _ port <&"${STORE[0]}"
  export AWS_ENDPOINT_URL=http://127.0.0.1:$port
  export AWS_ACCESS_KEY_ID=AKIDTEST AWS_SECRET_ACCESS_KEY=secret/of+the=test
  unset AWS_PROFILE AWS_SESSION_TOKEN AWS_REGION
}

store_command() {  # WORD…: a command of store.py; prints its answer
  local answer
  echo "$@" >&"${STORE[1]}"
  read -r answer <&"${STORE[0]}"
  echo "$answer"
}

# The store refuses all requests, until it works again.
stop_store() { store_command fault busy 1 1000000000 >/dev/null; }
start_store_again() { store_command fault busy 1 0 >/dev/null; }
