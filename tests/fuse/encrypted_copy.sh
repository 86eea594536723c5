#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `varve copy` between plain and encrypted repositories: into new ones and present ones, here and through an ssh.
# What is encrypted never gets into the clear unless the user says so.
limit_s=300
. "$(dirname "$0")/lib.sh"
: "${VARVE_FAULTY_DISK:?is the path of the library made from faulty_disk.cc}"

umask 077
mkdir "$work/tree"
head -c 300000 /dev/urandom >"$work/tree/data"
for i in $(seq 200); do echo "the secret line number $i" >>"$work/tree/text"; done
echo kept >"$work/tree/some-file-name"
for key in one two; do head -c 32 /dev/urandom >"$work/$key"; done
one=(--key-file "$work/one")
two=(--target-key-file "$work/two")
open_two=(--key-file "$work/two")
plain=$work/plain
"$VARVE" -q init "$plain"
"$VARVE" -q store "$plain" s/v1 "$work/tree"

# Compares a version of an encrypted repository with a folder, and looks for texts in the clear.
holds() {  # REPO KEY VERSION TREE
  "$VARVE" -q --key-file "$2" restore "$1" "$3" "$work/restored"
  same_tree "$4" "$work/restored"
  rm -rf "$work/restored"
  "$VARVE" -q --key-file "$2" check --read-data "$1" >"$work/checked" || fail "$(cat "$work/checked")"
  ! grep -rqaE 'secret line number|some-file-name' "$1" || fail "$1 holds texts in the clear"
}

# ---- A new target. ----

expect_status 0 "$VARVE" copy --encrypt -n "${two[@]}" "$plain" "$work/enc"
[ ! -e "$work/enc" ] || fail "a dry run creates the target"
expect_status 0 "$VARVE" copy --encrypt "${two[@]}" "$plain" "$work/enc"
expect_status 12 "$VARVE" ls "$work/enc" </dev/null
holds "$work/enc" "$work/two" s/v1 "$work/tree"
[ "$("$VARVE" key list --json "$work/enc" | wc -l)" -eq 1 ] || fail "the new repository has other keys"
echo "one more line" >>"$work/tree/text"
"$VARVE" -q store "$plain" s/v2 "$work/tree"
for round in first second; do
  expect_status 0 "$VARVE" copy --json --encrypt "${two[@]}" "$plain" "$work/enc"
  sent=$(sed -n 's/.*"sent_bytes": *\([0-9]*\).*/\1/p' "$work/stdout")
  case $round:$sent in
    first:*) [ "$sent" -gt 0 ] && [ "$sent" -lt 30000 ] || fail "sent $sent bytes for one line" ;;
    second:) ;;
    *) fail "the second copy sent $sent bytes" ;;
  esac
done
holds "$work/enc" "$work/two" s/v2 "$work/tree"
expect_status 0 "$VARVE" copy --verify "${two[@]}" "$plain" "$work/enc"
expect_status 0 "$VARVE" copy "${open_two[@]}" "$plain" "$work/enc"
message_says 'the key is used for'
expect_status 0 env VARVE_KEY_FILE="$work/two" "$VARVE" copy --verify "$plain" "$work/enc"
expect_status 10 "$VARVE" copy "${open_two[@]}" "$plain" "$work/absent"
expect_status 12 "$VARVE" copy "${one[@]}" "$plain" "$work/enc"
expect_status 12 "$VARVE" copy --plain "${one[@]}" "$plain" "$work/absent"
"$VARVE" -q init "$work/other-plain"
expect_status 12 "$VARVE" copy "${open_two[@]}" "$plain" "$work/other-plain"
ok "a copy creates its target encrypted, and later copies send what changed, also with the key of a plain source"

