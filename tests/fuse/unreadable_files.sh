#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Files that the user may not read are no damage: root has written to the user's repository, and the user checks or
# repairs the repository. The commands end with an error, and change nothing.
. "$(dirname "$0")/lib.sh"

user=12345
chmod a+x "$work"
mkdir "$work/home" "$work/tree"
head -c 3000000 /dev/urandom >"$work/tree/file"
chown -R $user "$work/home" "$work/tree"
repo=$work/home/repo
cp "$VARVE" "$work/varve"
as_user() { setpriv --reuid=$user --regid=$user --clear-groups env HOME="$work/home" XDG_STATE_HOME="$work/home/state" "$work/varve" "$@"; }
as_user -q init "$repo"
for version in 1 2; do
  head -c 500000 /dev/urandom >"$work/tree/$version"
  as_user -q store "$repo" s/$version "$work/tree"
done
as_user -q arrange --parity 5 "$repo"
state() { find "$repo" -type f ! -name '*.mdb' ! -name settled ! -path '*/check*' -printf '%P\n' | sort; }

tries=0
while read -r path; do
  [ -f "$path" ] || continue
  chown 0:0 "$path"
  chmod 600 "$path"
  before=$(state)
  for command in "check" "check --read-data" "repair --yes" "repair --yes --rebuild-catalog"; do
    got=0
    # shellcheck disable=SC2086
    as_user $command "$repo" >"$work/stdout" 2>"$work/stderr" || got=$?
    message=$(cat "$work/stderr")
    case "$got $command $path" in  # A command may need nothing from the file.
    "0 check --read-data "*.seg) fail "$path was not read" ;;
    0*) ;;
    1*) message_says 'permission denied.*owner' ;;
    *) fail "$command with $path ended with $got: $message" ;;
    esac
    ! grep -qiE 'damage[ds]?[: ]|missing|lost|repaired' "$work/stdout" || fail "$command with $path: $(cat "$work/stdout")"
    [ "$(state)" = "$before" ] || fail "$command with $path changed files: $(diff <(echo "$before") <(state))"
  done
  chown $user:$user "$path"
  tries=$((tries + 1))
done < <(find "$repo/series" "$repo/parity" -type f -size +0 ! -name '*.snap' 2>/dev/null | sort)
[ $tries -ge 3 ] || fail "only $tries files"
as_user check --read-data "$repo" >/dev/null
ok "$tries files that only root may read are no damage"
