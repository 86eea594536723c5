#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Stands in for the program $VARVE_PLAIN in a mount test with VARVE_TEST_ENCRYPTED: `init` makes an
# encrypted repository with the same settings, and `copy` makes its target so. Every other command
# runs as it is. lib.sh.
case $0 in
  */mount.*) exec -a "$0" "$VARVE_PLAIN" "$@" ;;
esac
command=
for word in "$@"; do
  case $word in
    -*) continue ;;
  esac
  command=$word
  break
done
path=${!#}  # The repository, or the target.

is_empty() { [ ! -e "$1" ] || { [ -d "$1" ] && [ -z "$(ls -A "$1")" ]; }; }

make_like() {  # REPO
  "$VARVE_INIT_ENCRYPTED" "$path" "$(cat "$VARVE_PASSPHRASE_FILE")" "$1"
}

if [ "$command" = init ] && [ $# -gt 1 ] && is_empty "$path"; then
  # The plain program says whether the options are right.
  like=$(mktemp -d "${VARVE_TEST_TMP:-/var/tmp}/varve-like.XXXXXX")
  trap 'rm -rf "$like"' EXIT
  env -u VARVE_PASSPHRASE_FILE "$VARVE_PLAIN" "${@:1:$#-1}" "$like/repo" || exit
  make_like "$like/repo"
  exit
fi
if [ "$command" = copy ] && [ $# -gt 2 ] && [ -e "${@: -2:1}/varve.repo" ] && is_empty "$path"; then
  case " $* " in
    *' -n '* | *' --dry-run '* | *' ssh:'*) ;;
    *) make_like "${@: -2:1}" || exit ;;
  esac
fi
exec "$VARVE_PLAIN" "$@"
