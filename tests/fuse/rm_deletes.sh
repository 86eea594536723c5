#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# -o rm_deletes: programs remove sealed versions by rm -r, rsync --delete and the like. A version
# goes as a whole or not at all, whatever interrupts the removal.
limit_s=60
. "$(dirname "$0")/lib.sh"

mkdir -p "$work/tree/a/b" "$work/empty"
for i in 1 2 3; do
  echo "f$i" >"$work/tree/f$i"
  echo "g$i" >"$work/tree/a/g$i"
  echo "h$i" >"$work/tree/a/b/h$i"
done
chmod 777 "$work/tree" "$work/tree/a" "$work/tree/a/b"
"$VARVE" init "$repo" 2>/dev/null

add() {  # NAME…
  local name
  for name in "$@"; do
    cp -a "$work/tree" "$mnt/s/$name.partial"
    mv -T "$mnt/s/$name.partial" "$mnt/s/$name"
  done
}
versions() { "$VARVE" ls --json "$repo" s | python3 -c '
import json, sys
print(*[json.loads(line)["version"] for line in sys.stdin])'; }
complete() { diff -r "$work/tree" "$mnt/s/$1"; }

export VARVE_TEST_CLOCK=$work/clock
echo 0 >"$VARVE_TEST_CLOCK"
LD_PRELOAD=${VARVE_SHIFTED_CLOCK:-} mount_as_job -o rm_deletes=2,allow_other
mkdir "$mnt/s"
add v1 v2 v3 v4
# The kernel caches these names for a day.
find "$mnt/s" >/dev/null
rm -rf "$mnt/s/v2"
[ "$(versions)" = "v1 v3 v4" ] || fail "rm -rf: $(versions)"
python3 -c 'import shutil, sys; shutil.rmtree(sys.argv[1])' "$mnt/s/v4"
[ "$(versions) $(readlink "$mnt/s/latest")" = "v1 v3 v3" ] || fail "rmtree: $(versions)"
rsync -a --delete "$work/empty/" "$mnt/s/v3/"
rmdir "$mnt/s/v3"
[ "$(versions) $(readlink "$mnt/s/latest")" = "v1 v1" ] || fail "rsync --delete: $(versions)"
ok "rm -rf, shutil.rmtree, and rsync --delete with rmdir delete versions; latest follows"

rm -rf "$mnt/s/v1/a"
expect_status 2 ls "$mnt/s/v1/a"
expect_status 1 rmdir "$mnt/s/v1"
message_says 'not empty'
[ "$(echo "$mnt/s/v1/"*)" = "$mnt/s/v1/f1 $mnt/s/v1/f2 $mnt/s/v1/f3" ] || fail "the listing"
echo 7200 >"$VARVE_TEST_CLOCK"
[ ! -e "$mnt/s/v1/a" ] || fail "a jump of the wall clock ends the removal"
"$VARVE" -q restore "$repo" s/v1 "$work/restored"
diff -r "$work/tree" "$work/restored"
echo 0 >"$VARVE_TEST_CLOCK"
wait_until "the version is complete again" test -e "$mnt/s/v1/a/b/h3"
complete v1
grep -q 'stopped for 2 seconds' "$work/daemon.log" || fail "the log does not say so"
ok "a removal that stops loses nothing: commands see all, and after the time the mount does too"

# A process stays in a directory that is removed and comes back.
(
  cd "$mnt/s/v1/a/b"
  rm -rf "$mnt/s/v1/a"
  wait_until "the version is complete again" test -e "$mnt/s/v1/a/b/h3"
  complete v1
)
complete v1
ok "a directory that is in use when it is removed comes back too"

find "$mnt/s/v1/a" -delete
add v2
rm -f "$mnt/s/v2/f1"
kill_daemon
LD_PRELOAD=${VARVE_SHIFTED_CLOCK:-} mount_as_job -o rm_deletes=60,allow_other
complete v1
complete v2
"$VARVE" -q check "$repo"
ok "kill -9 of the daemon in the middle loses nothing"

"$VARVE" lock --until 2099-01-01 "$repo" s/v1 >/dev/null
expect_status 1 rm -rf "$mnt/s/v1"
message_says 'not permitted'
complete v1
[ "$(grep -c 'cannot remove s/v1: v1 is locked' "$work/daemon.log")" -eq 1 ] || fail "the log"
"$VARVE" clone "$repo" s/v2 s/v3.partial >/dev/null 2>&1
expect_status 1 rm -rf "$mnt/s/v2"
message_says 'busy'
complete v2
"$VARVE" rm "$repo" s/v3.partial >/dev/null
if id nobody >/dev/null 2>&1; then
  expect_status 1 setpriv --reuid nobody --clear-groups rm -rf "$mnt/s/v2"
  message_says 'permission denied'
  complete v2
fi
expect_status 1 rm "$mnt/s/latest"
message_says 'not permitted'
ok "a lock, an open version on it, another user and latest are refused, and nothing is hidden"

exec 8<"$mnt/s/v2/a/g1"
expect_status 1 rm -rf "$mnt/s/v2"
message_says 'busy'
[ "$(cat <&8)" = g1 ] || fail "the reader lost its file"
exec 8<&-
[ "$(versions)" = "v1 v2" ] || fail "$(versions)"
rmdir "$mnt/s/v2"
[ "$(versions)" = v1 ] || fail "$(versions)"
ok "a file that is being read keeps its version; the next rmdir deletes it"

expect_status 1 touch "$mnt/s/v1/new"
message_says 'read-only'
expect_status 1 mv "$mnt/s/v1/f1" "$mnt/s/v1/f9"
message_says 'read-only'
unmount_repo
mount_repo
add v5
expect_status 1 rm -rf "$mnt/s/v5"
message_says 'read-only'
complete v5
unmount_repo
"$VARVE" -q check "$repo"
ok "all other changes, and mounts without the option, are refused"
