#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where a key comes from: files that others can reach, two places at once, commands that leave
# processes behind, and signals while a terminal is asked.
limit_s=240
. "$(dirname "$0")/lib.sh"

umask 077
secret='a few words'
pass=$work/pass
echo "$secret" >"$pass"
head -c 64 /dev/urandom >"$work/file"
"$VARVE" -q init --encrypt --passphrase-file "$pass" --key-cost 8M:1:1 "$repo"
"$VARVE" -q key add --passphrase-file "$pass" --new-key-file "$work/file" "$repo"
mkdir "$work/source"
echo content >"$work/source/file"
"$VARVE" -q store --passphrase-file "$pass" "$repo" s/one "$work/source" >/dev/null
opens() { "$VARVE" ls "$@" "$repo" >/dev/null; }
refused() {  # TEXT COMMAND…
  local text=$1
  shift
  expect_status 1 "$@"
  message_says "$text"
}

for mode in 640 620 604 602 660; do
  chmod "$mode" "$pass" "$work/file"
  refused 'chmod 600' "$VARVE" ls --passphrase-file "$pass" "$repo"
  refused 'chmod 600' "$VARVE" ls --key-file "$work/file" "$repo"
  refused 'chmod 600' "$VARVE" key add --key-file - --new-passphrase-file "$pass" "$repo" <"$work/file"
done
chmod 600 "$pass" "$work/file"
chown 65534 "$pass"
refused 'another user .uid 65534.*chown 0 ' "$VARVE" ls --passphrase-file "$pass" "$repo"
chown 0 "$pass"
opens --passphrase-file "$pass"
ok "a file with a key that others can read or change, or that another user owns, is refused"

mkdir "$work/credentials"
for mode in 400 440 600; do
  rm -f "$work/credentials/"*
  install -m "$mode" "$pass" "$work/credentials/varve.passphrase"
  CREDENTIALS_DIRECTORY=$work/credentials opens
  CREDENTIALS_DIRECTORY=$work/credentials opens --passphrase-file "$work/credentials/varve.passphrase"
done
chmod 460 "$work/credentials/varve.passphrase"
refused 'chmod 600' env CREDENTIALS_DIRECTORY="$work/credentials" "$VARVE" ls "$repo"
opens --passphrase-file <(cat "$pass")
mkfifo "$work/fifo"
cat "$pass" >"$work/fifo" &
opens --passphrase-file "$work/fifo"
wait $!
cp "$pass" "$work/gone"
chmod 644 "$work/gone"
exec 7<"$work/gone"
rm "$work/gone"
opens --passphrase-file /dev/fd/7
exec 7<&-
opens --passphrase-file - <"$pass"
ok "credentials of the service manager, pipes and open files without a name are taken"

expect_status 2 "$VARVE" ls --passphrase-file "$pass" --key-file "$work/file" "$repo"
message_says '.--passphrase-file and --key-file both name the key'
expect_status 2 "$VARVE" key add --passphrase-file "$pass" --new-key-file x --new-key-command y "$repo"
message_says '.--new-key-file and --new-key-command both'
expect_status 2 env VARVE_PASSPHRASE_FILE="$pass" VARVE_KEY_FILE="$work/file" "$VARVE" ls "$repo"
message_says 'VARVE_PASSPHRASE_FILE and VARVE_KEY_FILE both name the key'
expect_status 2 env VARVE_KEY_COMMAND=true VARVE_KEY_FILE="$work/file" "$VARVE" mount "$repo" "$mnt"
message_says 'VARVE_KEY_FILE and VARVE_KEY_COMMAND both'
VARVE_KEY_COMMAND=false VARVE_KEY_FILE=none opens --passphrase-file "$pass"
expect_status 2 "$VARVE" mount -o "passphrase_file=$pass,keyfile=$work/file" "$repo" "$mnt"
message_says 'passphrase_file= and keyfile= both name the key'
expect_status 2 "$VARVE" mount -o "keyfile=$work/file,key_command=true" "$repo" "$mnt"
message_says 'keyfile= and key_command= both'
expect_status 2 "$VARVE" mount --passphrase-file "$pass" -o "keyfile=$work/file" "$repo" "$mnt"
message_says 'give it in one way'
! mountpoint -q "$mnt" || fail "a mount with two keys"
ok "two places for one key are a usage error that names both"

