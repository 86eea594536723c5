#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The fixed command of a key, as in authorized_keys, decides what the source of a copy may do.
limit_s=120
. "$(dirname "$0")/lib.sh"

far=$work/far
cat >"$work/ssh" <<'END'
#!/bin/bash
eval "exec $(cat "$(dirname "$0")/command")"
END
chmod +x "$work/ssh"
export VARVE_SSH=$work/ssh
serve_with() { echo "$VARVE serve-copy $* -- $far" >"$work/command"; }  # OPTIONS
id_of() { sed -n 's/^repository_id = *"\{0,1\}\([0-9a-f]\{32\}\).*/\1/p' "$1/varve.repo"; }
locked_until() { "$VARVE" stat --json "$far" "$1" | python3 -c '
import datetime, json, sys
text = json.load(sys.stdin)["locked_until"]
print(int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()))'; }
listed() { "$VARVE" ls "$far" "$@" | tr '\n' ' '; }

mkdir "$work/data"
echo one >"$work/data/file"
"$VARVE" -q init "$repo"
for version in v1 v2 v3; do "$VARVE" -q store "$repo" "home/$version" "$work/data"; done
serve_with
expect_status 0 "$VARVE" copy "$repo" ssh:host:ignored
[ "$(listed home)" = "home/v1 home/v2 home/v3 " ] || fail "$(listed home)"

"$VARVE" -q rm "$repo" home/v1
expect_status 3 "$VARVE" copy --prune "$repo" ssh:host:ignored
message_says 'may not delete versions'
[ "$(listed home)" = "home/v1 home/v2 home/v3 " ] || fail "$(listed home)"
serve_with --may-prune
"$VARVE" -q lock --for 2d "$far" home/v1
expect_status 3 "$VARVE" copy --prune "$repo" ssh:host:ignored
message_says 'lock'
"$VARVE" -q rm "$repo" home/v2
expect_status 3 "$VARVE" copy --prune "$repo" ssh:host:ignored
[ "$(listed home)" = "home/v1 home/v3 " ] || fail "$(listed home)"
ok "a source deletes only if the command of the target permits it, and nothing that is locked"

serve_with --lock-max=30d
"$VARVE" -q lock --for 100y "$repo" home/v3
expect_status 0 "$VARVE" copy "$repo" ssh:host:ignored
message_says 'home/v3: the target ends the lock at'
[ "$(locked_until home/v3)" -le $(($(date +%s) + 30 * 86400)) ] || fail "a lock beyond the limit"
serve_with
expect_status 0 "$VARVE" copy "$repo" ssh:host:ignored
[ "$(locked_until home/v3)" -gt $(($(date +%s) + 4 * 366 * 86400)) ] || fail "no longer lock"
[ "$(locked_until home/v3)" -le $(($(date +%s) + 5 * 366 * 86400)) ] || fail "a lock beyond the limit"
serve_with --lock-max=30d
expect_status 0 "$VARVE" copy "$repo" ssh:host:ignored
[ "$(locked_until home/v3)" -gt $(($(date +%s) + 4 * 366 * 86400)) ] || fail "a shorter lock"
ok "a lock of the source ends at the limit of the target, and becomes no shorter"

# A second source, and a series of the target's user.
"$VARVE" -q init "$work/second"
"$VARVE" -q store "$work/second" mail/m1 "$work/data"
"$VARVE" -q store "$far" local/mine "$work/data"
serve_with
expect_status 1 "$VARVE" copy "$work/second" ssh:host:ignored
message_says 'copies of another repository'
serve_with --origin="$(id_of "$repo")"
expect_status 1 "$VARVE" copy "$work/second" ssh:host:ignored
serve_with --origin="$(id_of "$work/second")"
expect_status 0 "$VARVE" copy "$work/second" ssh:host:ignored
[ "$(listed)" = "home/v1 home/v3 local/mine mail/m1 " ] || fail "$(listed)"
"$VARVE" -q store "$work/second" home/h1 "$work/data"
"$VARVE" -q store "$work/second" local/l1 "$work/data"
expect_status 3 "$VARVE" copy "$work/second" ssh:host:ignored
message_says 'home: .*versions from elsewhere'
message_says 'local: .*versions from elsewhere'
[ "$(listed)" = "home/v1 home/v3 local/mine mail/m1 " ] || fail "$(listed)"
serve_with
expect_status 1 "$VARVE" copy "$repo" ssh:host:ignored
message_says 'serve-copy --origin=ID'
serve_with --origin="$(id_of "$repo")"
"$VARVE" -q store "$repo" home/v4 "$work/data"
expect_status 0 "$VARVE" copy --verify "$repo" ssh:host:ignored
[ "$(listed)" = "home/v1 home/v3 home/v4 local/mine mail/m1 " ] || fail "$(listed)"
serve_with --origin=xyz
expect_status 1 "$VARVE" copy "$repo" ssh:host:ignored
message_says 'repository_id in the file varve.repo'
ok "each source reaches series of its own only; with several sources, the command names the one"

# A program's link `latest` beside the versions, as of rsync-time-backup, stays at the source.
mount_repo -o beside
rm "$mnt/home/latest"
ln -s v3 "$mnt/home/latest"
echo text >"$mnt/home/backup.marker"
unmount_repo
"$VARVE" check "$repo" >"$work/checked" 2>&1
grep -q '`latest` of a program replaces' "$work/checked" || fail "$(cat "$work/checked")"
serve_with --origin="$(id_of "$repo")"
expect_status 0 "$VARVE" copy "$repo" ssh:host:ignored
"$VARVE" mount -o ro "$far" "$mnt"
[ "$(readlink "$mnt/home/latest")" = v4 ] || fail "latest is $(readlink "$mnt/home/latest")"
[ "$(cat "$mnt/home/backup.marker")" = text ]
"$VARVE" umount "$mnt"
"$VARVE" check --read-data "$far" >"$work/checked"
grep -q 'no damage' "$work/checked"
ok "the files of programs follow, without a link that replaces the target's own"

serve_with --origin="$(id_of "$repo")" --series-max=2
for name in more most; do "$VARVE" -q store "$repo" $name/v1 "$work/data"; done
expect_status 3 "$VARVE" copy "$repo" ssh:host:ignored
message_says 'most: .*2 series .*as many as the source may create.*--series-max'
[ "$(listed more)" = "more/v1 " ] || fail "$(listed)"
expect_status 1 "$VARVE" ls "$far" most
ok "a source creates as many series as the target permits"

# Without a fixed command, the source has a shell there, and asks for what its user wants.
cat >"$work/ssh" <<'END'
#!/bin/bash
exec bash -c "$2"
END
"$VARVE" -q copy --remote-program "$VARVE" "$repo" "ssh:host:$work/free"
"$VARVE" -q rm "$repo" home/v4
"$VARVE" -q store "$repo" home/v5 "$work/data"
expect_status 0 "$VARVE" copy --prune --remote-program "$VARVE" "$repo" "ssh:host:$work/free"
message_says '1 deleted'
ok "a copy through a shell of the user deletes with --prune"
