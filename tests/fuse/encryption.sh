#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The keys of an encrypted repository: how one begins, where they come from, what they open, and who can see them.
limit_s=300
. "$(dirname "$0")/lib.sh"

secret=correct-horse-battery-staple
umask 077
echo "$secret" >"$work/pass"
echo wrong >"$work/wrong"
head -c 31 /dev/urandom >"$work/short"
head -c 32 /dev/urandom >"$work/file"
pass=(--passphrase-file "$work/pass")
typed() { python3 "$here/typed.py" "$@"; }

# ---- init --encrypt. ----

new=$work/a/new
refused() {  # STATUS PATTERN ARGUMENT…
  expect_status "$1" "$VARVE" init "${@:3}" "$new" </dev/null
  message_says "$2"
  [ ! -e "$work/a" ] || fail "a refused init leaves a folder behind: $*"
}
refused 12 'no terminal to ask .*--passphrase-file, --key-file or --key-command' --encrypt
refused 2 'in one way' --encrypt "${pass[@]}" --key-file "$work/file"
refused 1 'at least 32 random bytes' --encrypt --key-file "$work/short"
refused 1 'key is empty' --encrypt --passphrase-file /dev/null
refused 1 'exit code 3' --encrypt --key-command 'exit 3'
refused 1 'none' --encrypt --passphrase-file "$work/none"
refused 2 'cost of a passphrase' --encrypt "${pass[@]}" --key-cost 2G:1:1
refused 2 'for passphrases' --encrypt --key-file "$work/file" --key-cost 64M:3:4
refused 2 'cipher' --encrypt "${pass[@]}" --cipher rot13
refused 2 'requires --encrypt' --cipher aes-256-gcm
refused 2 'requires --encrypt' --key-cost 64M:3:4
refused 2 'in the clear' "${pass[@]}"
chmod 644 "$work/file"
refused 1 'chmod 600' --encrypt --key-file "$work/file"
chmod 600 "$work/file"
typed 1 one-phrase another -- "$VARVE" init --encrypt "$new"
typed 1 '' -- "$VARVE" init --encrypt "$new"
typed 130 ^C -- "$VARVE" init --encrypt "$new"
typed 130 one-phrase ^C -- "$VARVE" init --encrypt "$new"
[ ! -e "$work/a" ] || fail "a passphrase that was not given leaves a folder behind"
ok "init --encrypt without a good key says what is missing, and makes nothing"

typed 0 my-phrase my-phrase -- "$VARVE" init --encrypt "$new"
typed 0 my-phrase -- "$VARVE" check "$new"
"$VARVE" key list --json "$new" | python3 -c '
import json, sys
(key,) = [json.loads(line) for line in sys.stdin]
assert (key["kind"], key["memory_bytes"], key["passes"], key["lanes"]) == ("passphrase", 64 << 20, 3, 4), key'
expect_status 1 "$VARVE" init --encrypt "$new" </dev/null
message_says 'is a Varve repository already'
"$VARVE" -q init "$work/plain"
expect_status 1 "$VARVE" init --encrypt "${pass[@]}" "$work/plain"
mkdir "$work/full" && touch "$work/full/file"
expect_status 1 "$VARVE" init --encrypt "${pass[@]}" "$work/full"
message_says 'not empty'
begins() {  # KIND ARGUMENT…: makes a repository, and opens it with the same key
  rm -rf "$new"
  "$VARVE" -q init --encrypt "${@:2}" "$new"
  "$VARVE" key list "$new" | grep -c " $1 " >/dev/null || fail "no key is a $1"
  expect_status 12 "$VARVE" ls "$new" </dev/null
  "$VARVE" ls "${@:2:2}" "$new"
}
begins passphrase "${pass[@]}" --key-cost 1M:2:2
begins key-file --key-file "$work/file" --cipher chacha20-poly1305
grep -q '^encryption = chacha20-poly1305$' "$new/varve.repo"
begins command --key-command "cat '$work/pass'" --key-cost 1M:2:2
rm -rf "$new"
VARVE_PASSPHRASE_FILE=$work/pass "$VARVE" -q init --encrypt "$new"
"$VARVE" ls "${pass[@]}" "$new"
for placement in lineage+pool pool; do
  rm -rf "$new"
  "$VARVE" -q init --encrypt --key-file "$work/file" --placement $placement --parity 5 --pool-index stream --rewrite har "$new"
  "$VARVE" config --key-file "$work/file" "$new" >"$work/out"
  grep -q stream "$work/out" || fail "the settings are $(cat "$work/out")"
