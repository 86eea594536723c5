#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copies a mounted repository in use to a second one, here and through an ssh, with interruptions of all kinds.
limit_s=300
. "$(dirname "$0")/lib.sh"

src=$work/src
copy=$work/copy
mnt2=$work/mnt2
mkdir "$src" "$mnt2"
"$VARVE" -q init --chunk-size 4K "$repo" 2>/dev/null || "$VARVE" -q init "$repo"

# Something of everything that a tree can have.
mkdir -p "$src/a/b" "$src/c" "$src/many"
head -c 3000000 /dev/urandom >"$src/a/big"
ln "$src/a/big" "$src/c/linked"
ln -s ../a "$src/c/link"
truncate -s 5M "$src/sparse"
printf x | dd of="$src/sparse" bs=1 seek=2M conv=notrunc status=none
mknod "$src/null" c 1 3
mkfifo "$src/fifo"
for i in $(seq 300); do echo "file $i" >"$src/many/$i"; done
setfattr -n user.note -v kept "$src/a/b"
chmod 4751 "$src/many/1"
chown 12:34 "$src/many/2"
touch -h -d '2001-02-03 04:05:06.789' "$src/c/link" "$src/many/3"
printf 'name' >"$src/$(printf 'bad\377name')"

# Compares each version of the source that is mounted on $mnt with the copy.
same_versions() {
  local version
  "$VARVE" mount -o ro "$copy" "$mnt2"
  for version in "$mnt/s/"*/; do
    version=$(basename "$version")
    [ "$version" != latest ] || continue
    case $version in *.partial) continue ;; esac
    python3 "$here/tree_state.py" "$mnt/s/$version" "$mnt2/s/$version" ||
      fail "version $version differs"
  done
  "$VARVE" umount "$mnt2"
}
sealed_times() { "$VARVE" ls --json "$1" s | python3 -c '
import json, sys
for line in sys.stdin:
    version = json.loads(line)
    if version["state"] == "sealed":
        print(version["version"], version["sealed_at"])'; }

# A mounted source in use.
mount_repo
mkdir "$mnt/s"
for v in 1 2; do
  mkdir "$mnt/s/v$v.partial"
  rsync -aHAX --sparse "$src/" "$mnt/s/v$v.partial/"
  mv -T "$mnt/s/v$v.partial" "$mnt/s/v$v"
  echo "changed $v" >>"$src/many/7"
  printf y | dd of="$src/a/big" bs=1 seek=1M conv=notrunc status=none
done
mkdir "$mnt/s/v3.partial"
rsync -aHAX --sparse "$src/" "$mnt/s/v3.partial/" &
writer=$!
expect_status 0 "$VARVE" copy -n "$repo" "$copy"
[ "$(cat "$work/stdout")" = "would copy s/v1
would copy s/v2" ] || fail "the forecast is $(cat "$work/stdout")"
[ ! -e "$copy" ]
expect_status 0 "$VARVE" copy --json "$repo" "$copy"
wait "$writer"
mv -T "$mnt/s/v3.partial" "$mnt/s/v3"
expect_status 0 "$VARVE" copy "$mnt" "$copy"
message_says 'copied 1 versions; 2 were there already'
same_versions
diff <(sealed_times "$repo") <(sealed_times "$copy")
sealed=$("$VARVE" stat "$repo" s/v2 | awk '$1 == "sealed" { print $2, $3 }')
"$VARVE" ls -l "$copy" s | grep '^s/v2 ' >"$work/out"
grep -q "copied, sealed $sealed" "$work/out" || fail "ls -l tells no origin: $(cat "$work/out")"
"$VARVE" stat "$copy" s/v2 | grep '^copy of ' >"$work/out"
grep -q "version 2 of series 1 in repository .*, sealed $sealed" "$work/out" ||
  fail "stat tells no origin: $(cat "$work/out")"
ok "versions of a mounted source arrive whole, with their times, while rsync writes another"

# Only what changed.
echo new >"$src/new"
mkdir "$mnt/s/v4.partial"
rsync -aHAX --sparse --link-dest="$mnt/s/v3/" "$src/" "$mnt/s/v4.partial/"
mv -T "$mnt/s/v4.partial" "$mnt/s/v4"
expect_status 0 "$VARVE" copy --json "$repo" "$copy"
python3 - "$work/stdout" <<'END'
import json, sys
step = json.loads(open(sys.argv[1]).read())
assert step["action"] == "copy" and step["version"] == "v4" and step["whole"], step
assert step["changes"] < 20 and step["sent_bytes"] == 4, step
END
ok "a version with one new file costs its bytes"

# Refusals.
"$VARVE" mount "$copy" "$mnt2"
expect_status 11 "$VARVE" copy "$repo" "$copy"
message_says 'must not be mounted'
"$VARVE" umount "$mnt2"
expect_status 1 "$VARVE" copy "$repo" "$repo"
message_says 'source itself'
expect_status 1 "$VARVE" copy "$repo" "$mnt"
message_says 'source itself'
expect_status 1 "$VARVE" copy "$repo" "$repo/sub/copy"
message_says 'is in the repository .*outside it'
[ ! -e "$repo/sub" ]
expect_status 1 "$VARVE" copy "$repo" "$src"
message_says 'not empty'
expect_status 1 "$VARVE" copy --series none "$repo" "$copy"
message_says 'no series called none'
expect_status 2 "$VARVE" copy "$repo" ssh:
expect_status 2 "$VARVE" copy "$repo" ssh:host
expect_status 2 "$VARVE" copy "$repo" ssh:-oProxyCommand=x:path
message_says 'dash'
ok "targets that would lose something are refused"

# Deletions follow only on request.
"$VARVE" -q rm "$repo" s/v2 >"$work/removed"
expect_status 0 "$VARVE" copy "$repo" "$copy"
message_says '1 kept'
"$VARVE" ls "$copy" >"$work/listed"
grep -qx s/v2 "$work/listed"
expect_status 0 "$VARVE" copy -n --prune "$repo" "$copy"
[ "$(cat "$work/stdout")" = "would delete s/v2" ]
expect_status 0 "$VARVE" copy --prune "$repo" "$copy"
message_says '1 deleted'
"$VARVE" ls "$copy" >"$work/listed"
! grep -qx s/v2 "$work/listed" || fail "s/v2 was not deleted"
same_versions
ok "a deletion at the source follows only with --prune"

# A source that this process may only read.
mkdir "$work/readonly"
mount --bind "$repo" "$work/readonly"
mount -o remount,ro,bind "$work/readonly"
expect_status 0 "$VARVE" copy "$work/readonly" "$work/copy2"
umount "$work/readonly"
ok "a read-only source is enough"
unmount_repo

# A series with another name.
for names in "s renamed" "renamed s"; do
  # shellcheck disable=SC2086  # Two names.
  "$VARVE" -q mv "$repo" $names
  expect_status 0 "$VARVE" copy "$repo" "$copy"
  ! grep -q arranging "$work/stderr" || fail "$(cat "$work/stderr")"
done
ok "a renamed series is renamed in the target, and arranged there"

# Through an ssh, which here runs the command itself.
cat >"$work/ssh" <<'END'
#!/bin/bash
[ "$1" = me@host ] || exit 9
[ $# -eq 2 ] || exit 8
exec bash -c "$2"
END
chmod +x "$work/ssh"
export VARVE_SSH=$work/ssh
remote="$work/it's a copy"
over_ssh() { "$VARVE" copy --remote-program "$VARVE" "$@" "$repo" "ssh:me@host:$remote"; }
expect_status 0 over_ssh -n
[ ! -e "$remote" ]
expect_status 0 over_ssh
expect_status 0 over_ssh --verify --json
[ "$(grep -c '"verify"' "$work/stdout")" -eq 3 ]
mount_repo
copy=$remote same_versions
unmount_repo
"$VARVE" check --read-data "$remote" >"$work/checked"
grep -q 'no damage' "$work/checked"
expect_status 1 "$VARVE" copy --remote-program /none "$repo" "ssh:me@host:$remote"
message_says 'ended without an answer'
expect_status 1 "$VARVE" copy --ssh /none "$repo" "ssh:me@host:$remote"
message_says 'cannot start /none'
"$VARVE" mount "$remote" "$mnt2"
expect_status 11 over_ssh
"$VARVE" umount "$mnt2"
ok "a copy through ssh is the same, with the same exit codes"

# kill -9 of either end at any time.
head -c 30000000 /dev/urandom >"$src/a/more"
"$VARVE" -q store "$repo" s/v5 "$src" >"$work/stored"
for i in 1 2 3 4; do
  over_ssh --json >/dev/null 2>&1 &
  victim=$!
  sleep "0.$((i * 3 % 4 + 1))"
  if [ $((i % 2)) -eq 0 ]; then
    kill -9 "$victim" 2>/dev/null || true
  else
    pkill -9 -P "$victim" 2>/dev/null || true  # The end that writes.
  fi
  wait "$victim" 2>/dev/null || true
done
for i in 1 2 3; do
  "$VARVE" -q copy "$repo" "$work/copy2" >/dev/null 2>&1 &
  victim=$!
  sleep "0.$i"
  kill -9 "$victim" 2>/dev/null || true
  wait "$victim" 2>/dev/null || true
done
expect_status 0 over_ssh
expect_status 0 "$VARVE" copy "$repo" "$work/copy2"
mount_repo
copy=$remote same_versions
copy=$work/copy2 same_versions
unmount_repo
"$VARVE" check --read-data "$remote" >"$work/checked"
grep -q 'no damage' "$work/checked"
[ -z "$("$VARVE" ls "$remote" | grep open || true)" ]
ok "kill -9 of either end loses nothing, and the next copy continues"

# Interruptions by the user, and two copies at once.
head -c 60000000 /dev/urandom >"$src/a/more"
"$VARVE" -q store "$repo" s/v6 "$src" >"$work/stored"
"$VARVE" copy "$repo" "$work/copy2" >"$work/first" 2>&1 &
victim=$!
until [ -n "$(ls -A "$work/copy2/staging")" ]; do sleep 0.01; done
kill -TERM "$victim"  # Background jobs ignore SIGINT.
status=0
wait "$victim" || status=$?
[ "$status" -eq 130 ] || fail "status $status: $(cat "$work/first")"
grep -q 'same command continues' "$work/first"
"$VARVE" copy "$repo" "$work/copy2" >"$work/first" 2>&1 &
victim=$!
"$VARVE" copy "$repo" "$work/copy2" >"$work/second" 2>&1 || [ $? -eq 11 ]
wait "$victim" || [ $? -eq 11 ]
[ "$(cat "$work/first" "$work/second" | grep -c '^copied s/v6')" -eq 1 ]
ok "an interrupted copy ends with 130 and continues; of two at once, one copies"

# A full target.
mkdir "$work/small"
mount -t tmpfs -o size=60m none "$work/small"
expect_status 1 "$VARVE" copy "$repo" "$work/small/copy"
message_says 'space|full'
mount -o remount,size=400m "$work/small"
expect_status 0 "$VARVE" copy "$repo" "$work/small/copy"
mount_repo
copy=$work/small/copy same_versions
unmount_repo
umount "$work/small"
ok "a full target keeps what it has, and the copy continues"

# Damage at the source.
head -c 5000000 /dev/urandom >"$src/a/hit"
"$VARVE" -q store --no-arrange "$repo" s/v7 "$src" >"$work/stored"
segment=$(find "$repo/series" -name '*.seg' -newer "$src/a/hit" -printf '%s %p\n' | sort -n | tail -1)
printf 'damage' | dd of="${segment#* }" bs=1 seek=$((${segment%% *} / 2)) conv=notrunc status=none
rm "$src/a/hit"
echo later >"$src/later"
"$VARVE" -q store --no-arrange "$repo" s/v8 "$src" >"$work/stored"
expect_status 3 "$VARVE" copy "$repo" "$work/copy2"
message_says 's/v7: skipped'
"$VARVE" ls "$work/copy2" >"$work/listed"
grep -qx s/v8 "$work/listed"
! grep -qx s/v7 "$work/listed" || fail "a damaged version was copied"
expect_status 3 "$VARVE" copy --incomplete "$repo" "$copy"
message_says 's/v7/a/hit: left out'
"$VARVE" ls "$copy" s/v7/a >"$work/listed"
! grep -q hit "$work/listed" || fail "a damaged file was copied"
grep -q big "$work/listed"
ok "a damaged version is skipped, or copied without its damaged files"

# The source is destroyed.
rm -rf "$repo"
"$VARVE" -q restore "$copy" s/v8 "$work/restored"
python3 "$here/tree_state.py" "$src" "$work/restored"
"$VARVE" check --read-data "$copy" >"$work/checked"
grep -q 'no damage' "$work/checked"
expect_status 10 "$VARVE" copy --prune "$repo" "$copy"
"$VARVE" mount -o ro "$copy" "$mnt2"
[ "$(readlink "$mnt2/s/latest")" = v8 ]
"$VARVE" umount "$mnt2"
ok "the copy is mounted, checked and restored from without the source"
