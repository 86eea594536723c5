#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Operations that the mount must refuse, and their errno.
limit_s=60
. "$(dirname "$0")/lib.sh"

"$VARVE" init "$repo"
mount_repo -o autoseal=0
python3 "$here/misuse.py" "$mnt"

rm -rf "$mnt/s/one" 2>"$work/rm" && fail "rm -rf of a sealed version succeeded"
[ "$(cat "$mnt/s/one/dir/file")" = content ] || fail "rm -rf has destroyed a sealed version"
find "$mnt/s/one" -delete 2>"$work/find" && fail "find -delete succeeded"
[ "$(cat "$mnt/s/one/dir/file")" = content ] || fail "find -delete has destroyed something"
for program in rm find; do
  [ -s "$work/$program" ] || fail "$program says nothing"
  grep -v 'Read-only file system$' "$work/$program" && fail "$program met another error"
done
ok "rm -rf and find -delete leave a sealed version whole, and say that it is read-only"

mkdir "$mnt/s/busy.partial"
exec 9>"$mnt/s/busy.partial/file"
expect_status 1 "$VARVE" seal "$repo" s/busy.partial
message_says 'busy|open'
exec 9>&-
"$VARVE" seal "$repo" s/busy.partial
sealed "$mnt/s/busy" || fail "not sealed after its writer has closed"
ok "varve seal refuses while a file is open for writing"
expect_status 1 "$VARVE" seal "$repo" s/busy
expect_status 1 "$VARVE" seal "$repo" s/nothing
for number in -1 few 1.5; do
  expect_status 2 "$VARVE" prune --keep-last "$number" "$repo" s
  message_says '--keep-last.*: the option takes a whole number'
done
expect_status 1 "$VARVE" seal "$repo" nothing/one
expect_status 1 "$VARVE" restore "$repo" s/nothing "$work/out"
expect_status 1 "$VARVE" init "$repo"
message_says 'repository|empty'
expect_status 2 "$VARVE" init --placement forest "$work/placed"
message_says 'lineage, lineage\+pool, pool'
[ ! -e "$work/placed" ] || fail "a refused init made the folder"
ok "commands refuse what does not exist, is sealed already or is taken"
unmount_repo
"$VARVE" check "$repo"
ok "check finds nothing"

if unshare -m true 2>/dev/null; then
  mount_repo
  unshare -m --propagation private sleep 7 &
  holder=$!
  until [ "$(cat /proc/$holder/comm)" = sleep ]; do sleep 0.1; done
  expect_status 0 "$VARVE" umount "$mnt"
  message_says "process $holder \(sleep\) has a mount namespace of its own"
  wait "$holder"
  ok "umount says which process keeps the mount in another namespace"
else
  skip_part "umount beside another namespace: none can be made here"
fi