done
expect_status 0 "$VARVE" init --encrypt "${pass[@]}" "$work/another"
message_says 'varve key recovery'
ok "init --encrypt takes a passphrase twice, or a key from a file, a command or the environment"

"$VARVE" -q init --encrypt "${pass[@]}" --key-cost 64K:1:2 "$repo"

# ---- Keys. ----

for command in ls stats check 'seal s/one' 'config' 'repair --yes'; do
  read -ra words <<<"$command"
  expect_status 12 "$VARVE" "${words[0]}" "$repo" "${words[@]:1}" </dev/null
  message_says '--passphrase-file'
  expect_status 12 "$VARVE" --passphrase-file "$work/wrong" "${words[0]}" "$repo" "${words[@]:1}"
  message_says 'opens no key slot'
done
expect_status 12 "$VARVE" mount "$repo" "$mnt" </dev/null
expect_status 12 "$VARVE" mount -o passphrase_file="$work/wrong" "$repo" "$mnt"
mkdir "$work/source"
echo content >"$work/source/file"
expect_status 12 "$VARVE" store "$repo" s/one "$work/source" </dev/null
ok "commands and the mount end with 12 without a key and with a wrong one"

"$VARVE" "${pass[@]}" store "$repo" s/one "$work/source"
"$VARVE" ls "${pass[@]}" "$repo" >"$work/list"
VARVE_PASSPHRASE_FILE=$work/pass "$VARVE" ls "$repo" | cmp - "$work/list"
VARVE_KEY_COMMAND="cat '$work/pass'" "$VARVE" ls "$repo" | cmp - "$work/list"
"$VARVE" ls --key-command "echo $secret" "$repo" | cmp - "$work/list"
"$VARVE" ls --passphrase-file - "$repo" <"$work/pass" | cmp - "$work/list"
"$VARVE" ls --passphrase-file <(echo "$secret") "$repo" | cmp - "$work/list"
mkdir "$work/credentials"
cp "$work/pass" "$work/credentials/varve.passphrase"
CREDENTIALS_DIRECTORY=$work/credentials "$VARVE" ls "$repo" | cmp - "$work/list"
expect_status 12 env VARVE_PASSPHRASE_FILE="$work/pass" "$VARVE" ls --passphrase-file "$work/wrong" "$repo"
expect_status 2 "$VARVE" init --chunker gear16-keyed "$work/keyed"
message_says 'needs --encrypt'
"$VARVE" -q init --encrypt --chunker gear16-keyed "${pass[@]}" "$work/keyed"
"$VARVE" -q store "${pass[@]}" "$work/keyed" s/one "$work/source" >/dev/null
[ "$("$VARVE" dump "${pass[@]}" "$work/keyed" s/one/file)" = content ]
expect_status 2 "$VARVE" ls "${pass[@]}" --key-file "$work/pass" "$repo"
message_says 'in one way'
expect_status 1 "$VARVE" ls --key-command 'exit 3' "$repo"
message_says 'exit code 3'
expect_status 1 "$VARVE" ls --passphrase-file "$work/none" "$repo"
expect_status 1 "$VARVE" ls --passphrase-file /dev/zero "$repo"
chmod 644 "$work/pass"
expect_status 1 "$VARVE" ls "${pass[@]}" "$repo"
message_says 'chmod 600'
chmod 600 "$work/pass"
ok "a key comes from a file, a pipe, a command, the environment or a credential; options come first"

typed 0 "$secret" -- "$VARVE" ls "$repo"
typed 0 "xx$(printf '\177\177')$secret" -- "$VARVE" ls "$repo"
typed 0 nonsense "$secret" -- "$VARVE" ls "$repo"
typed 0 nonsense another "$secret" -- "$VARVE" ls "$repo"
typed 12 nonsense another third -- "$VARVE" ls "$repo"
typed 130 nonsense ^C -- "$VARVE" ls "$repo"
typed 1 nonsense '' -- "$VARVE" ls "$repo"
typed 130 ^C -- "$VARVE" ls "$repo"
typed 0 "$secret" -- "$VARVE" ls "$repo" 2>"$work/asked"
grep -q "Passphrase of $repo: " "$work/asked" || fail "asked for: $(cat "$work/asked")"
typed 12 nonsense another third -- "$VARVE" mount "$repo" "$mnt"
typed 0 nonsense "$secret" -- "$VARVE" mount "$repo" "$mnt"
[ "$(cat "$mnt/s/one/file")" = content ] || fail "not mounted"
unmount_repo
typed 1 "$secret" one-word two-words -- "$VARVE" key add "$repo"
typed 0 "$secret" two-words two-words -- "$VARVE" key add "$repo"
typed 0 two-words -- "$VARVE" ls "$repo"
"$VARVE" "${pass[@]}" key rm "$repo" 2
ok "a terminal is asked, without echo, twice for a new key; Ctrl-C ends it"

