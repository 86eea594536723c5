#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Versions as "Previous Versions" of a Samba share, by the module shadow_copy2: docs/RECIPES.md.
limit_s=60
. "$(dirname "$0")/../lib.sh"
export PATH=$PATH:/usr/sbin
command -v smbd >/dev/null || skip "smbd is not installed"
command -v smbclient >/dev/null || skip "smbclient is not installed"
[ -n "$(find / -xdev -path '*/samba/vfs/shadow_copy2.so' -print -quit 2>/dev/null)" ] ||
  skip "the module shadow_copy2 is not installed"

mkdir -p "$work/share/dir" "$work/smb/private"
"$VARVE" init "$repo" 2>/dev/null
mount_repo -o allow_other
mkdir "$mnt/share"
for n in 1 2; do
  seq "$n" >"$work/share/dir/file"
  name=2024-0$n-01T120000Z
  cp -a "$work/share" "$mnt/share/$name.partial"
  mv -T "$mnt/share/$name.partial" "$mnt/share/$name"
done
echo now >"$work/share/dir/file"

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >"$work/smb.conf" <<END
[global]
  private dir = $work/smb/private
  lock directory = $work/smb
  state directory = $work/smb
  cache directory = $work/smb
  pid directory = $work/smb
  ncalrpc dir = $work/smb/ncalrpc
  log file = $work/smb/log
  interfaces = 127.0.0.1
  bind interfaces only = yes
  smb ports = $port
  map to guest = Bad User
  guest account = $(id -un)
  load printers = no
  disable spoolss = yes
[share]
  path = $work/share
  guest ok = yes
  read only = no
  vfs objects = shadow_copy2
  shadow:snapdir = $mnt/share
  shadow:basedir = $work/share
  shadow:format = %Y-%m-%dT%H%M%SZ
  shadow:sort = desc
END
smbd -F -s "$work/smb.conf" >"$work/smbd.log" 2>&1 &
smbd=$!
client() { smbclient -N -p "$port" -s "$work/smb.conf" //127.0.0.1/share -c "$1" 2>&1; }
answers() { client ls >/dev/null; }
wait_until "Samba answers" answers
client 'allinfo dir\file' >"$work/info"
grep -q '@GMT-2024.01.01-12.00.00' "$work/info" || fail "$(cat "$work/info" "$work/smb/log"*)"
grep -q '@GMT-2024.02.01-12.00.00' "$work/info" || fail "$(cat "$work/info")"
client "get @GMT-2024.02.01-12.00.00\\dir\\file $work/got" >/dev/null
[ "$(cat "$work/got")" = $'1\n2' ] || fail "an old version of the file"
client "get dir\\file $work/got" >/dev/null
[ "$(cat "$work/got")" = now ] || fail "the present file"
kill "$smbd"
wait "$smbd" 2>/dev/null || true
unmount_repo
ok "Samba lists two versions of a file, and serves the old one"
