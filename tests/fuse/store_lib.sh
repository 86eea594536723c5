# SPDX-License-Identifier: Apache-2.0
# Sourced after lib.sh by tests of repositories in object stores.

export XDG_CACHE_HOME=$work/cache HOME=$work  # No files of AWS.

store_command() {  # WORD…: a command of store.py; prints its answer
  local answer
  echo "$@" >&"${STORE[1]}"
  read -r answer <&"${STORE[0]}"
  echo "$answer"
}

# The store refuses all requests, until it works again.
stop_store() { store_command fault busy 1 1000000000 >/dev/null; }
start_store_again() { store_command fault busy 1 0 >/dev/null; }
