#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# s3://BUCKET/PREFIX instead of a folder, in commands, mounts and fstab; and a mount that
# follows the newest versions. Encrypted places, and places that are used again.
limit_s=240
. "$(dirname "$0")/lib.sh"
. "$here/store_lib.sh"
start_store

mkdir -p "$work/source"
echo one >"$work/source/file"
head -c 300K /dev/urandom >"$work/source/big"

expect_status 10 "$VARVE" store "$place" s/one "$work/source"
message_says 'varve init s3://.*--local=DIR.*varve attach'
expect_status 10 "$VARVE" ls "$place"
message_says 'no Varve repository'
expect_status 2 "$VARVE" ls s3://no
message_says '3 to 63'
ok "a place without a repository or a folder says what to do"

"$VARVE" -q init "$place" --local="$repo"
"$VARVE" -q store "$place" s/one "$work/source"
"$VARVE" ls "$place/" s >"$work/list"
grep -q one "$work/list"
VARVE_REPO=$place "$VARVE" -q clone s/one s/two.partial
VARVE_REPO=$place "$VARVE" -q seal s/two.partial
"$VARVE" -q rm "$place" s/two
"$VARVE" -q restore "$place" s/one "$work/restored"
same_tree --ignore holes "$work/source" "$work/restored"
"$VARVE" dump "$place" s/one/file | cmp - "$work/source/file"
"$VARVE" find "$place" big >"$work/list"
grep -q big "$work/list"
"$VARVE" -q check "$place"
"$VARVE" wait "$place" s/latest
"$VARVE" -q prune -n --keep-last 1 "$place" s >"$work/stdout"
"$VARVE" -q status "$place" >/dev/null
[ -z "$(ls "$XDG_CACHE_HOME/varve/attached")" ]
ok "all commands take the place of a repository that was made here"

"$VARVE" mount "$place" "$mnt"
cp -a "$work/source" "$mnt/s/three.partial"
mv -T "$mnt/s/three.partial" "$mnt/s/three"
"$VARVE" -q lock --for 1h "$place" s/three
"$VARVE" umount "$place"
if mountpoint -q "$mnt"; then fail "still mounted"; fi
ok "a mount of the place is written to, served and unmounted by its name"

# A hostile or an old line proposes a folder, and the folder's own file decides.
mkdir "$work/evil"
printf 's3://varve-test/other\t%s\nnonsense\n%s\t%s\n\t\n%s\trelative\n' "$repo" "$place" "$work/evil" "$place" \
  | cat - "$XDG_STATE_HOME/varve/places" >"$work/places"
cp "$work/places" "$XDG_STATE_HOME/varve/places"
"$VARVE" ls "$place" s >/dev/null
expect_status 10 "$VARVE" store s3://varve-test/other s/x "$work/source"
message_says 'belongs to something else now'
chmod 666 "$XDG_STATE_HOME/varve/places"
expect_status 10 "$VARVE" store "$place" s/x "$work/source"
message_says 'places'
chmod 600 "$XDG_STATE_HOME/varve/places"
expect_status 10 "$VARVE" store "${place}x" s/x "$work/source"
message_says "did you mean.*$place"
ok "wrong lines and a file that others may write do no harm"

# Another machine.
export XDG_STATE_HOME=$work/state2 XDG_CACHE_HOME=$work/cache2
"$VARVE" ls "$place" s >"$work/list" 2>"$work/stderr"
grep -q three "$work/list"
grep -q 'has no folder on this machine' "$work/stderr"
"$VARVE" ls "$place" s >"$work/list" 2>"$work/stderr"
[ ! -s "$work/stderr" ]
[ "$(stat -c %a "$XDG_CACHE_HOME/varve/attached")" = 700 ]
expect_status 10 "$VARVE" store "$place" s/x "$work/source"
message_says 'varve attach'
"$VARVE" -q check --read-data "$place"
"$VARVE" diff "$place" s/one s/three >/dev/null
ok "commands that read attach a folder in the cache, and others do not"

"$VARVE" mount -o ro,follow=1 "$place" "$mnt"
[ "$(findmnt -n -o SOURCE "$mnt")" = "$place" ]
exec 7<"$mnt/s/one/big"
head -c 1000 <&7 >"$work/front"
"$VARVE" -q store "$repo" s/four "$work/source"
wait_until "the mount shows the new version" [ -e "$mnt/s/four/file" ]
same_tree --ignore holes "$work/source" "$mnt/s/four"
head -c 400K /dev/urandom >>"$work/source/big"
for name in five six; do "$VARVE" -q store "$repo" "s/$name" "$work/source"; done
wait_until "the mount shows the newest version" [ -e "$mnt/s/six/file" ]
same_tree --ignore holes "$work/source" "$mnt/s/six"
{ cat "$work/front" - <&7; } | cmp - <("$VARVE" dump "$repo" s/one/big)
exec 7<&-
ok "a mount that reads follows the newest versions, and open files stay readable"

stop_store
sleep 3
same_tree --ignore holes "$work/source" "$mnt/s/six"
ls "$mnt/s" >/dev/null
ok "a store that fails leaves the mount as it was"
"$VARVE" umount "$mnt"

