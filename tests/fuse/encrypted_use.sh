#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A user's walk through an encrypted repository of each placement: mount, cp, rsync, seal, clone, delete, prune, arrange,
# parity, damage and its repair, search and restore. At the end, no name and no text is in the clear.
limit_s=300
. "$(dirname "$0")/lib.sh"
command -v rsync >/dev/null || skip "rsync is missing"
trap '[ -z "${web:-}" ] || kill "$web" 2>/dev/null || true' EXIT  # After a failure, too.

umask 022
marks='walrus-passport|heliotrope|quartzite|cobalt-lantern|magenta-otter|zephyr-ledger|SERIES-NAME|VERSION-NAME'
tree=$work/first
mkdir -p "$tree/heliotrope/deep/er" "$tree/many"
head -c 400000 /dev/urandom >"$tree/random"
for i in $(seq 3000); do echo "quartzite line $i"; done >"$tree/text"
for i in $(seq 60); do echo "file $i" >"$tree/many/$i"; done
ln -s cobalt-lantern "$tree/link"
ln "$tree/text" "$tree/heliotrope/deep/linked"
truncate -s 300000 "$tree/sparse" && echo end >>"$tree/sparse"
setfattr -n user.note -v magenta-otter "$tree/text"
touch -d '2001-02-03 04:05:06.789' "$tree/many/7"
chown 12:34 "$tree/many/8"
chmod 4751 "$tree/many/9"
tree=$work/tree
(umask 077; echo walrus-passport >"$work/pass")
export VARVE_PASSPHRASE_FILE=$work/pass

same_version() {  # VERSION TREE: reads it without a mount
  "$VARVE" -q restore "$repo" "$1" "$work/restored"
  same_tree --ignore holes "$2" "$work/restored"
  rm -rf "$work/restored"
}
damage() {  # FILE: changes eight bytes in its middle
  printf 'XXXXXXXX' | dd of="$1" bs=1 seek=$(($(stat -c %s "$1") / 2)) conv=notrunc status=none
}

