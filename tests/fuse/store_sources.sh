#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Moves data in and out without copying through a mount: exclusions, lists, streams, archives, snapshots, names.
limit_s=240
. "$(dirname "$0")/lib.sh"

"$VARVE" -q init "$repo"
src=$work/src
mkdir "$src"
cp -a /etc "$src/etc"
mkdir "$src/doc"
find /usr/share/doc -maxdepth 1 -name 'lib[a-e]*' -exec cp -a {} "$src/doc/" \;
mkdir -p "$src/home/.cache/deep" "$src/home/docs" "$src/mountpoint"
printf 'Signature: 8a477f597d28d172789f06886806bc55\n' >"$src/home/.cache/CACHEDIR.TAG"
echo junk >"$src/home/.cache/deep/junk"
echo o >"$src/home/docs/a.o"
echo c >"$src/home/docs/a.c"
setfattr -n user.note -v kept "$src/home/docs/a.c"
setfacl -m u:12345:r "$src/home/docs/a.c"
mount -t tmpfs none "$src/mountpoint"
echo hidden >"$src/mountpoint/file"
find "$src" -exec touch -h -d '1 hour ago' {} +
pass_time 3  # Files changed in the last 2 seconds are read again.

restored() {  # VERSION: restores it to $work/out
  rm -rf "$work/out"
  "$VARVE" -q restore "$repo" "$1" "$work/out"
}
json_of() {  # KEY: prints a member of the last line in $work/stdout
  tail -1 "$work/stdout" | python3 -c '
import json, sys
print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

# Exclusions.
printf '# objects\n*.o\n\n/etc/**\n!/etc/passwd\n' >"$work/patterns"
expect_status 0 "$VARVE" store --json --exclude-from "$work/patterns" --exclude-caches -x "$repo" s/1 "$src"
restored s/1
rsync -aHAX --exclude='*.o' --include=/etc/passwd --exclude='/etc/**' --exclude='/home/.cache/deep' \
  --exclude='/mountpoint/*' "$src/" "$work/expected/"
no_rsync_difference "$work/expected/" "$work/out/"
ok "exclusions, caches and mount points are left out"
expect_status 0 "$VARVE" store --json --exclude-from "$work/patterns" --exclude-caches -x "$repo" s/2 "$src"
[ "$(json_of read_bytes)" -eq 0 ] || fail "unchanged files were read: $(cat "$work/stdout")"
[ "$(json_of unchanged)" -gt 100 ]
ok "with exclusions, unchanged files are not read"
expect_status 2 "$VARVE" store --exclude '[' "$repo" s/bad "$src"
message_says 'without a \]'
expect_status 1 "$VARVE" store --exclude-from "$work/none" "$repo" s/bad "$src"
expect_status 1 "$VARVE" ls "$repo" s/bad
ok "a wrong pattern or a missing list stores nothing"

# A plan.
echo more >>"$src/home/docs/a.c"
echo new >"$src/home/docs/new"
before=$(find "$repo" -type f -newermt '-1 day' -printf '%p %s %T@\n' | grep -v lock | sort | md5sum)
expect_status 0 "$VARVE" store -n --exclude-from "$work/patterns" --exclude-caches -x --exclude passwd \
  "$repo" s/3 "$src"
diff <(sort "$work/stdout") - <<'END'
+ home/docs/new
- etc/passwd
M home/docs/a.c
END
[ "$before" = "$(find "$repo" -type f -newermt '-1 day' -printf '%p %s %T@\n' | grep -v lock | sort | md5sum)" ] ||
  fail "a dry run changed the repository"
ok "a dry run names the changes and makes none"

# Lists.
(cd "$src" && find etc -type f -print0) |
  expect_status 0 "$VARVE" store --files-from - -0 "$repo" list/1 "$src"
restored list/1
diff <(cd "$src" && find etc -type f | sort) <(cd "$work/out" && find . -type f | cut -c3- | sort)
printf 'home/docs\nno/such\n%s/etc/passwd\n' "$src" >"$work/list"
expect_status 3 "$VARVE" store --files-from "$work/list" "$repo" list/2 "$src"
message_says 'no/such: not stored'
expect_status 0 "$VARVE" ls -l "$repo" list
grep -q '^list/2 .* incomplete$' "$work/stdout" || fail "$(cat "$work/stdout")"
expect_status 0 "$VARVE" stat "$repo" list/2
grep -q '^incomplete  *1 file was not stored' "$work/stdout"
expect_status 1 "$VARVE" status "$repo" list
grep -q 'the newest version of list, 2, is incomplete: 1 file was not stored' "$work/stdout"
expect_status 0 "$VARVE" stats --prometheus "$repo"
grep -q '^varve_last_version_problems{.*series="list"} 1$' "$work/stdout"
[ "$("$VARVE" prune -n --keep-last 1 "$repo" list | grep -c '^keep')" -eq 2 ]
restored list/2
[ "$(cd "$work/out" && find . -type f | sort | tr '\n' ' ')" = "./etc/passwd ./home/docs/a.c ./home/docs/a.o ./home/docs/new " ]
printf '' >"$work/list"
expect_status 1 "$VARVE" store --files-from "$work/list" "$repo" list/3 "$src"
ln -s etc "$src/through"
printf 'no/such\nthrough/passwd\n' >"$work/list"
for dry in '' -n; do
  # shellcheck disable=SC2086  # Nothing or one word.
  expect_status 1 "$VARVE" store $dry --files-from "$work/list" "$repo" list/3 "$src"
  message_says 'names nothing that exists.*no/such.*Nothing was stored'
  [ "$("$VARVE" ls "$repo" list | tr '\n' ' ')" = "list/1 list/2 " ] || fail "a version was made"
done
rm "$src/through"
for outside in ../etc /etc/passwd; do
  echo "$outside" >"$work/list"
  expect_status 2 "$VARVE" store --files-from "$work/list" "$repo" list/3 "$src"
  message_says "\"$outside\" .*below $src"
done
ok "a list selects files; missing ones are named, an empty or outside one is refused"

head -c 3000000 /dev/urandom >"$work/dump"
# A signal ends the wait for a list or an archive, before and after its writer came.
mkfifo "$work/names"
has_open() { find "/proc/$1/fd" -lname "$work/names" | grep -q .; }
for option in --files-from --exclude-from --from-tar; do
  for writer in without with; do
    from=$src
    [ $option != --from-tar ] || from=
    "$VARVE" store $option "$work/names" "$repo" list/4 ${from:+"$from"} 2>"$work/stderr" &
    job=$!
    wait_until "the list is open" has_open $job
    [ $writer = without ] || exec 9>"$work/names"
    kill -TERM $job
    code=0
    wait $job || code=$?
    exec 9>&-
    [ $code -eq 130 ] || fail "$option: a stopped store ended with $code: $(cat "$work/stderr")"
  done
done
rm "$work/names"
[ "$("$VARVE" ls "$repo" list | tr '\n' ' ')" = "list/1 list/2 " ] || fail "a version was made"
mkfifo "$work/names"
tar -C "$work" -cf "$work/names" dump &
expect_status 0 "$VARVE" store --from-tar "$work/names" "$repo" fifo/1
wait $!
"$VARVE" dump "$repo" fifo/1/dump | cmp - "$work/dump"
rm "$work/names"
ok "a signal ends the wait for a list or an archive in a FIFO"

# The folder itself as a pattern, and a list of another encoding.
ln -s "$src" "$work/to-src"
for pattern in "$src" "$src/" "$work/to-src"; do
  expect_status 2 "$VARVE" store --exclude "$pattern" "$repo" list/5 "$src"
  message_says 'is the stored directory itself'
done
printf 'a\nb\n' | iconv -t UTF-16 >"$work/list"
for option in --files-from --exclude-from; do
  expect_status 2 "$VARVE" store $option "$work/list" "$repo" list/5 "$src"
  message_says 'UTF-16'
done
ok "a pattern that is the folder, and a list in UTF-16, are refused"

# All commands count the same entries.
mkdir -p "$work/count/d"
touch "$work"/count/{a,b,d/c}
expect_status 0 "$VARVE" store "$repo" count/1 "$work/count"
message_says 'stored 4 entries'
expect_status 0 "$VARVE" restore --to-tar "$work/count.tar" "$repo" count/1
message_says 'restored 4 entries'
ok "a restore into an archive counts what the store counted"

# Streams.
"$VARVE" -q store --time 2020-02-29T12:30Z --stdin dir/db.sql "$repo" db/1 <"$work/dump" >/dev/null
"$VARVE" dump "$repo" db/1/dir/db.sql | cmp - "$work/dump"
expect_status 0 "$VARVE" stat --json "$repo" db/1
[ "$(json_of claimed_at)" = 2020-02-29T12:30:00.000000000Z ]
for name in ../x /abs/x; do
  expect_status 2 "$VARVE" store --stdin "$name" "$repo" db/2 </dev/null
  message_says "\"$name\" cannot be the path of a file"
done
expect_status 2 "$VARVE" store --stdin '' "$repo" db/2 </dev/null
message_says 'stdin.*empty'
expect_status 2 "$VARVE" store "$repo" ./x "$src"
message_says '"\./x"'
expect_status 1 "$VARVE" dump "$repo" db/1/dir
message_says 'is a directory'
expect_status 1 "$VARVE" dump "$repo" db/1/none
"$VARVE" dump "$repo" db/latest/dir/db.sql | head -c 10 | cmp - <(head -c 10 "$work/dump") ||
  [ "${PIPESTATUS[0]}" -eq 141 ]
mkfifo "$work/fifo"
kill_stream() {
  "$VARVE" -q store --stdin db.sql "$repo" db/2 <"$work/fifo" >/dev/null 2>&1 &
  job=$!
  exec 9>"$work/fifo" && cat "$work/dump" >&9
  kill -9 $job && { wait $job 2>/dev/null || true; }
  exec 9>&-
}
kill_stream
"$VARVE" -q store "$repo" db/other "$src/home"
"$VARVE" -q rm "$repo" db/other
ok "an interrupted store that has no file yet does not stop the store of another source"
kill_stream
"$VARVE" -q store --stdin db.sql "$repo" db/3 <"$work/dump" >/dev/null
[ "$("$VARVE" ls "$repo" db | tr '\n' ' ')" = "db/1 db/3 " ] || fail "$("$VARVE" ls "$repo" db)"
"$VARVE" dump "$repo" db/3/db.sql | cmp - "$work/dump"
ok "a stream comes back; after a kill, the next one starts again and nothing half is sealed"
"$VARVE" -q store --time 1970-01-01T00:00:00Z --stdin db.sql "$repo" db/1970 <"$work/dump" >/dev/null
expect_status 0 "$VARVE" stat --json "$repo" db/1970
[ "$(json_of claimed_at)" = 1970-01-01T00:00:00.000000000Z ]
TZ=UTC "$VARVE" ls -l "$repo" db | grep -q 'db/1970 .*claims 1970-01-01' || fail "$("$VARVE" ls -l "$repo" db)"
"$VARVE" -q rm "$repo" db/1970
mkdir "$work/epoch"
touch -d @0 "$work/epoch/file"
"$VARVE" -q store "$repo" epoch/1 "$work/epoch"
TZ=UTC "$VARVE" ls -l "$repo" epoch/1 | grep -q "1970-01-01 00:00:00" || fail "$("$VARVE" ls -l "$repo" epoch/1)"
ok "the start of 1970 is a time, of a version and of a file"
# timeout(1) sends one request as two signals, of which the second one must not end the clean-up.
is_open() { "$VARVE" ls "$repo" "$1" 2>/dev/null | grep -q open; }
for n in 1 2 3; do
  "$VARVE" -q store --stdin db.sql "$repo" signals/$n <"$work/fifo" >/dev/null 2>&1 &
  job=$!
  exec 9>"$work/fifo"
  printf half >&9
  wait_until "the version is open" is_open signals
  kill -TERM $job
  kill -HUP $job 2>/dev/null || true
  code=0
  wait $job || code=$?
  exec 9>&-
  [ $code -eq 130 ] || fail "status $code"
  expect_status 1 "$VARVE" ls "$repo" signals
done
ok "two signals at once leave no version of a stream"

# Archives.
rm -rf "$src/etc" && umount "$src/mountpoint"
truncate -s 1M "$src/home/sparse" && echo end >>"$src/home/sparse"
ln "$src/home/docs/a.c" "$src/home/link"
mknod "$src/home/null" c 1 3
printf x >"$src/home/$(printf 'not\xffutf8\303\251')"
find "$src" -exec touch -h -d '2 hours ago' {} +
tar -C "$src" --format=pax --sparse --xattrs --acls -cf "$work/pax.tar" .
tar -C "$src" --format=gnu --sparse -czf "$work/gnu.tar.gz" .
echo first >"$work/one.txt" && echo second >"$work/two.txt"
tar -C "$work" -cf "$work/one.tar" one.txt && tar -C "$work" -cf "$work/two.tar" two.txt
cat "$work/one.tar" "$work/two.tar" >"$work/joined.tar"
gzip -k "$work/one.tar" "$work/two.tar"
cat "$work/one.tar.gz" "$work/two.tar.gz" >"$work/joined.tar.gz"
for archive in joined.tar joined.tar.gz; do
  "$VARVE" -q store --from-tar - "$repo" "joined/$archive" < <(cat "$work/$archive") >/dev/null
  [ "$("$VARVE" dump "$repo" "joined/$archive/one.txt")" = first ]
  [ "$("$VARVE" dump "$repo" "joined/$archive/two.txt")" = second ] || fail "$archive: half is lost"
done
ok "joined archives are stored to the end"
bsdtar -C "$src" -c --format newc -f "$work/new.cpio" .
(cd "$src" && bsdtar -c --format zip -f "$work/zip" home/docs/a.o)
xz -k -0 "$work/new.cpio"
cat "$work/new.cpio" "$work/new.cpio" | xz -0 >"$work/joined.cpio.xz"
expect_status 1 "$VARVE" store --from-tar "$work/joined.cpio.xz" "$repo" tar/joined
message_says 'data follows the trailer'
for archive in pax.tar gnu.tar.gz new.cpio new.cpio.xz; do
  "$VARVE" -q store --from-tar - "$repo" "tar/$archive" <"$work/$archive" >/dev/null
  restored "tar/$archive"
  case $archive in
    pax.tar) no_rsync_difference "$src/" "$work/out/" ;;
    *) [ -z "$(rsync -aHnc --delete --itemize-changes --modify-window=1 "$src/" "$work/out/")" ] ||
      fail "$archive: $(rsync -aHnc --delete --itemize-changes --modify-window=1 "$src/" "$work/out/")" ;;
  esac
