#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Removed or replaced files and directories still exist for programs that have them open or use them
# as their working directory.
limit_s=60
. "$(dirname "$0")/lib.sh"

"$VARVE" init "$repo" >/dev/null
mount_repo
mkdir "$work/local" "$mnt/s"
mkdir "$mnt/s/v.partial"
python3 "$here/removed.py" "$work/local" 2>"$work/stderr" || fail "on the local file system: $(cat "$work/stderr")"
python3 "$here/removed.py" "$mnt/s/v.partial"
python3 "$here/removed.py" --version "$mnt"
ok "removed versions and series are told as removed directories"

# A test from rsync's own suite: --link-dest to a missing directory, through rrsync.
if [ -x /usr/bin/rrsync ] && which rsync >/dev/null; then
  mkdir "$work/source" && echo content >"$work/source/file"
  printf '#!/bin/sh\nshift\nSSH_ORIGINAL_COMMAND="$*" exec /usr/bin/rrsync "%s"\n' \
    "$mnt/s/v.partial" >"$work/ssh"
  chmod +x "$work/ssh"
  mkdir "$mnt/s/v.partial/to"
  rsync -a -e "$work/ssh" --link-dest=/missing "$work/source/" host:to/ 2>"$work/stderr" ||
    fail "rrsync: $? $(cat "$work/stderr")"
  [ "$(cat "$mnt/s/v.partial/to/file")" = content ]
  ok "rrsync with --link-dest to a missing directory works"
fi

# The daemon keeps them only as long as the kernel asks; afterwards they must not count as files.
for i in $(seq 500); do mkdir "$mnt/s/v.partial/d$i" && rmdir "$mnt/s/v.partial/d$i"; done
"$VARVE" -q seal "$mnt/s/v.partial" >/dev/null
unmount_repo
"$VARVE" -q check --read-data "$repo"
[ "$("$VARVE" ls "$repo" s/v | wc -l)" -le 4 ] || fail "$("$VARVE" ls "$repo" s/v)"
ok "nothing of it is sealed"