walk() {  # PLACEMENT
  local placement=$1 s=SERIES-NAME segment
  rm -rf "$repo" "$work/versions" "$tree"
  mkdir "$work/versions"
  cp -a "$work/first" "$tree"
  "$VARVE" -q init --encrypt --key-cost 64K:1:1 --placement "$placement" --parity 20 "$repo"
  mount_as_job
  mkdir "$mnt/$s" "$mnt/$s/VERSION-NAME.partial"
  cp -a "$tree/." "$mnt/$s/VERSION-NAME.partial/"
  mv -T "$mnt/$s/VERSION-NAME.partial" "$mnt/$s/VERSION-NAME"
  cp -a "$tree" "$work/versions/one"
  same_tree --ignore holes "$tree" "$mnt/$s/VERSION-NAME"

  # A clone that rsync updates, out of order writes, names that move, and a reader beside the writer.
  "$VARVE" -q clone "$repo" "$s/latest" "$s/two.partial"
  echo 'heliotrope again' >>"$tree/text"
  rm "$tree/many/1"
  mv "$tree/many/2" "$tree/many/zephyr-ledger"
  rsync -aHAX --inplace --delete "$tree/" "$mnt/$s/two.partial/"
  for at in 200000 10 150000 399000; do
    for file in "$tree/random" "$mnt/$s/two.partial/random"; do
      printf 'out of order' | dd of="$file" bs=1 seek=$at conv=notrunc status=none
    done
  done
  touch -r "$tree/random" "$mnt/$s/two.partial/random"
  sync "$mnt/$s/two.partial/random"
  mkdir -p "$work/beside"
  "$VARVE" mount -o ro "$repo" "$work/beside"
  cmp "$work/versions/one/text" "$work/beside/$s/VERSION-NAME/text"
  kill_daemon  # With what the sync promised.
  "$VARVE" umount "$work/beside"
  mount_repo
  cmp "$tree/random" "$mnt/$s/two.partial/random"
  rsync -aHAX --modify-window=-1 --delete "$tree/" "$mnt/$s/two.partial/"
  "$VARVE" -q seal "$repo" "$s/two.partial" </dev/null
  cp -a "$tree" "$work/versions/two"
  same_tree --ignore holes "$tree" "$mnt/$s/two"
  "$VARVE" history "$mnt/$s/latest/text" >"$work/out"
  [ "$(wc -l <"$work/out")" -ge 2 ] || fail "the history is $(cat "$work/out")"
  unmount_repo

  # Without a mount.
  echo three >>"$tree/text"
  "$VARVE" -q store --no-arrange "$repo" "$s/three" "$tree"
  cp -a "$tree" "$work/versions/three"
  "$VARVE" dump "$repo" "$s/three/text" | cmp - "$tree/text"
  "$VARVE" find "$repo" 'zephyr*' | grep -c zephyr-ledger >/dev/null || fail "nothing was found"
  "$VARVE" diff "$repo" "$s/two" "$s/three" >"$work/out"
  grep -q text "$work/out" || fail "the difference is $(cat "$work/out")"
  seq 1000 | "$VARVE" -q store --stdin numbers "$repo" t/stream
  [ "$("$VARVE" dump "$repo" t/stream/numbers | wc -l)" -eq 1000 ]
  "$VARVE" -q store "$repo" t/another "$tree/many"
  "$VARVE" -q config "$repo" rewrite=har keep-last=9 "$s" 2>/dev/null || "$VARVE" -q config "$repo" "$s" rewrite=har
  "$VARVE" -q mv "$repo" "$s/three" third
  "$VARVE" -q lock --for 1d "$repo" "$s/third"
  expect_status 1 "$VARVE" rm "$repo" "$s/third"
  "$VARVE" -q arrange "$repo"
  "$VARVE" -q rm "$repo" "$s/VERSION-NAME"
  "$VARVE" -q prune --keep-last 1 "$repo" t
  "$VARVE" -q arrange --compact-catalog "$repo"
  for version in two:two third:three; do same_version "$s/${version%:*}" "$work/versions/${version#*:}"; done
  "$VARVE" check --read-data "$repo" >"$work/out" || fail "$(cat "$work/out")"
  "$VARVE" scrub "$repo" >"$work/out" || fail "$(cat "$work/out")"
  expect_status 0 "$VARVE" status --max-age 1h "$repo"
  ok "$placement: a mount and commands store, delete, arrange and give back what was stored"

  # Damage, with parity and the key, and the outer checks without it.
  segment=$(find "$repo" -name '*.seg' -size +20k | head -1)
  damage "$segment"
  expect_status 1 env -u VARVE_PASSPHRASE_FILE "$VARVE" check --outer "$repo" </dev/null
  expect_status 12 env -u VARVE_PASSPHRASE_FILE "$VARVE" repair --yes "$repo" </dev/null
  "$VARVE" repair --yes "$repo" >"$work/out" || fail "$(cat "$work/out")"
  "$VARVE" check --read-data "$repo" >"$work/out" || fail "$(cat "$work/out")"
  rm -r "$repo/catalog"
  expect_status 12 env -u VARVE_PASSPHRASE_FILE "$VARVE" repair --yes "$repo" </dev/null
  "$VARVE" repair --yes "$repo" >"$work/out" || fail "$(cat "$work/out")"
  "$VARVE" check --read-data "$repo" >"$work/out" || fail "$(cat "$work/out")"
  for version in two:two third:three; do same_version "$s/${version%:*}" "$work/versions/${version#*:}"; done
  mount_repo
  same_tree --ignore holes "$work/versions/three" "$mnt/$s/third"
  mkdir "$mnt/$s/after" && echo after >"$mnt/$s/after/file" && "$VARVE" -q seal "$mnt/$s/after"
  [ "$(cat "$mnt/$s/after/file")" = after ]
  unmount_repo
  ok "$placement: parity and manifests repair a damaged and a catalog that was lost, with the key alone"

  if grep -rqaE "$marks" "$repo"; then fail "in the clear: $(grep -raoE "$marks" "$repo" | head -3)"; fi
  if find "$repo" | grep -E "$marks"; then fail "a file has a secret name"; fi
  ok "$placement: no name and no text is in the clear"
}

for placement in lineage lineage+pool pool; do walk "$placement"; done

# ---- Without a mount, but with a browser; mount(8) with a line of fstab; a unit with a credential. ----

if command -v curl >/dev/null; then
  "$VARVE" -q web "$repo" >"$work/url" 2>"$work/web.log" &
  web=$!
  wait_until "the address is printed" test -s "$work/url"
  curl -sS --fail -m 20 -L -c "$work/jar" "$(cat "$work/url")" >"$work/page"
  grep -q 'elements.js' "$work/page" || fail "no page"
  kill -TERM "$web"
  wait "$web" || true
  web=
  ok "varve web reads an encrypted repository"
fi