done
"$VARVE" -q store --from-tar "$work/zip" "$repo" tar/zip >/dev/null
"$VARVE" dump "$repo" tar/zip/home/docs/a.o | cmp - "$src/home/docs/a.o"
ok "pax, gnu, cpio and zip archives come back equal"

# Checksums that libarchive ignores, and what only the end of a zip archive says.
python3 - "$work" <<'EOF'
import gzip, io, os, stat, sys, tarfile, zipfile
work = sys.argv[1]
content = os.urandom(300_000)
tar = io.BytesIO()
with tarfile.open(fileobj=tar, mode="w") as archive:
    member = tarfile.TarInfo("file")
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
tar = tar.getvalue()
half = len(tar) // 2
two = gzip.compress(tar[:half]) + gzip.compress(tar[half:])
flipped = bytearray(gzip.compress(tar, 0))  # Stored as it is, so that only the checksum tells.
flipped[flipped.find(content[1000:1064]) + 5] ^= 1
for name, data in (("content", content), ("two.gz", two), ("flipped.gz", flipped),
                   ("cut.gz", two[:-4]), ("garbage.gz", two + b"garbage")):
    with open(f"{work}/{name}", "wb") as file:
        file.write(data)
with zipfile.ZipFile(f"{work}/link.zip", "w") as archive:
    for name, mode, data in (("program", stat.S_IFREG | 0o4755, content),
                             ("link", stat.S_IFLNK | 0o777, b"../x")):
        member = zipfile.ZipInfo(name)
        member.create_system = 3
        member.external_attr = mode << 16
        archive.writestr(member, data)
