#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `varve copy` to a real OpenSSH server, with keys, configuration and a port of its own on the loopback interface.
limit_s=120
. "$(dirname "$0")/../lib.sh"
PATH=$PATH:/usr/sbin
for program in sshd ssh ssh-keygen; do
  command -v "$program" >/dev/null || skip "$program is not installed"
done
[ "$(id -u)" -eq 0 ] || skip "needs root, which logs in by a key"
getent passwd sshd >/dev/null || skip "the user of OpenSSH's server is missing"
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true' EXIT

mkdir -p "$work/src/dir" "$work/remote" /run/sshd
head -c 3000000 /dev/urandom >"$work/src/dir/random"
seq 10000 >"$work/src/numbers"
"$VARVE" -q init "$repo"
"$VARVE" -q store "$repo" s/v1 "$work/src"

ssh-keygen -q -t ed25519 -N '' -f "$work/key"
ssh-keygen -q -t ed25519 -N '' -f "$work/host_key"
ssh-keygen -q -t ed25519 -N '' -f "$work/other_key"
start_server() {
  for _ in 1 2 3 4 5; do
    port=$((20000 + RANDOM % 20000))
    cat >"$work/sshd_config" <<END
Port $port
ListenAddress 127.0.0.1
HostKey $work/host_key
AuthorizedKeysFile $work/key.pub
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
PidFile none
UsePAM no
END
    "$(command -v sshd)" -D -e -f "$work/sshd_config" 2>"$work/sshd.log" &
    server=$!
    for _ in $(seq 100); do
      if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then return; fi
      kill -0 "$server" 2>/dev/null || break
      sleep 0.05
    done
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  done
  fail "no server starts: $(cat "$work/sshd.log")"
}
start_server
# The user's configuration names the machine, as for any other program that uses ssh.
configure() {  # KEY KNOWN-HOSTS
  cat >"$work/ssh_config" <<END
Host backup
  HostName 127.0.0.1
  Port $port
  User root
  IdentityFile $1
  IdentitiesOnly yes
  UserKnownHostsFile $2
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
  BatchMode yes
END
}
printf '[127.0.0.1]:%s %s\n' "$port" "$(cut -d' ' -f1,2 "$work/host_key.pub")" >"$work/known"
configure "$work/key" "$work/known"
there="$work/remote/it's a copy"
over_ssh() { "$VARVE" copy --ssh "ssh -F $work/ssh_config" --remote-program "$VARVE" "$@" "$repo" "ssh:backup:$there"; }

expect_status 0 over_ssh -n
[ ! -e "$there" ]
expect_status 0 over_ssh
"$VARVE" dump "$there" s/v1/dir/random | cmp - "$work/src/dir/random"
echo changed >>"$work/src/numbers"
"$VARVE" -q store "$repo" s/v2 "$work/src"
expect_status 0 over_ssh --json
sent=$(sed -n 's/.*"sent_bytes": *\([0-9]*\).*/\1/p' "$work/stdout")
[ "$sent" -gt 0 ] && [ "$sent" -lt 200000 ] || fail "sent $sent bytes for one line"
expect_status 0 over_ssh --verify
"$VARVE" -q rm "$repo" s/v1
expect_status 0 over_ssh --prune
[ "$("$VARVE" ls "$there")" = s/v2 ]
"$VARVE" check --read-data "$there" >"$work/checked"
"$VARVE" dump "$there" s/v2/numbers | cmp - "$work/src/numbers"
ok "copies through a real ssh arrive, the second one with what changed, and deletions follow"

# The connection breaks at any time, and the next copy goes on.
for i in 1 2 3; do
  head -c 20000000 /dev/urandom >"$work/src/more$i"
  "$VARVE" -q store "$repo" "s/w$i" "$work/src"
  over_ssh >/dev/null 2>&1 &
  copy=$!
  sleep "0.$((i * 2))"
  for session in $(pgrep -P "$server"); do kill -9 "$session" 2>/dev/null || true; done
  wait "$copy" || true
done
# The other end notices the end of its input, and lets go of the repository.
for _ in $(seq 100); do
  over_ssh >"$work/stdout" 2>"$work/stderr" && break
  grep -q 'in use' "$work/stderr" || fail "after breaks: $(cat "$work/stderr")"
  sleep 0.1
done
[ "$("$VARVE" ls "$there" | tr '\n' ' ')" = "s/v2 s/w1 s/w2 s/w3 " ]
"$VARVE" check --read-data "$there" >"$work/checked"
for i in 1 2 3; do "$VARVE" dump "$there" "s/w3/more$i" | cmp - "$work/src/more$i"; done
ok "a broken connection loses nothing, and the next copy goes on"

# A target that the other machine creates encrypted, with a key that only it has.
(umask 077; head -c 32 /dev/urandom >"$work/remote/key")
into_encrypted() {
  "$VARVE" copy --encrypt --ssh "ssh -F $work/ssh_config" "$repo" "ssh:backup:$work/remote/encrypted" "$@"
}
expect_status 12 into_encrypted --remote-program "$VARVE"
message_says 'on the machine of the target'
expect_status 0 into_encrypted --remote-program "env VARVE_KEY_FILE=$work/remote/key $VARVE"
expect_status 0 into_encrypted --remote-program "$VARVE --key-file $work/remote/key"
message_says 'copied 0 versions'
expect_status 12 "$VARVE" ls "$work/remote/encrypted" </dev/null
"$VARVE" --key-file "$work/remote/key" dump "$work/remote/encrypted" s/w3/more3 | cmp - "$work/src/more3"
"$VARVE" --key-file "$work/remote/key" check --read-data "$work/remote/encrypted" >"$work/checked"
ok "the other machine creates an encrypted copy, under a key that never leaves it"

configure "$work/other_key" "$work/known"
expect_status 1 over_ssh
message_says 'permission denied'
printf '[127.0.0.1]:%s %s\n' "$port" "$(cut -d' ' -f1,2 "$work/other_key.pub")" >"$work/wrong"
configure "$work/key" "$work/wrong"
expect_status 1 over_ssh
message_says 'host key verification failed'
kill "$server" && wait "$server" || true
server=
expect_status 1 over_ssh
message_says 'connection refused'
"$VARVE" check "$there" >"$work/checked"
ok "a wrong key, another host key and a missing server are errors of ssh that the user sees"