typed --piped 'text of a pipe' 0 "$secret" -- "$VARVE" store --stdin piped "$repo" s/zz
[ "$("$VARVE" dump "${pass[@]}" "$repo" s/zz/piped)" = 'text of a pipe' ] || fail "the pipe lost its data"
typed --piped 'text of a pipe' 12 wrong once-more still -- "$VARVE" store --stdin piped "$repo" s/yy
echo data | expect_status 12 "$VARVE" store --stdin piped "$repo" s/yy
"$VARVE" -q rm "${pass[@]}" "$repo" s/zz
ok "the controlling terminal is asked where data comes through standard input"

for cost in 64 64M:3 64M:3:4:5 2G:3:4 99999999T:3:4 64M:17:4 64M:0:4 64M:3:17 64M:3:0 16K:1:4 1000:1:1 64M:x:4; do
  expect_status 2 "$VARVE" "${pass[@]}" key add --new-passphrase-file "$work/wrong" --key-cost "$cost" "$repo"
  message_says 'cost of a passphrase'
done
expect_status 2 "$VARVE" "${pass[@]}" key add --new-key-file "$work/pass" --key-cost 64M:3:4 "$repo"
expect_status 2 "$VARVE" "${pass[@]}" key rm --key-cost 64M:3:4 "$repo" 1
"$VARVE" "${pass[@]}" key add --new-passphrase-file "$work/wrong" --key-cost 2M:5:3 --json "$repo" >"$work/stdout"
python3 -c '
import json, sys
key = json.load(sys.stdin)
assert (key["memory_bytes"], key["passes"], key["lanes"]) == (2 << 20, 5, 3), key' <"$work/stdout"
"$VARVE" ls --passphrase-file "$work/wrong" "$repo" | cmp - "$work/list"
"$VARVE" "${pass[@]}" key rm "$repo" 2
ok "a key has the cost that --key-cost names, and a cost that is not allowed is refused"