with open(f"{work}/link.zip", "rb") as file, open(f"{work}/cut.zip", "wb") as cut:
    cut.write(file.read()[:-1])
EOF
for archive in flipped.gz cut.gz garbage.gz cut.zip; do
  expect_status 1 "$VARVE" store --from-tar "$work/$archive" "$repo" damaged/1
  expect_status 1 "$VARVE" store --from-tar - "$repo" damaged/1 < <(cat "$work/$archive")
  expect_status 1 "$VARVE" ls "$repo" damaged
done
expect_status 1 "$VARVE" store --from-tar - "$repo" damaged/1 < <(cat "$work/link.zip")
message_says "cannot be read from a pipe"
"$VARVE" -q store --from-tar - "$repo" tar/two < <(cat "$work/two.gz") >/dev/null
"$VARVE" dump "$repo" tar/two/file | cmp - "$work/content"
"$VARVE" -q store --from-tar "$work/link.zip" "$repo" tar/link >/dev/null
"$VARVE" ls -l "$repo" tar/link >"$work/listed"
grep -q '^-rwsr-xr-x.* program$' "$work/listed" && grep -q 'link -> ../x$' "$work/listed" ||
  fail "$(cat "$work/listed")"
ok "a damaged gzip archive is refused, and so is a zip archive without its end"
python3 "$here/hostile_archives.py" "$work/hostile"
for archive in "$work"/hostile/bad-*; do
  expect_status 1 "$VARVE" store --from-tar "$archive" "$repo" hostile/1
  expect_status 1 "$VARVE" ls "$repo" hostile
