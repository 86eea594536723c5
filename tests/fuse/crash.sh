#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# After a kill of the daemon at any moment, Varve has kept its promises, and work continues.
limit_s=170
. "$(dirname "$0")/lib.sh"
RANDOM=${VARVE_TEST_SEED:-4}

v=$mnt/s/v.partial
cp -a /usr/include/linux "$work/one"
head -c 6000000 /dev/urandom >"$work/one/random"
cp -a "$work/one" "$work/two"
find "$work/two" -name '*.h' | sort | awk 'NR % 20 == 0' | while read -r file; do
  echo "// more" >>"$file"
done
head -c 40000000 /dev/urandom >"$work/two/large"
backdate "$work/two"

sealed_versions_are_whole() {
  diff -r "$work/one" "$mnt/s/one"
  sealed "$mnt/s/one" || fail "one is not sealed any more"
}

"$VARVE" init "$repo"
mount_as_job
mkdir "$mnt/s"
cp -a "$work/one" "$mnt/s/one.partial"
mv -T "$mnt/s/one.partial" "$mnt/s/one"
kill_daemon
mount_as_job
sealed_versions_are_whole
ok "a version is on disk when mv -T returns"

mkdir "$v" "$v/dir"
cp "$work/two/random" "$v/dir/synced"
sync "$v/dir/synced"
kill_daemon
mount_as_job
cmp "$work/two/random" "$v/dir/synced"
ok "a file is on disk when fsync returns"

cp -a "$work/two/fs.h" "$v/old.h"
cp "$work/two/large" "$v/old-large"
exec 9>"$v/still-open"
cat "$work/two/random" >&9
wait_for_checkpoint "$v"
cp "$work/two/large" "$v/young" 2>/dev/null &
writer=$!
sleep 0.05
kill_daemon
exec 9>&- || true
wait $writer 2>/dev/null || true
mount_as_job
same_tree "$work/two/fs.h" "$v/old.h"
cmp "$work/two/large" "$v/old-large"
cmp "$work/two/random" "$v/still-open"
ok "what is older than a checkpoint is on disk, of files that are still open too"
if [ -e "$v/young" ]; then
  size=$(stat -c %s "$v/young")
  cmp -n "$size" "$work/two/large" "$v/young"
fi
ok "what is younger is a prefix at most"
cmp "$work/two/random" "$v/dir/synced"
sealed_versions_are_whole

for round in 1 2 3 4 5; do
  rsync -aHX "$work/two/" "$v/tree/" 2>/dev/null &
  writer=$!
  sleep "0.$((RANDOM % 80 + 10))"
  kill_daemon
  wait $writer 2>/dev/null || true
  "$VARVE" check "$repo" >"$work/check" || fail "check after kill $round: $(cat "$work/check")"
  mount_as_job
  sealed_versions_are_whole
done
ok "five kills in the middle of copying: check is clean, the sealed version whole"
rm -rf "$v/dir" "$v"/old* "$v/young" "$v/still-open"
rsync -aHX --delete "$work/two/" "$v/tree/"
no_rsync_difference "$work/two/" "$v/tree/"
ok "rsync brings the open version up to date after the kills"

for round in 1 2 3 4 5 6; do
  find "$v" \( -type f -o -type d \) -print0 | xargs -0 sync
  mv -T "$v" "$mnt/s/v$round" 2>/dev/null &
  writer=$!
  sleep "0.00$((RANDOM % 9 + 1))"
  kill_daemon
  wait $writer 2>/dev/null || true
  mount_as_job
  if [ -e "$mnt/s/v$round" ]; then
    [ ! -e "$v" ] || fail "sealed and open at once"
    no_rsync_difference "$work/two/" "$mnt/s/v$round/tree/"
    echo "kill $round: it was sealed"
    mkdir "$v"
    rsync -aHX "$work/two/" "$v/tree/"
  else
    no_rsync_difference "$work/two/" "$v/tree/"
    echo "kill $round: it was still open"
  fi
  sealed_versions_are_whole
done
ok "killed around a seal: the version is sealed or still open, and whole"
mv -T "$v" "$mnt/s/last"
kill_daemon
"$VARVE" ls "$repo" | grep -q s/last || fail "the last version is not listed"
ok "commands work beside the socket and the lock file that a killed daemon leaves"
"$VARVE" check --read-data "$repo"
"$VARVE" restore "$repo" s/last/tree "$work/restored"
no_rsync_difference "$work/two/" "$work/restored/"
ok "check finds nothing, and the last version comes back whole"
