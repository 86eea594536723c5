#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tar, and a line for cron with its small environment: docs/RECIPES.md.
limit_s=60
. "$(dirname "$0")/../lib.sh"
command -v rsync >/dev/null || skip "rsync is not installed"

mkdir -p "$work/src/dir"
head -c 200000 /dev/urandom >"$work/src/dir/random"
ln "$work/src/dir/random" "$work/src/dir/link"
"$VARVE" init "$repo" 2>/dev/null
mount_repo
mkdir "$mnt/s"
tar --format=posix -C "$work" -cf "$work/d.tar" src
"$VARVE" -q open "$mnt/s/v1.partial"
tar -C "$mnt/s/v1.partial" -xpf "$work/d.tar"
mv -T "$mnt/s/v1.partial" "$mnt/s/v1"
tar -C "$mnt/s/latest" -df "$work/d.tar"
same_tree --ignore holes "$work/src" "$mnt/s/v1/src"
ok "tar fills a version, and finds no difference in it"

# The lines of a user's crontab. % is special there, so the name is made in a script.
cat >"$work/backup" <<END
#!/bin/sh -e
m=$mnt/s v=\$(date -u +%Y-%m-%dT%H%M%SZ)
rm -rf "\$m/"*.partial
"$VARVE" -q open "\$m/\$v.partial"
rsync -aHAX --link-dest="\$m/latest/src/" $work/src/ "\$m/\$v.partial/src/"
mv -T "\$m/\$v.partial" "\$m/\$v"
"$VARVE" -q prune --keep-last 2 --keep-daily 7 "\$m"
END
chmod +x "$work/backup"
mkdir "$mnt/s/interrupted.partial"
echo left >"$mnt/s/interrupted.partial/file"
echo new >"$work/src/new"
backdate "$work/src"
env -i HOME=/ LOGNAME=root SHELL=/bin/sh PATH=/usr/bin:/bin /bin/sh -c "$work/backup" \
  >"$work/mail" 2>&1 || fail "$(cat "$work/mail")"
no_rsync_difference "$work/src/" "$mnt/s/latest/src/"
[ "$(find "$mnt/s" -mindepth 1 -maxdepth 1 -type d | wc -l)" -eq 2 ] || fail "$(ls "$mnt/s")"
ok "a cron job links, seals, prunes, and removes what an interrupted one left"

# While nothing is mounted, also where an earlier mistake left folders below the mount point.
unmount_repo
mkdir "$mnt/s"
for home in '' "$repo"; do
  expect_status 2 env -i VARVE_REPO="$home" PATH=/usr/bin:/bin /bin/sh -c "$work/backup"
  [ -z "$(ls -A "$mnt/s")" ] || fail "files below the mount point: $(ls -A "$mnt/s")"
done
message_says "$mnt/s/.*partial"
expect_status 0 "$VARVE" mount "$repo" "$mnt"
message_says "mount point $mnt is not empty.*hides the files"
unmount_repo
rmdir "$mnt/s"
expect_status 0 "$VARVE" mount "$repo" "$mnt"
[ -z "$message" ] || fail "$message"
unmount_repo
ok "without the mount, the job is an error and writes nothing; a mount that hides files warns"