done
for archive in "$work"/hostile/good-*; do
  name=$(basename "$archive")
  allowed=$([ "$name" = good-empty.tar ] && echo --allow-empty || true)
  # shellcheck disable=SC2086
  expect_status 0 "$VARVE" store $allowed --from-tar "$archive" "$repo" "good/$name"
done
[ "$("$VARVE" dump "$repo" good/good-absolute.tar/etc/passwd)" = mine ]
[ "$("$VARVE" dump "$repo" good/good-twice.tar/file)" = second ]
ok "hostile archives are refused, and leave no version"
for kind in xz lzma zst; do
  [ "$("$VARVE" dump "$repo" "good/good-window.tar.$kind/file" | wc -c)" -eq 7000 ] || fail "$kind: another content"
done
expect_status 1 "$VARVE" store --from-tar "$work/hostile/bad-window.tar.xz" "$repo" hostile/1
message_says "needs 1024 MiB of memory to be decompressed"
expect_status 1 "$VARVE" store --from-tar "$work/hostile/bad-method.zip" "$repo" hostile/1
message_says "no bound of memory"
ok "no archive takes more memory than 129 MiB for its decoder"
apart=$(printf 'cafe\314\201') together=$(printf 'caf\303\251')
for archive in tar zip; do
  [ "$("$VARVE" dump "$repo" "good/good-names.$archive/$apart")" = apart ] || fail "$archive: a name was altered"
  [ "$("$VARVE" dump "$repo" "good/good-names.$archive/$together")" = together ]
