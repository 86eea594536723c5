#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Many processes change one open version at once, while others write another series and read an old
# version. The result is consistent, and sealing and remounting do not alter it.
#
# VARVE_PARALLEL_SECONDS (10) and VARVE_TEST_SEED (1) set the length and the sequence.
seconds=${VARVE_PARALLEL_SECONDS:-6}
limit_s=$((150 + seconds * 6))
. "$(dirname "$0")/lib.sh"

"$VARVE" init "$repo"
mount_as_job
mkdir "$mnt/s" "$mnt/t"
mkdir "$mnt/s/old.partial"
cp -a /usr/include/linux/*.h "$mnt/s/old.partial/"
mv -T "$mnt/s/old.partial" "$mnt/s/old"
mkdir "$mnt/s/v.partial" "$mnt/t/v.partial"
python3 "$here/parallel.py" "$seconds" "${VARVE_TEST_SEED:-1}" \
  "$mnt/s/v.partial" "$mnt/t/v.partial" "$mnt/s/old" || fail "$(tail -3 "$work/daemon.log")"

for series in s t; do
  (cd "$mnt/$series/v.partial" && find . | sort) >"$work/first"
  (cd "$mnt/$series/v.partial" && find . | sort) >"$work/second"
  cmp "$work/first" "$work/second"
  cp -a "$mnt/$series/v.partial" "$work/copy-$series"
  same_tree --ignore holes "$work/copy-$series" "$mnt/$series/v.partial"
done
ok "two walks agree, and a copy of each open version equals it"
for series in s t; do
  mv -T "$mnt/$series/v.partial" "$mnt/$series/v"
  same_tree --ignore holes "$work/copy-$series" "$mnt/$series/v"
done
ok "the sealed versions are what the open ones were"
unmount_repo
wait "$daemon"
"$VARVE" check --read-data "$repo"
mount_repo
for series in s t; do same_tree --ignore holes "$work/copy-$series" "$mnt/$series/v"; done
unmount_repo
ok "and so they are in another mount; check finds nothing"