unset VARVE_PASSPHRASE_FILE
(umask 077; head -c 32 /dev/urandom >"$work/file.key")
"$VARVE" -q --passphrase-file "$work/pass" key add --new-key-file "$work/file.key" "$repo"
ln -s "$VARVE" "$work/mount.varve"
"$work/mount.varve" "$repo" "$mnt" -o "ro,keyfile=$work/file.key"
[ "$(cat "$mnt/SERIES-NAME/after/file")" = after ] || fail "not mounted by mount(8)"
unmount_repo
expect_status 12 "$work/mount.varve" "$repo" "$mnt" -o ro </dev/null
mkdir "$work/credentials"
cp "$work/file.key" "$work/credentials/varve.key-file"
CREDENTIALS_DIRECTORY=$work/credentials mount_as_job -o ro
[ "$(cat "$mnt/SERIES-NAME/after/file")" = after ] || fail "not mounted with a credential"
unmount_repo
wait "$daemon"
ok "mount(8) takes keyfile= as fstab gives it, and a unit its credential"

# ---- The superblock of another repository: nothing that the right one opens may go. ----

key=(--key-file "$work/file.key")
"$VARVE" -q init --encrypt "${key[@]}" "$work/same-key"
(umask 077; head -c 32 /dev/urandom >"$work/other.key")
"$VARVE" -q init --encrypt --key-file "$work/other.key" "$work/other-key"
"$VARVE" -q init "$work/no-key"
for other in same-key other-key no-key; do
  rm -rf "$work/mixed"
  cp -a "$repo" "$work/mixed"
  cp "$work/$other/varve.repo" "$work/mixed/"
  given=("${key[@]}")
  [ $other != other-key ] || given=(--key-file "$work/other.key")
  [ $other != no-key ] || given=()
  (cd "$work/mixed" && find . -type f ! -name settled ! -name lock ! -name lock.mdb -exec sha256sum {} + | sort) >"$work/before"
  for copy in present absent; do
    [ $copy = present ] || rm "$work/mixed/varve.keys"
    [ $copy = present ] || sed -i '/varve.keys/d' "$work/before"
    expect_status 1 "$VARVE" repair --yes "${given[@]}" "$work/mixed"
    message_says 'varve.repo is that of another repository'
    (cd "$work/mixed" && find . -type f ! -name settled ! -name lock ! -name lock.mdb -exec sha256sum {} + | sort) | diff "$work/before" -
  done
  cp "$repo/varve.keys" "$work/mixed/"
  expect_status 1 "$VARVE" check --outer "$work/mixed"
  cp "$repo/varve.keys" "$work/mixed/varve.repo"
  "$VARVE" -q check "${key[@]}" "$work/mixed"
done
ok "repair changes nothing under the superblock of another repository, and check --outer sees that"

# Two series whose folders were swapped, plain and encrypted. The test puts older states back.
export VARVE_ACCEPT_OLDER=1
for encrypt in '' --encrypt; do
  given=()
  [ -z "$encrypt" ] || given=("${key[@]}")
  rm -rf "$work/mixed"
  "$VARVE" -q init $encrypt "${given[@]}" "$work/mixed"
  "$VARVE" -q "${given[@]}" store "$work/mixed" s/one "$work/first/many" >/dev/null
  "$VARVE" -q "${given[@]}" store "$work/mixed" t/one "$work/first" >/dev/null
  swap() { (cd "$work/mixed/series" && mv 00000001 x && mv 00000002 00000001 && mv x 00000002); }
  swap
  cp -a "$work/mixed" "$work/swapped"
  "$VARVE" -q "${given[@]}" store "$work/mixed" t/two "$work/first/many" >/dev/null 2>"$work/out" || true
  "$VARVE" -q "${given[@]}" store "$work/mixed" s/two "$work/first/many" >/dev/null 2>"$work/out" || true
  swap
  for version in s/one t/one; do
    "$VARVE" -q "${given[@]}" restore "$work/mixed" $version "$work/restored"
    [ $version = t/one ] || same_tree "$work/first/many" "$work/restored"
    [ $version = s/one ] || same_tree --ignore holes "$work/first" "$work/restored"
    rm -rf "$work/restored"
  done
  rm -rf "$work/mixed" && mv "$work/swapped" "$work/mixed"
  rm -r "$work/mixed/catalog"
  expect_status 1 "$VARVE" repair --yes "${given[@]}" "$work/mixed"
  message_says 'the folder is that of another series'
  swap
  "$VARVE" -q repair --yes "${given[@]}" "$work/mixed" >/dev/null
  "$VARVE" -q "${given[@]}" check --read-data "$work/mixed"
  "$VARVE" -q "${given[@]}" restore "$work/mixed" t/one "$work/restored"
  same_tree --ignore holes "$work/first" "$work/restored"
  rm -rf "$work/restored" "$work/mixed"
done
ok "swapped folders of series lose nothing: a writer cuts no file, and repair refuses"
