#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# -o beside: files, links and folders of backup programs beside the versions of a series.
limit_s=60
. "$(dirname "$0")/lib.sh"

"$VARVE" init "$repo" 2>/dev/null
mount_repo
mkdir "$mnt/s"
expect_status 1 touch "$mnt/s/file"
message_says 'not permitted'
expect_status 1 ln -s v1 "$mnt/s/link"
message_says 'not permitted'
unmount_repo
expect_status 2 mount_repo -o 'beside=*'
message_says 'patterns of folders'
ok "without the option a series has only versions; a pattern for all names is refused"

mount_as_job -o 'beside=dirvish:log*,allow_other'
s=$mnt/s
echo text >"$s/backup.marker"
mkdir "$s/dirvish" "$s/logs"
echo one >"$s/dirvish/default.hist"
echo two >>"$s/dirvish/default.hist"
[ "$(cat "$s/dirvish/default.hist")" = $'one\ntwo' ] || fail "appending"
expect_status 1 mkdir "$s/dirvish/deeper"
message_says 'not permitted'
mkdir "$s/v1"
[ "$(state_of "$s/v1")" = open ] || fail "v1 is no version"
"$VARVE" -q seal "$s/v1" >/dev/null
[ "$(cd "$s" && echo *)" = "backup.marker dirvish latest logs v1" ] || fail "$(ls "$s")"
"$VARVE" ls "$repo" s | grep -q dirvish && fail "a folder is listed as a version"
chmod 640 "$s/backup.marker"
chown 12:34 "$s/backup.marker"
touch -d '2020-02-02 02:02:02 UTC' "$s/backup.marker"
[ "$(stat -c '%a %u %g %s %Y' "$s/backup.marker")" = "640 12 34 5 1580608922" ] || fail "attributes"
sed -i 's/text/other/' "$s/backup.marker"
[ "$(cat "$s/backup.marker")" = other ] || fail "sed -i"
mv "$s/backup.marker" "$s/dirvish/marker"
mv -T "$s/dirvish/marker" "$s/marker"
expect_status 1 mv -T "$s/v1" "$s/logs"
expect_status 1 mv -T "$s/marker" "$s/v1"
expect_status 1 mv "$s/v1" "$s/dirvish/"
expect_status 1 mv -T "$s/dirvish" "$s/other"
message_says 'not permitted'
[ "$(cat "$s/marker")" = other ] && sealed "$s/v1"
mkfifo "$s/pipe" 2>/dev/null && fail "a pipe"
rsync -a "$s/dirvish/" "$work/copy/"
rsync -a "$work/copy/" "$s/logs/"
diff -r "$s/dirvish" "$s/logs"
rm -r "$s/logs"
[ ! -e "$s/logs" ] || fail "logs is still there"
ok "files and folders are written, renamed, copied and removed by plain tools"

ln -sfn v1 "$s/current"
ln -sfn v2 "$s/current"
[ "$(readlink "$s/current")" = v2 ] || fail "ln -sfn"
[ "$(readlink "$s/latest")" = v1 ]
ln -sfn own "$s/latest"
[ "$(readlink "$s/latest")" = own ] || fail "a program's own latest"
rm "$s/latest"
[ ! -L "$s/latest" ] || fail "latest was removed"
ln -s v1 "$s/latest"
mkdir "$s/v2"
"$VARVE" -q seal "$s/v2" >/dev/null
[ "$(readlink "$s/latest")" = v1 ] || fail "a seal changes the program's link"
rm "$s/latest"
ok "links are replaced by ln -sfn, and a program may have its own latest"

exec 7>>"$s/marker"
echo more >&7
sync "$s/marker"
echo lost >"$s/dirvish/kept"
kill_daemon
exec 7>&-
mount_as_job
s=$mnt/s
[ "$(cat "$s/marker")" = $'other\nmore' ] || fail "after a kill: $(cat "$s/marker")"
[ "$(cat "$s/dirvish/kept")" = lost ] || fail "a closed file is lost"
[ "$(readlink "$s/latest")" = v2 ] || fail "latest is Varve's again"
expect_status 1 touch "$s/new"
echo changed >"$s/marker"
rm "$s/marker"
ok "fsync and close make files durable; without the option the present ones still work"
if id nobody >/dev/null 2>&1; then
  unmount_repo
  mount_as_job -o beside,allow_other
  expect_status 1 setpriv --reuid nobody --clear-groups touch "$mnt/s/theirs"
  message_says 'permission denied'
  expect_status 1 setpriv --reuid nobody --clear-groups rm -f "$mnt/s/dirvish/kept"
  ok "another user may not"
fi

expect_status 1 dd if=/dev/zero of="$mnt/s/dirvish/big" bs=64K count=17 status=none
message_says 'too large'
rm "$mnt/s/dirvish/big"
expect_status 1 "$VARVE" open "$repo" s/dirvish
message_says 'choose another name'
unmount_repo
mount_repo -o ro
[ "$(cat "$mnt/s/dirvish/kept")" = lost ] || fail "a read-only mount"
unmount_repo
rm -rf "$repo/catalog"
"$VARVE" -q repair --yes "$repo" >/dev/null
mount_repo
[ "$(cat "$mnt/s/dirvish/kept")" = lost ] || fail "after a rebuilt catalog"
expect_status 1 rmdir "$mnt/s"
unmount_repo
"$VARVE" check "$repo" >"$work/check"
if grep -i beside "$work/check"; then fail "check does not know the file"; fi
echo damage >>"$repo/series/00000001/beside"
expect_status 1 "$VARVE" check "$repo"
grep -q 'restore the file from a copy' "$work/stdout" "$work/stderr" || fail "check: $message"
cp -a "$repo" "$work/repaired"
expect_status 3 "$VARVE" repair --yes "$work/repaired"
grep -q '^beside: .*/series/00000001/beside: ' "$work/stdout" || fail "repair: $(cat "$work/stdout")"
grep -q '^lost: the programs. files .*/beside.damaged-1' "$work/stdout" || fail "$(cat "$work/stdout")"
cmp "$repo/series/00000001/beside" "$work/repaired/series/00000001/beside.damaged-1"
"$VARVE" check "$work/repaired" >"$work/check" || fail "the repaired repository has damage"
if grep -i beside "$work/check"; then fail "check does not know the file that the repair put away"; fi
expect_status 0 "$VARVE" repair --yes "$work/repaired"
mount_repo -o beside
[ ! -e "$mnt/s/dirvish" ] && [ -d "$mnt/s/v2" ] || fail "a damaged file stops the series"
expect_status 1 touch "$mnt/s/new"
mkdir "$mnt/s/v3"
unmount_repo
ok "limits, read-only mounts, a rebuilt catalog, damage and check"