sleeps() { pgrep -g "$1" -x sleep >/dev/null; }  # GROUP
SECONDS=0
opens --key-command "sleep 1000 & echo \$! >'$work/left'; cat '$pass'"
kill "$(cat "$work/left")"
opens --key-command "cat '$pass'; sleep 1000 & echo \$! >'$work/left'"
kill "$(cat "$work/left")"
[ "$SECONDS" -lt 60 ] || fail "Varve waits for a process in the background"
opens --key-command "cat '$pass'; exec >&-; sleep 1"
timeout 60 env --ignore-signal=CHLD "$VARVE" ls --key-command "sleep 1000 & echo \$! >'$work/left'; cat '$pass'" \
  "$repo" >/dev/null || fail "where SIGCHLD is ignored"
kill "$(cat "$work/left")"
opens --key-command "sleep 1; cat '$pass'"
expect_status 1 "$VARVE" ls --key-command "cat '$pass'; exit 5" "$repo"
message_says 'exit code 5'
expect_status 1 "$VARVE" ls --key-command 'cat /dev/zero' "$repo"
for command in ls check; do
  # In a session of its own, the group gets the signal as from a terminal.
  setsid env --default-signal=INT "$VARVE" "$command" --key-command 'exec sleep 1000' "$repo" >/dev/null 2>&1 &
  hanging=$!
  wait_until "a key command that runs" sleeps "$hanging"
  kill -INT -- "-$hanging"
  SECONDS=0
  wait "$hanging" && fail "a command that was interrupted gave a key"
  [ "$SECONDS" -lt 30 ] || fail "Ctrl-C does not end a command that hangs"
done
ok "the end of a key command counts, whatever it leaves behind, and Ctrl-C ends it"

python3 "$(dirname "$0")/prompt_signals.py" "$secret" "$VARVE" ls "$repo" || fail "ls"
python3 "$(dirname "$0")/prompt_signals.py" "$secret" "$VARVE" check "$repo" || fail "check"
ok "each signal that ends or stops a command leaves the echo of the terminal on"

typed() { python3 "$(dirname "$0")/typed.py" "$@" 2>"$work/typed" || fail "$(cat "$work/typed")"; }
typed 130 ^C -- "$VARVE" copy --plain "$repo" "$work/copy"
! grep -q 'continues' "$work/typed" || fail "nothing has begun: $(cat "$work/typed")"
[ ! -e "$work/copy" ]
mkdir "$work/snapshots"
cp -r "$work/source" "$work/snapshots/2027-01-31"
for words in "store $repo s/two $work/source" "restore $repo s/one $work/out" "import $repo $work/snapshots t"; do
  read -ra command <<<"$words"
  typed 130 ^C -- "$VARVE" "${command[@]}"
  ! grep -q 'continues' "$work/typed" || fail "nothing has begun: $(cat "$work/typed")"
done
mv "$repo/varve.repo" "$work/varve.repo"
refused 'varve.keys, its copy, is there' "$VARVE" ls --passphrase-file "$pass" "$repo"
expect_status 1 "$VARVE" mount -o "passphrase_file=$pass" "$repo" "$mnt"
"$VARVE" repair --yes --passphrase-file "$pass" "$repo" >/dev/null
cmp "$repo/varve.repo" "$work/varve.repo"
opens --passphrase-file "$pass"
ok "a copy that ends at the prompt says nothing of going on; a lost varve.repo is said to have a copy"