expect_status 10 "$VARVE" copy "${two[@]}" "$plain" "$work/new"
message_says 'encrypt creates it'
expect_status 12 "$VARVE" copy --encrypt "$plain" "$work/new" </dev/null
message_says 'target-passphrase-file'
expect_status 1 "$VARVE" copy --encrypt --target-key-file "$work/none" "$plain" "$work/new"
expect_status 2 "$VARVE" copy --encrypt --plain "$plain" "$work/new"
expect_status 2 "$VARVE" copy --plain "${two[@]}" "$plain" "$work/new"
head -c 31 "$work/two" >"$work/short"
expect_status 1 "$VARVE" copy --encrypt --target-key-file "$work/short" "$plain" "$work/new"
message_says '32 random bytes'
[ ! -e "$work/new" ] || fail "a refused copy leaves a folder behind"
"$VARVE" -q init "$work/there"
expect_status 12 "$VARVE" copy --encrypt "${two[@]}" "$plain" "$work/there"
message_says 'is plain'
expect_status 12 "$VARVE" copy --plain "$plain" "$work/enc"
message_says 'is encrypted'
[ -z "$("$VARVE" ls "$work/there")" ] || fail "a refused copy copies"
typed() { python3 "$here/typed.py" "$@"; }
typed 1 one-phrase another -- "$VARVE" copy --encrypt "$plain" "$work/new"
[ ! -e "$work/new" ] || fail "two passphrases that differ leave a folder behind"
typed 0 my-phrase my-phrase -- "$VARVE" copy --encrypt "$plain" "$work/new"
typed 0 my-phrase -- "$VARVE" copy --encrypt "$plain" "$work/new"
rm -r "$work/new"
ok "a missing or short key, and a target of the other kind, are refused before anything is made"

# ---- An encrypted source. ----

expect_status 0 "$VARVE" "${open_two[@]}" copy --encrypt --target-key-file "$work/one" "$work/enc" "$work/other"
holds "$work/other" "$work/one" s/v2 "$work/tree"
expect_status 12 "$VARVE" ls --key-file "$work/two" "$work/other"
echo third >>"$work/tree/text"
"$VARVE" -q "${open_two[@]}" store "$work/enc" t/v1 "$work/tree"
expect_status 0 "$VARVE" "${open_two[@]}" copy --target-key-file "$work/one" "$work/enc" "$work/other"
holds "$work/other" "$work/one" t/v1 "$work/tree"
expect_status 0 "$VARVE" "${open_two[@]}" copy --encrypt "$work/enc" "$work/same"
holds "$work/same" "$work/two" t/v1 "$work/tree"
cmp -s "$work/same/varve.repo" "$work/enc/varve.repo" && fail "the copy has the same master key" || true
ok "an encrypted source is copied under another key, and without one named, under its own"

expect_status 10 "$VARVE" "${open_two[@]}" copy "$work/enc" "$work/clear"
[ ! -e "$work/clear" ]
expect_status 12 "$VARVE" "${open_two[@]}" copy "$work/enc" "$work/there"
message_says 'in the clear'
# Also if the key is typed, and so no variable says that all has to be encrypted.
"$VARVE" -q "${open_two[@]}" key add --new-passphrase-file <(echo typed-phrase) --key-cost 8K:1:1 "$work/enc"
typed 12 typed-phrase -- "$VARVE" copy "$work/enc" "$work/there"
[ -z "$("$VARVE" ls "$work/there")" ] || fail "an encrypted source was copied into the clear"
expect_status 0 "$VARVE" "${open_two[@]}" copy --plain "$work/enc" "$work/clear"
"$VARVE" -q restore "$work/clear" t/v1 "$work/restored"
same_tree "$work/tree" "$work/restored"
rm -rf "$work/restored"
expect_status 12 "$VARVE" "${open_two[@]}" copy "$work/enc" "$work/clear"
expect_status 0 "$VARVE" "${open_two[@]}" copy --plain "$work/enc" "$work/clear"
ok "an encrypted source gets into the clear only with --plain"

# ---- Another machine, which has its own variables. ----

