#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A user unmounts by fusermount3. `varve umount` repeats why fusermount3 refuses, and guesses nothing.
. "$(dirname "$0")/lib.sh"

users_mount || skip "users cannot open /dev/fuse here, or there is no /etc/mtab"
user=65534
programs=/usr/bin:/bin
as_user() { setpriv --reuid=$user --regid=$user --clear-groups env HOME="$work/users" PATH="$programs" "$@"; }
chmod 711 "$work"
install -d -o $user "$work/users" "$work/users/mnt"
cp "$VARVE" "$work/varve"  # The user may not reach the folder of the program.
VARVE=$work/varve
mnt=$work/users/mnt
as_user "$VARVE" -q init "$work/users/repo"
as_user "$VARVE" mount "$work/users/repo" "$mnt"

# Another user, also root, cannot look at the mount point.
is_mounted() { grep -q " $mnt " /proc/self/mountinfo; }
mkdir "$work/bin"
cat >"$work/bin/fusermount3" <<END
#!/bin/sh
echo "fusermount3: entry for $mnt not found in /etc/mtab" >&2
exit 1
END
chmod 755 "$work/bin" "$work/bin/fusermount3"
programs=$work/bin:$programs
expect_status 1 as_user "$VARVE" umount "$mnt"
message_says "$mnt is not unmounted: fusermount3: entry for $mnt not found in /etc/mtab"
! grep -q 'in use' <<<"$message" || fail "$message"
is_mounted
printf '#!/bin/sh\nkill -9 $$\n' >"$work/bin/fusermount3"
expect_status 1 as_user "$VARVE" umount "$mnt"
message_says "is not unmounted: fusermount3 ended without a message"
programs=$work
expect_status 1 setpriv --reuid=$user --regid=$user --clear-groups env -i PATH="$work" "$VARVE" umount "$mnt"
message_says 'cannot run fusermount3 .*package fuse3'
programs=/usr/bin:/bin
ok "umount says what fusermount3 says, or that there is none"

setpriv --reuid=$user --regid=$user --clear-groups sh -c 'cd "$0" && exec sleep 1000' "$mnt" &
user_process=$!
is_inside() { [ "$(readlink /proc/$user_process/cwd)" = "$mnt" ]; }
wait_until "a process is in the mount" is_inside
expect_status 1 as_user "$VARVE" umount "$mnt"
message_says "$mnt is in use: leave the directory and close its files"
[ "$(grep -c . "$work/stderr")" -eq 1 ] || fail "fusermount3 speaks, too: $message"
kill $user_process
wait $user_process || true
as_user "$VARVE" umount "$mnt"
! is_mounted || fail "it is still mounted"
as_user "$VARVE" -q check "$work/users/repo"
ok "a mount in use is named as such, in one line, and a user unmounts a free one"
