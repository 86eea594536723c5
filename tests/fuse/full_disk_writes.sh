#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Random writes on a disk that gets full. The writer gets an error. Accepted data never reads as
# zeros: neither at once, nor after a kill, nor in the sealed version.
limit_s=280
. "$(dirname "$0")/lib.sh"

repo_on_disk 160
v=$mnt/s/v.partial
"$VARVE" init --compression none "$repo"
fallocate -l 40M "$work/disk/ballast"
mount_as_job
mkdir "$mnt/s" "$v"
writes() { python3 "$here/full_disk_writes.py" "$@"; }

writes fill "$v" "$work/state" || fail "$(tail -3 "$work/daemon.log")"
kill_daemon
mount_as_job
writes check "$v" "$work/state"
ok "killed on a full disk: what fsync promised is there"
rm "$work/disk/ballast"
writes check "$v" "$work/state"
head -c 3000000 /dev/urandom >"$work/more"
cp "$work/more" "$v/more"
sync "$v/more"
wait_until "the version is sealed" mv -T "$v" "$mnt/s/v" 2>"$work/stderr"
writes check "$mnt/s/v" "$work/state"
cmp "$work/more" "$mnt/s/v/more"
unmount_repo
wait "$daemon"
"$VARVE" check --read-data "$repo"
mount_repo -o ro
writes check "$mnt/s/v" "$work/state"
unmount_repo
ok "with space again the version is sealed, and all of it is there"
