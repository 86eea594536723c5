#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A repository's folder is moved while a daemon has it mounted.
limit_s=60
. "$(dirname "$0")/lib.sh"

"$VARVE" init "$repo" 2>/dev/null
mount_as_job
mkdir -p "$mnt/s/one" && echo before >"$mnt/s/one/a"
moved=$work/elsewhere
mv "$repo" "$moved"
echo after >"$mnt/s/one/b"
sync -f "$mnt"
named() { grep -q "was moved from $repo to $moved" "$work/daemon.log"; }
wait_until "the log names the move" named
[ "$(getfattr --only-values -n user.varve.repository "$mnt" 2>/dev/null)" = "$moved" ] ||
  fail "the mount tells the old path"
ok "the log and the mount's attribute tell where the repository is now"

"$VARVE" seal "$mnt/s/one" >/dev/null
"$VARVE" ls "$moved" s | grep -q 's/one' || fail "the version is not sealed"
expect_status 10 "$VARVE" ls "$repo" s
mkdir "$mnt/s/two" && echo two >"$mnt/s/two/c"
"$VARVE" rm "$moved" s/one >/dev/null
[ ! -e "$mnt/s/one" ]
ok "paths in the mount and the new path reach the daemon; the old path is no repository"

# Another repository takes the old path: commands that name a path in the mount must not touch it.
"$VARVE" init "$repo" 2>/dev/null
"$VARVE" -q store "$repo" s/two "$moved/series"
expect_status 0 "$VARVE" seal "$mnt/s/two"
"$VARVE" stat "$moved" s/two | grep -q 'sealed' || fail "the moved repository's version is open"
"$VARVE" umount "$mnt"
wait "$daemon"
"$VARVE" check "$moved" >/dev/null
"$VARVE" check "$repo" >/dev/null
"$VARVE" -q restore "$moved" s/two "$work/out"
[ "$(cat "$work/out/c")" = two ]
ok "a repository that takes the old path is left alone, and nothing is lost"