cat >"$work/ssh" <<END
#!/bin/bash
unset VARVE_PASSPHRASE_FILE VARVE_KEY_FILE VARVE_KEY_COMMAND
[ ! -e "$work/there.env" ] || . "$work/there.env"
exec bash -c "\$2"
END
chmod +x "$work/ssh"
far=$work/far/repo
over_ssh() { "$VARVE" "$@" --ssh "$work/ssh" --remote-program "$VARVE" "$work/enc" "ssh:me@host:$far"; }
expect_status 10 over_ssh "${open_two[@]}" copy
message_says 'the target: .*encrypt creates it'
expect_status 12 over_ssh "${open_two[@]}" copy --encrypt
message_says 'VARVE_KEY_FILE .* on the machine of the target'
expect_status 2 over_ssh "${open_two[@]}" copy --target-key-file "$work/one" --encrypt
message_says 'on another machine'
[ ! -e "$work/far" ] || fail "a refused remote copy leaves a folder behind"
echo "export VARVE_KEY_FILE=$work/one" >"$work/there.env"
expect_status 0 over_ssh "${open_two[@]}" copy -n --encrypt
[ ! -e "$work/far" ]
expect_status 0 over_ssh "${open_two[@]}" copy --encrypt
holds "$far" "$work/one" t/v1 "$work/tree"
"$VARVE" -q "${open_two[@]}" store "$work/enc" t/v2 "$work/tree"
expect_status 0 over_ssh "${open_two[@]}" copy --json
sent=$(sed -n 's/.*"sent_bytes": *\([0-9]*\).*/\1/p' "$work/stdout")
[ "$sent" = 0 ] || fail "sent $sent bytes of a version that changed nothing"
holds "$far" "$work/one" t/v2 "$work/tree"
expect_status 12 over_ssh "${open_two[@]}" copy --plain
# The other end is killed at calls of the creation, and the same command goes on.
far=$work/far/killed
on_disk() { env LD_PRELOAD="$VARVE_FAULTY_DISK" DISK_BELOW="$far" "$1" "$VARVE" -q "${open_two[@]}" copy --encrypt \
  --ssh "$work/ssh" --remote-program "$VARVE" "$work/enc" "ssh:me@host:$far" >/dev/null 2>&1; }
on_disk DISK_CALLS_IN="$work/calls"
calls=$(stat -c %s "$work/calls")
[ "$calls" -gt 30 ] || fail "only $calls calls were counted"
for ((at = 1; at <= calls; at += at < 24 ? 3 : 41)); do
  rm -rf "$far"
  (on_disk DISK_KILLS_AT=$at) 2>/dev/null && fail "the copy survived the kill at call $at" || true
  expect_status 0 over_ssh "${open_two[@]}" copy --encrypt
  [ "$("$VARVE" --key-file "$work/one" dump "$far" t/v2/some-file-name)" = kept ]
done
holds "$far" "$work/one" t/v2 "$work/tree"
ok "the other end is killed while it creates its target and later, and the next copy ends it"

far=$work/far/clear
"$VARVE" -q init "$far"
rm "$work/there.env"
expect_status 12 over_ssh "${open_two[@]}" copy
[ -z "$("$VARVE" ls "$far")" ] || fail "an encrypted source was copied into the clear there"
expect_status 0 over_ssh "${open_two[@]}" copy --plain
[ "$("$VARVE" ls "$far" | wc -l)" -eq 4 ] || fail "there are $("$VARVE" ls "$far")"
far=$work/far/none
expect_status 0 "$VARVE" copy --ssh "$work/ssh" --remote-program "$VARVE" "$plain" "ssh:me@host:$far"
"$VARVE" ls "$far" >/dev/null
ok "the other machine creates an encrypted target under a key of its own, or refuses"

# The passphrase is no argument and in no environment, of the two ends and of ssh.
echo walrus-passport-cello >"$work/phrase"
echo "export VARVE_PASSPHRASE_FILE=$work/phrase" >"$work/there.env"
while [ ! -e "$work/seen.enough" ]; do
  for process in $(pgrep -f "$work"); do
    [ "$process" = $BASHPID ] || cat "/proc/$process/cmdline" "/proc/$process/environ"
  done >>"$work/seen" 2>/dev/null || true
done &
watcher=$!
far=$work/far/phrase
"$VARVE" -q --passphrase-file <(echo typed-phrase) copy --encrypt --ssh "$work/ssh" --remote-program "$VARVE" \
  "$work/enc" "ssh:me@host:$far" >/dev/null
touch "$work/seen.enough"
wait "$watcher"
grep -qa serve-copy "$work/seen" || fail "nothing of the copy was seen"
if grep -qaE 'walrus-passport|typed-phrase' "$work/seen"; then fail "a passphrase can be seen by others"; fi
"$VARVE" --passphrase-file "$work/phrase" ls "$far" >/dev/null
ok "no passphrase is an argument or in an environment while a copy runs"