start_store_again
"$VARVE" -q attach "$place" "$work/reader"
echo "$place $mnt fuse.varve ro,noauto,user 0 0" >"$work/fstab"
mkdir -p "$work/bin"
ln -sf "$VARVE" "$work/bin/mount.fuse.varve"
"$work/bin/mount.fuse.varve" "$place" "$mnt" -o ro
[ -e "$mnt/s/six/file" ]
[ "$("$VARVE" ls --json "$mnt/s" | wc -l)" -ge 5 ]
"$VARVE" umount "$place"
ok "mount(8) and fstab take a place, too"

# An encrypted repository, and a machine that has never seen it.
umask 077
echo 'a few words' >"$work/words"
"$VARVE" -q init --encrypt --passphrase-file "$work/words" --key-cost 8M:1:1 "$place-secret" --local="$work/secret"
"$VARVE" -q store --passphrase-file "$work/words" "$place-secret" s/one "$work/source"
export XDG_STATE_HOME=$work/state3 XDG_CACHE_HOME=$work/cache3
timeout 60 python3 "$here/typed.py" 0 'a few words' -- "$VARVE" mount -o ro "$place-secret" "$mnt" ||
  fail "a first mount does not ask for the passphrase once"
[ -e "$mnt/s/one/file" ]
"$VARVE" umount "$mnt"
ok "the first mount of an encrypted place asks for the passphrase once"

for command in "ls $place-secret s" "status $place-secret" "restore $place-secret s/one $work/restored-secret"; do
  rm -rf "$work/state5" "$work/cache5" "$work/asked"
  read -ra words <<<"$command"
  XDG_STATE_HOME=$work/state5 XDG_CACHE_HOME=$work/cache5 "$VARVE" -q "${words[0]}" \
    --key-command "echo asked >>'$work/asked'; cat '$work/words'" "${words[@]:1}" >/dev/null 2>"$work/stderr" ||
    fail "$command: $(cat "$work/stderr")"
  [ "$(wc -l <"$work/asked")" = 1 ] || fail "$command ran the command of the key $(wc -l <"$work/asked") times"
done
ok "the first use of an encrypted place by a command asks for the key once"

# An attach that was killed before it reported is repeated.
again=s3://varve-test/machines/again
former_state=$XDG_STATE_HOME
export XDG_STATE_HOME=$work/state6
"$VARVE" -q init "$again" --local="$work/first"
"$VARVE" -q store "$again" s/one "$work/source"
"$VARVE" -q attach --write "$again" "$work/taken"
rm -rf "$work/state6"
touch "$work/taken/attaching.tmp"
expect_status 0 "$VARVE" attach --write "$again" "$work/taken"
message_says 'writes to the repository in .* already'
[ ! -e "$work/taken/attaching.tmp" ]
"$VARVE" mount "$work/taken" "$mnt"
expect_status 0 "$VARVE" attach --write "$again/" "$work/taken"
"$VARVE" umount "$mnt"
"$VARVE" -q store "$again" s/two "$work/source"  # The machine knows the folder.
"$VARVE" -q attach "$again" "$work/reads"
expect_status 0 "$VARVE" attach "$again" "$work/reads"
expect_status 1 "$VARVE" attach --write "$place" "$work/reads"
message_says 'is a Varve repository already, in'
expect_status 1 "$VARVE" attach "$again" "$work/taken"
message_says 'already, and writes to'
expect_status 1 "$VARVE" attach "$again" "$repo"
message_says 'is a Varve repository already'
expect_status 11 "$VARVE" attach --write "$again" "$work/first"
message_says 'another folder has taken over.*attach --write'
"$VARVE" -q check "$work/taken"
export XDG_STATE_HOME=$former_state
ok "an attach that is repeated succeeds for the same folder, store and role only"
expect_status 0 "$VARVE" attach --write "$again" "$work/reads"
message_says 'writes to the repository in .* from now on'
"$VARVE" -q store "$work/reads" s/three "$work/source"
expect_status 11 "$VARVE" store "$work/taken" s/late "$work/source"
ok "an attached folder takes over with the same command"

# A writer whose folder is lost.
"$VARVE" -q init "$place-lost" --local="$work/lost"
rm -r "$work/lost"
expect_status 10 "$VARVE" store "$place-lost" s/one "$work/source"
message_says "the folder of $place-lost .*/lost, is gone.*attach --write $place-lost DIR"
if grep -q 'did you mean' "$work/stderr"; then fail "$(cat "$work/stderr")"; fi
ok "a command says which folder of a place is lost, and what makes another one"

"$VARVE" ls "$place" >/dev/null 2>&1
store_command lose machines/laptop/ >/dev/null
expect_status 10 "$VARVE" ls "$place"
message_says "no repository any more.*rm -r $XDG_CACHE_HOME"
XDG_STATE_HOME=$work/state4 "$VARVE" -q init "$place" --local="$work/again"
XDG_STATE_HOME=$work/state4 "$VARVE" -q store "$place" s/new "$work/source"
expect_status 10 "$VARVE" ls "$place"
message_says "another repository now.*rm -r $XDG_CACHE_HOME"
rm -r "$XDG_CACHE_HOME"/varve/attached/*laptop-[0-9a-f]*
"$VARVE" ls "$place" 2>/dev/null | grep -q new
ok "a place that was used again says which folder to remove"