"$VARVE" "${pass[@]}" key add --new-key-file "$work/file" --label 'the laptop' "$repo"
"$VARVE" ls --key-file "$work/file" "$repo" | cmp - "$work/list"
code=$("$VARVE" "${pass[@]}" key recovery "$repo")
[ ${#code} -eq 41 ] || fail "the recovery code is $code"
"$VARVE" ls --passphrase-file <(tr 'A-Z-' 'a-z ' <<<"$code") "$repo" | cmp - "$work/list"
"$VARVE" key list "$repo" >"$work/keys"
grep -q 'the laptop' "$work/keys" || fail "no label: $(cat "$work/keys")"
"$VARVE" key list --json "$repo" | python3 -c '
import json, sys
keys = [json.loads(line) for line in sys.stdin]
assert [key["kind"] for key in keys] == ["passphrase", "key-file", "recovery"], keys
assert keys[0]["passes"] == 1 and "passes" not in keys[1], keys'
"$VARVE" "${pass[@]}" key list --json "$repo" | grep -c '"authenticated":true' | grep -qx 3
"$VARVE" -q key list "$repo" | grep -q 'NOT AUTHENTICATED' || fail "a quiet list does not say that it is unchecked"
! "$VARVE" -q "${pass[@]}" key list "$repo" | grep 'NOT AUTHENTICATED' || fail "a checked list says that it is not"
"$VARVE" key list --json "$repo" 2>"$work/stderr" | grep -c '"authenticated":false' | grep -qx 3
grep -q 'nothing has checked these lines' "$work/stderr" || fail "a list without a key does not say that it is unchecked"
# A label that the storage changed, with the right checksum of the file.
cp "$repo/varve.repo" "$work/sound.repo"
python3 - "$repo/varve.repo" <<'PY'
import ctypes, sys
hashing = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
hashing.restype = ctypes.c_uint64
hashing.argtypes = ctypes.c_char_p, ctypes.c_size_t
with open(sys.argv[1], "rb") as file:
    body = file.read().rpartition(b"checksum = ")[0].replace(b" the laptop\n", b" the office\n")
with open(sys.argv[1], "wb") as file:
    file.write(body + b"checksum = %016x\n" % hashing(body, len(body)))
PY
"$VARVE" key list "$repo" >"$work/keys"
grep -q 'the office' "$work/keys" || fail "the label is not shown"
expect_status 1 "$VARVE" "${pass[@]}" key list "$repo"
message_says 'a program without the keys'
message_says 'not authentic'
cp "$work/sound.repo" "$repo/varve.repo"
ok "key list says whether labels are authentic"
VARVE_KEY_SLOT=1 "$VARVE" ls "${pass[@]}" "$repo" | cmp - "$work/list"
for number in 2 9; do expect_status 12 env VARVE_KEY_SLOT=$number "$VARVE" ls "${pass[@]}" "$repo"; done
expect_status 2 env VARVE_KEY_SLOT=one "$VARVE" ls "${pass[@]}" "$repo"
expect_status 1 "$VARVE" "${pass[@]}" key add --new-passphrase-file "$work/wrong" --key-cost 1G:16:4 "$repo"
message_says '16 GiB together'
ok "VARVE_KEY_SLOT names the key to try, and passphrases cost 16 GiB together at most"
"$VARVE" "${pass[@]}" stats "$repo" | grep -cE '^encryption +aes-256-gcm|chacha20-poly1305, 3 keys$' >/dev/null ||
  fail "stats says nothing of the encryption"
ok "key add and key recovery add keys that open the repository; key list needs none"

cp "$repo/varve.repo" "$work/older.repo"
cp "$repo/varve.keys" "$work/older.keys"
before=$(find "$repo/series" -type f -name '*.seg' -exec md5sum {} + | sort)
echo cobalt-giraffe-ferry >"$work/other"
"$VARVE" --key-file "$work/file" key change --label 'a person' --new-passphrase-file "$work/wrong" --key-cost 64K:1:2 "$repo" 1
"$VARVE" --key-file "$work/file" key change --new-passphrase-file "$work/other" "$repo" 4
"$VARVE" key list "$repo" | grep -c 'a person' >/dev/null || fail "a change loses the label"
expect_status 12 "$VARVE" ls "${pass[@]}" "$repo"
"$VARVE" ls --passphrase-file "$work/other" "$repo" | cmp - "$work/list"
"$VARVE" --key-file "$work/file" key rm "$repo" 3
expect_status 12 "$VARVE" ls --passphrase-file <(echo "$code") "$repo"
expect_status 1 "$VARVE" --key-file "$work/file" key rm "$repo" 3
message_says 'no key 3'
[ "$(find "$repo/series" -type f -name '*.seg' -exec md5sum {} + | sort)" = "$before" ] ||
  fail "a change of keys rewrites data"
ok "key change and key rm close what they replace, and rewrite no data"

cp "$repo/varve.repo" "$work/new.repo"
cp "$work/older.repo" "$repo/varve.repo"
expect_status 1 "$VARVE" ls "${pass[@]}" "$repo"
message_says 'older copy'
"$VARVE" -q repair --yes --passphrase-file "$work/other" "$repo" >/dev/null
cmp "$work/new.repo" "$repo/varve.repo"
cp "$work/older.repo" "$repo/varve.repo"
cp "$work/older.keys" "$repo/varve.keys"
expect_status 1 "$VARVE" check "${pass[@]}" "$repo"
message_says 'older copy'
cp "$work/new.repo" "$repo/varve.repo"
"$VARVE" --passphrase-file "$work/other" key list "$repo" >/dev/null
cp "$work/new.repo" "$repo/varve.repo"
ok "an older varve.repo that is put back is refused"

other=(--passphrase-file "$work/other")
"$VARVE" "${other[@]}" arrange "$repo" s >/dev/null  # A writer writes the copy again.
truncate -s 100 "$repo/varve.repo"
expect_status 1 "$VARVE" ls "${other[@]}" "$repo"
"$VARVE" "${other[@]}" repair --yes "$repo"
"$VARVE" "${other[@]}" ls "$repo" | cmp - "$work/list"
ok "repair restores varve.repo from varve.keys"

expect_status 10 "$VARVE" "${other[@]}" copy "$repo" "$work/copy"
message_says "encrypt creates it"
[ ! -e "$work/copy" ] || fail "a copy of an encrypted repository was made in the clear"
cat >"$work/ssh" <<'END'
#!/bin/bash
exec bash -c "$2"
END
chmod +x "$work/ssh"
expect_status 10 "$VARVE" "${other[@]}" copy --ssh "$work/ssh" --remote-program "$VARVE" "$repo" "ssh:me@host:$work/copy"
[ ! -e "$work/copy" ] || fail "a remote copy of an encrypted repository was made in the clear"
expect_status 12 "$VARVE" "${other[@]}" copy "$repo" "$work/plain"
message_says 'is plain: it would'
expect_status 12 "$VARVE" "${other[@]}" ls "$work/plain"
echo 'second secret' >"$work/second"
"$VARVE" -q init --encrypt --passphrase-file "$work/second" --key-cost 64K:1:2 "$work/copy"
"$VARVE" "${other[@]}" copy --target-passphrase-file "$work/second" "$repo" "$work/copy"
"$VARVE" --passphrase-file "$work/second" restore "$work/copy" s/one "$work/restored"
cmp "$work/source/file" "$work/restored/file"
ok "a copy of an encrypted repository goes to one that exists, under its own key"

mount_repo -o passphrase_file="$work/other"
daemon=$(pgrep -f "mount .*$mnt" | head -1)
[ "$(cat "$mnt/s/one/file")" = content ] || fail "not readable through the mount"
"$VARVE" open "$repo" s/two </dev/null
"$VARVE" seal "$repo" s/two </dev/null
expect_status 1 "$VARVE" key rm "${other[@]}" "$repo" 1  # The daemon lends no lock, but changes keys.
message_says 'has no key 1'
expect_status 12 "$VARVE" open --passphrase-file "$work/wrong" "$repo" s/three
message_says 'opens no key slot'
"$VARVE" open "${other[@]}" "$repo" s/three
"$VARVE" rm "${other[@]}" "$repo" s/three
expect_status 2 "$VARVE" store --passphrase-file - --stdin x "$repo" s/three <"$work/other"
message_says 'both the key and the data'
unmount_repo
"$VARVE" -q init "$work/clear"
"$VARVE" mount "$work/clear" "$mnt"
expect_status 12 "$VARVE" store "${other[@]}" "$work/clear" s/one "$work/source"
message_says 'is plain'
"$VARVE" umount "$mnt"
mount_repo -o passphrase_file="$work/other"
daemon=$(pgrep -f "mount .*$mnt" | head -1)
ok "commands that the daemon serves need no key, and refuse a wrong one and a plain repository"

locked=$(sed -n 's/^VmLck:\s*\([0-9]*\) kB/\1/p' "/proc/$daemon/status")
[ "$locked" -ge 64 ] || fail "only $locked kB of the daemon are locked in memory"
grep -q 'Max core file size *0 *0' "/proc/$daemon/limits" || fail "the daemon may write a core"
[ "$(stat -c %U "/proc/$daemon/environ")" = root ] || fail "the daemon can be read"
tr '\0' ' ' <"/proc/$daemon/cmdline" >"$work/seen"
tr '\0' ' ' <"/proc/$daemon/environ" >>"$work/seen"
if grep -q cobalt-giraffe "$work/seen"; then fail "the passphrase is an argument or in the environment"; fi
python3 "$here/memory_search.py" "$daemon" cobalt-giraffe
python3 "$here/memory_search.py" "$daemon" --keys "$repo" "$work/file"
unmount_repo
ok "the daemon has its keys in locked memory only, writes no core, and keeps no passphrase"

# What a child gets, and what it sees of its parent, has no secret: of key commands and of ssh.
cat >"$work/watch" <<'END'
#!/bin/bash
for pid in $$ $PPID $(ps -o ppid= $PPID); do
  cat "/proc/$pid/environ" "/proc/$pid/cmdline" >>"$WATCHED" 2>/dev/null
done
END
chmod +x "$work/watch"
export WATCHED=$work/watched
key_command="'$work/watch'; cat '$work/other'"
"$VARVE" ls --key-command "$key_command" "$repo" >/dev/null
"$VARVE" mount -d -f -o "key_command=$key_command" "$repo" "$mnt" 2>"$work/debug.log" &
daemon=$!
wait_until "the mount appears" mountpoint -q "$mnt"
cat "$mnt/s/one/file" >/dev/null
unmount_repo
wait "$daemon"
sed -i "2i '$work/watch'" "$work/ssh"
expect_status 10 "$VARVE" "${other[@]}" copy --ssh "$work/ssh" --remote-program "$VARVE" "$repo" "ssh:me@host:$work/nowhere"
tr '\0' '\n' <"$WATCHED" >"$work/seen"
[ "$(grep -c '^WATCHED=' "$work/seen")" -ge 6 ] || fail "the children were not watched: $(cat "$work/seen")"
for secret_text in cobalt-giraffe "$(head -c 16 "$work/file" | od -An -tx1 | tr -d ' \n')"; do
  if grep -q "$secret_text" "$work/seen" "$work/debug.log"; then fail "a secret is in the environment, a command line or the log"; fi
done
[ -s "$work/debug.log" ] || fail "the daemon logs nothing with -d"
ok "key commands, ssh and the log at the level of debugging see no secret"

mkfifo "$work/stream"
(ulimit -c unlimited && exec "$VARVE" "${other[@]}" store --stdin stream "$repo" s/three <"$work/stream") &
command=$!
exec 9>"$work/stream"
writes_no_core() { grep -q 'Max core file size *0 *0' "/proc/$command/limits"; }
wait_until "a command with a key turns off its core" writes_no_core
echo content >&9
exec 9>&-
wait "$command"
[ "$("$VARVE" "${other[@]}" dump "$repo" s/three/stream)" = content ] || fail "the stream was not stored"
ok "a command that reads a key writes no core"

user=65534
as_user() { setpriv --reuid=$user --regid=$user --clear-groups env PATH=/usr/bin:/bin "$@"; }
if ! users_mount; then
  skip_part "a user's mount: users cannot open /dev/fuse here, or there is no /etc/mtab"
  exit 0
fi
mkdir -p "$work/users/mnt"
cp "$VARVE" "$work/users/varve"
echo "$secret" >"$work/users/pass"
mkdir "$work/users/home"
chown -R $user:$user "$work/users"
chmod 711 "$work"
# The environment is root's, as setpriv and `sudo` without -H leave it.
unset XDG_STATE_HOME
export HOME=$work/root
mkdir -m 700 "$HOME"
as_user "$work/users/varve" -q init --encrypt --passphrase-file "$work/users/pass" "$work/users/repo"
as_user "$work/users/varve" mount -o passphrase_file="$work/users/pass" "$work/users/repo" "$work/users/mnt"
as_user mkdir "$work/users/mnt/s"
as_user mkdir "$work/users/mnt/s/one"
as_user sh -c "echo mine >'$work/users/mnt/s/one/file'"
[ "$(as_user cat "$work/users/mnt/s/one/file")" = mine ] || fail "an ordinary user's mount does not work"
daemon=$(pgrep -f "mount .*$work/users/mnt" | head -1)
as_user cat "/proc/$daemon/environ" >/dev/null 2>&1 && fail "the user's other processes can read the daemon"
as_user cat "/proc/$daemon/maps" >/dev/null 2>&1 && fail "the user's other processes can map the daemon"
as_user "$work/users/varve" umount "$work/users/mnt"
ok "an ordinary user mounts an encrypted repository, and no other process reads the daemon"

as_user HOME="$work/users/home" "$work/users/varve" ls --passphrase-file "$work/users/pass" "$work/users/repo"
remembered=("$work/users/home/.local/state/varve/"*[0-9a-f])
[ -s "${remembered[0]}" ] || fail "the user's machine remembers nothing"
as_user HOME="$work/users/home" "$work/users/varve" -q init "$work/users/plain"
export XDG_STATE_HOME=$HOME
expect_status 1 as_user "$work/users/varve" ls --passphrase-file "$work/users/pass" "$work/users/repo"
message_says "$HOME/varve: permission denied.*set XDG_STATE_HOME"
expect_status 0 as_user "$work/users/varve" ls "$work/users/plain"
message_says "would not be seen.*$HOME/varve: permission denied"
ok "the user's home has the memory; an unreadable one refuses encrypted repositories, and warns for plain ones"