done
restored good/good-names.tar
[ "$(readlink "$work/out/sym")" = "$apart" ] && [ "$work/out/hard" -ef "$work/out/$apart" ] || fail "a link was altered"
restored good/good-names.zip
(cd "$work/out" && find . ! -name . -printf '%y %P\n' | LC_ALL=C sort) |
  diff - <(printf '%s\n' 'd A' "d d$apart" 'f A/B' 'f A\B' "f $apart" "f $together" "f $together\\x" | LC_ALL=C sort)
restored good/good-dos.zip
[ "$(cat "$work/out/A/B" "$work/out/A/C")" = onetwo ]
ok "names of archives keep their bytes"
mkdir "$work/unpacked"
tar -C "$work/unpacked" --acls -xpf "$work/hostile/good-acl.tar"
restored good/good-acl.tar
for name in file dir suid; do
  [ "$(stat -c %a "$work/out/$name")" = "$(stat -c %a "$work/unpacked/$name")" ] ||
    fail "$name: mode $(stat -c %a "$work/out/$name")"
  diff <(cd "$work/out" && getfacl -n "$name") <(cd "$work/unpacked" && getfacl -n "$name")
done
[ "$(stat -c %a "$work/out/file" "$work/out/dir" "$work/out/suid" | tr '\n' ' ')" = "664 775 4774 " ]
ok "modes beside ACLs come back as tar restores them"
expect_status 3 "$VARVE" store --from-tar "$work/hostile/odd-acl.tar" "$repo" lossy/acl
message_says 'part of the ACL not stored'
expect_status 3 "$VARVE" store --from-tar "$work/hostile/odd-mtime.tar" "$repo" lossy/mtime
message_says 'the mtime is out of range'
ok "the command says what of an ACL or a time it cannot store"

