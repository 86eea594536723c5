#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The page of `varve web` in headless Chromium; web_page.py has the checks.
. "$(dirname "$0")/lib.sh"
trap '[ -z "${web:-}" ] || kill "$web" 2>/dev/null || true' EXIT  # After a failure, too.
command -v chromium chromium-browser google-chrome >"$work/browsers" || [ -s "$work/browsers" ] ||
  skip "there is no Chromium"

tree=$work/tree
mkdir -p "$tree/folder" "$tree/$(printf 'a-name-without-any-blank-%.0s' $(seq 9))"
seq 100 >"$tree/text"
printf 'a\0b' >"$tree/binary"
printf x >"$tree/<img src=x onerror=alert(1)>"
printf x >"$tree/"$'colour\x1b[31m\xff'
printf x >"$tree/"$'turned\u202egnp.exe'
ln -s 'javascript:alert(1)' "$tree/link"
"$VARVE" init "$repo" >"$work/out"
"$VARVE" -q store "$repo" laptop/first "$tree" >"$work/out"
sed -i 's|^50$|<script>alert(2)</script>|' "$tree/text"
printf 'a\0c' >"$tree/binary"
rm "$tree/"$'colour\x1b[31m\xff'
printf x >"$tree/<b>new"
head -c 400000 /dev/urandom >"$tree/folder/random"
"$VARVE" -q store "$repo" laptop/second "$tree" >"$work/out"
"$VARVE" -q web "$repo" >"$work/url" 2>"$work/web.log" &
web=$!
wait_until "the address is printed" test -s "$work/url"
python3 "$here/web_page.py" "$(cat "$work/url")"
kill -TERM "$web"
wait "$web"
