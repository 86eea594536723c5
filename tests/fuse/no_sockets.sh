#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A repository on a file system without Unix sockets: the daemon listens elsewhere, and commands
# find it there. They do not trust another user's process that listens there.
. "$(dirname "$0")/lib.sh"

: "${VARVE_NO_SOCKETS:?is the path of the library that fails bind(2)}"
user=65534
chmod 711 "$work"
mkdir "$work/tree"
echo content >"$work/tree/file"
plainly() { LD_PRELOAD=$VARVE_NO_SOCKETS "$@"; }
all_commands_work() {
  plainly mount_repo
  [ ! -e "$repo/control.sock" ]
  expect_status 11 "$VARVE" mount "$repo" "$work/tree"
  mkdir -p "$mnt/s/one"
  cp "$work/tree/file" "$mnt/s/one/"
  "$VARVE" seal "$mnt/s/one" >/dev/null
  sealed "$mnt/s/one"
  "$VARVE" open "$repo" s/two >/dev/null
  "$VARVE" seal "$repo" s/two >/dev/null
  "$VARVE" rm "$mnt/s/two" >/dev/null
  "$VARVE" prune --keep-last 1 "$repo" >/dev/null
  [ "$(ls "$mnt/s" | tr '\n' ' ')" = "latest one " ]
  "$VARVE" umount "$repo"
  "$VARVE" -q store "$repo" s/three "$work/tree"
  "$VARVE" -q restore "$repo" s/three "$work/restored"
  cmp "$work/tree/file" "$work/restored/file"
  "$VARVE" rm "$repo" s/one s/three >/dev/null
  rm -rf "$work/restored"
}

"$VARVE" init "$repo" >/dev/null
all_commands_work
if [ -d /run/varve ]; then
  [ "$(stat -c '%a %u' /run/varve)" = "700 0" ]
  # Other programs of the machine may have sockets there.
  left=/run/varve/$(printf '%x-%x.sock' $(stat -c '%d %i' "$repo"))
  [ ! -e "$left" ] || fail "a socket is left over: $left"
fi
ok "mount, seal, open, rm, prune, umount, store and restore work with the socket below /run"

export VARVE_ABSTRACT_ONLY=1
all_commands_work
ok "and with an abstract socket"

# Another user's process takes the name first, and answers.
name=$(printf 'varve/0/%x-%x.sock/0' $(stat -c '%d %i' "$repo"))
setpriv --reuid=$user --regid=$user --clear-groups env PATH=/usr/bin:/bin python3 -c '
import socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind("\0" + sys.argv[1])
server.listen()
print("listening", flush=True)
while True:
    client = server.accept()[0]
    try:
        client.sendall(b"{\"ok\":true}\n")
    except OSError:
        pass
' "$name" >"$work/squatter" &
squatter=$!
wait_until "the other user listens" grep -q listening "$work/squatter"
all_commands_work
expect_status 1 "$VARVE" umount "$repo"
message_says "not mounted"
kill $squatter
ok "what another user says at the daemon's address is not believed"

# A user's own repository, which root may maintain.
unset VARVE_ABSTRACT_ONLY
as_user() { setpriv --reuid=$user --regid=$user --clear-groups env PATH=/usr/bin:/bin "$@"; }
if ! users_mount; then
  skip_part "a user's mount: users cannot open /dev/fuse here, or there is no /etc/mtab"
  exit 0
fi
install -d -o $user "$work/users" "$work/users/mnt"
cp "$VARVE" "$work/varve"  # The user may not reach the folder of the program.
VARVE=$work/varve
as_user "$VARVE" init "$work/users/repo" >/dev/null
cp "$VARVE_NO_SOCKETS" "$work/users/no_sockets.so"
as_user LD_PRELOAD="$work/users/no_sockets.so" "$VARVE" mount "$work/users/repo" "$work/users/mnt"
as_user mkdir -p "$work/users/mnt/s/one"
# The user controls the folder and the daemon, so root's command uses them only if root says so.
expect_status 1 "$VARVE" seal "$work/users/repo" s/one
message_says "belongs to user $user.*as the repository's owner.*VARVE_TRUST=$work/users/repo"
[ "$(as_user getfattr --absolute-names --only-values -n user.varve.state "$work/users/mnt/s/one")" = open ]
export VARVE_TRUST=$work/users/repo
"$VARVE" seal "$work/users/repo" s/one >/dev/null
[ "$(as_user getfattr --absolute-names --only-values -n user.varve.state "$work/users/mnt/s/one")" = sealed ]
"$VARVE" open "$work/users/repo" s/two >/dev/null
"$VARVE" seal "$work/users/repo" s/two >/dev/null
# Commands that read the catalog themselves do so only while the user's daemon does not write to it.
for command in "rm $work/users/repo s/one" "prune --lock-wait 0s --keep-last 1 $work/users/repo"; do
  # shellcheck disable=SC2086
  expect_status 11 "$VARVE" $command
  message_says "sudo -u '#$user' varve"
done
[ "$(as_user ls "$work/users/mnt/s" | tr '\n' ' ')" = "latest one two " ]
[ -z "$(find "$work/users/repo" ! -user $user)" ] || fail "root made files: $(find "$work/users/repo" ! -user $user)"
as_user "$VARVE" rm "$work/users/mnt/s/two" >/dev/null
as_user "$VARVE" umount "$work/users/mnt"
ok "root's seal and open reach the daemon of a user, if root trusts the repository"