# Names.
expect_status 0 "$VARVE" find --json "$repo" 'a.?'
[ "$(grep -c '"path": *"home/docs/a.c"' "$work/stdout")" -ge 4 ] || fail "$(cat "$work/stdout")"
expect_status 0 "$VARVE" find --series db "$repo" '/dir/*'
[ "$(wc -l <"$work/stdout")" -eq 1 ]
mkdir "$work/odd" && touch "$work/odd/$(printf 'line\nbreak')"
"$VARVE" -q store "$repo" odd/1 "$work/odd" >/dev/null
expect_status 0 "$VARVE" find "$repo" 'line*'
grep -q 'line\\x0abreak$' "$work/stdout" || fail "a name looks like two lines: $(cat "$work/stdout")"
expect_status 0 "$VARVE" find "$repo" nothing-has-this-name
message_says 'no sealed version'
ok "find searches all versions"
"$VARVE" -q lock --for 1d "$repo" db/1 2>/dev/null
"$VARVE" -q mv "$repo" db/1 first
"$VARVE" -q mv "$repo" db data
mount_repo
[ "$(ls "$mnt/data")" = "$(printf '3\nfirst\nlatest')" ]
cd "$mnt/data/first/dir"
"$VARVE" -q mv "$mnt/data/first" one
[ -e "$mnt/data/one/dir/db.sql" ] && [ ! -e "$mnt/data/first" ]
"$VARVE" -q mv "$repo" data base
[ -e "$mnt/base/one/dir/db.sql" ] && [ ! -e "$mnt/data" ]
cmp db.sql "$work/dump"
cd "$work"
mkdir "$mnt/base/open"
expect_status 1 "$VARVE" mv "$repo" base other
message_says 'is open'
expect_status 1 "$VARVE" mv "$repo" base/one 3
expect_status 2 "$VARVE" mv "$repo" base/one bad.partial
expect_status 2 "$VARVE" store --stdin dump "$repo" base/new </dev/null
message_says 'a file or a pipe'
mkdir -p "$work/days/2024-01-01"
expect_status 11 "$VARVE" import "$repo" "$work/days" base
message_says 'unmount it'
! setfattr -n user.varve.claimed_at -v '1 2 3' "$mnt/base/open" 2>/dev/null || fail "a user set a claimed time"
echo x >"$mnt/base/open/x"
"$VARVE" -q seal --time 2019-01-01 "$mnt/base/open" >/dev/null
[ -z "$(getfattr -R -d -m '^user\.varve\.claimed' "$mnt/base/open" 2>/dev/null)" ] || fail "the mount shows the attribute"
unmount_repo
expect_status 0 "$VARVE" stat --json "$repo" base/open
json_of claimed_at | grep -q '^201[89]'
"$VARVE" repair --yes --rebuild-catalog "$repo" >/dev/null
expect_status 0 "$VARVE" stat --json "$repo" base/one
[ "$(json_of claimed_at)" = 2020-02-29T12:30:00.000000000Z ]
[ "$(json_of locked)" = True ]
ok "names, locks and claimed times survive renames, mounts and a rebuilt catalog"

# Snapshots.
snaps=$work/snaps
mkdir "$snaps"
cp -a "$src/doc" "$snaps/2024-01-01"
for day in 02 03 04; do
  rsync -a --link-dest="$snaps/2024-01-$(printf %02d $((10#$day - 1)))/" "$snaps/2024-01-$(printf %02d $((10#$day - 1)))/" "$snaps/2024-01-$day/"
  echo "$day" >"$snaps/2024-01-$day/changed"
done
ln -s 2024-01-04 "$snaps/latest"
mkdir "$snaps/2024-01-05.inProgress"
pass_time 3
expect_status 0 "$VARVE" import -n "$repo" "$snaps" old
[ "$(grep -c '^would import' "$work/stdout")" -eq 4 ]
expect_status 0 "$VARVE" import --json "$repo" "$snaps" old
[ "$(json_of read_bytes)" -le 3 ] || fail "$(cat "$work/stdout")"
for day in 01 02 03 04; do
  restored "old/2024-01-$day"
  no_rsync_difference "$snaps/2024-01-$day/" "$work/out/"
done
expect_status 0 "$VARVE" import "$repo" "$snaps" old
message_says 'imported 0 snapshots; 4'
first=$("$VARVE" ls "$repo" old | head -1)
"$VARVE" -q rm "$repo" "$first" >/dev/null
"$VARVE" -q open "$repo" "$first"  # As a killed import leaves it.
"$VARVE" -q seal "$repo" "$first" >/dev/null
expect_status 3 "$VARVE" import "$repo" "$snaps" old
message_says 'not imported: old/.*varve rm.*varve import'
expect_status 3 "$VARVE" import -n "$repo" "$snaps" old
"$VARVE" -q rm "$repo" "$first" >/dev/null
expect_status 0 "$VARVE" import "$repo" "$snaps" old
message_says 'imported 1 snapshots; 3'
expect_status 0 "$VARVE" prune -n --keep-daily 2 "$repo" old
[ "$(grep -c '^would delete' "$work/stdout")" -eq 2 ]
expect_status 0 "$VARVE" prune -n --by sealed --keep-daily 2 "$repo" old
[ "$(grep -c '^would delete' "$work/stdout")" -eq 3 ]
expect_status 2 "$VARVE" status --max-age 1d "$repo" old
ok "snapshots become versions with their dates, and shared files are not read"

mkdir "$work/thirty"
for day in $(seq 30); do
  dated=$work/thirty/$(date -d "$day days ago" +%F)
  mkdir "$dated"
  echo "$day" >"$dated/file"
done
expect_status 0 "$VARVE" import "$repo" "$work/thirty" dated
keep=$(sed -n 's/^Environment="VARVE_KEEP=\(.*\)"$/\1/p' "$here/../../mount-helpers/varve-backup@.service.in")
# shellcheck disable=SC2086
expect_status 0 "$VARVE" prune $keep "$repo" dated
[ "$("$VARVE" ls "$repo" dated | wc -l)" -eq 30 ] || fail "$(cat "$work/stdout")"
ok "the rules of the shipped unit keep 30 imported days"
"$VARVE" check --read-data "$repo" >/dev/null
ok "the repository is sound"
