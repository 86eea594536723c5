#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One reader or writer does not block maintenance, and an open version does not keep the space of
# deleted ones.
. "$(dirname "$0")/lib.sh"

of_deletion() {  # FIELD: prints it from the deletion line of JSON on stdin
  python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
print(*[line.get(sys.argv[1], 0) for line in lines if line["message_type"] == "deletion"])' "$1"
}
series_bytes() { find "$repo/series" -type f -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }'; }
add_version() {  # NAME: adds a version with 3 MB of its own
  mkdir "$mnt/s/$1"
  head -c 3000000 /dev/urandom >"$mnt/s/$1/file"
  sha256sum <"$mnt/s/$1/file" >"$work/$1.sum"
  "$VARVE" -q seal "$mnt/s/$1" >/dev/null
}
whole() {  # NAME…
  local name
  for name in "$@"; do
    [ "$(sha256sum <"$mnt/s/$name/file")" = "$(cat "$work/$name.sum")" ] || fail "$name differs"
  done
}
delete() {  # NAME…: checks that forecast, outcome and disk agree; sets freed and waiting
  local before forecast
  before=$(series_bytes)
  forecast=$("$VARVE" rm -n --json "$repo" "${@/#/s/}" | of_deletion freed_bytes)
  "$VARVE" rm --no-arrange --json "$repo" "${@/#/s/}" >"$work/json"
  freed=$(of_deletion freed_bytes <"$work/json")
  waiting=$(of_deletion waiting_bytes <"$work/json")
  [ "$forecast" -eq "$freed" ] || fail "$forecast bytes were forecast, $freed told of"
  [ "$freed" -eq $((before - $(series_bytes))) ] || fail "$freed bytes were told of, not so many came"
}

"$VARVE" init "$repo"
mount_repo -o noarrange
mkdir "$mnt/s"
for n in 1 2 3 4 5 6 7 8 9; do add_version v$n; done

# ---- Open versions, which may refer to the four versions before them. ----

"$VARVE" -q open "$repo" s/empty
delete v6
[ "$freed" -gt 2900000 ] || fail "an empty open version keeps all but $freed bytes"
rmdir "$mnt/s/empty"
"$VARVE" -q clone "$repo" s/latest s/current.partial
delete v7
[ "$freed" -gt 2900000 ] || fail "a clone keeps all but $freed bytes"
cp "$mnt/s/v8/file" "$mnt/s/current.partial/third"
sync "$mnt/s/current.partial/third"
delete v8
[ "$freed" -lt 200000 ] || fail "$freed bytes came back that the open version refers to"
[ "$waiting" -gt 2900000 ] || fail "$waiting bytes wait for the open version"
[ "$(sha256sum <"$mnt/s/current.partial/third")" = "$(cat "$work/v8.sum")" ] || fail "third differs"
expect_status 1 "$VARVE" rm "$repo" s/v9
message_says 'current.partial is based on v9'
unmount_repo
delete v5
[ "$freed" -gt 2900000 ] || fail "without a mount, all but $freed bytes are kept"
mount_repo -o noarrange
[ "$(sha256sum <"$mnt/s/current.partial/third")" = "$(cat "$work/v8.sum")" ] || fail "third differs"
"$VARVE" -q seal --keep "$repo" s/current.partial ten >/dev/null
delete v4
[ "$freed" -gt 2900000 ] || fail "what a seal leaves open keeps all but $freed bytes"
cp "$work/v9.sum" "$work/ten.sum"
whole v1 v2 v3 v9 ten
rm -rf "$mnt/s/current.partial"
"$VARVE" -q check --read-data "$repo"
ok "open versions, empty, based and half written, keep only what they refer to"

# ---- Readers. ----

exec 8<"$mnt/s/v1/file"
head -c 1000 <&8 >/dev/null
expect_status 3 "$VARVE" rm --no-arrange "$repo" s/v1 s/v2
message_says 'v1 has open files'
[ "$("$VARVE" ls "$repo" s | xargs)" = "s/v1 s/v3 s/v9 s/ten" ] || fail "$("$VARVE" ls "$repo" s)"
expect_status 3 "$VARVE" prune --keep-last 2 "$repo" s
message_says 'v1 has open files'
[ "$("$VARVE" ls "$repo" s | xargs)" = "s/v1 s/v9 s/ten" ] || fail "$("$VARVE" ls "$repo" s)"
"$VARVE" -q prune --force --keep-last 2 "$repo" s >/dev/null
[ "$("$VARVE" ls "$repo" s | xargs)" = "s/v9 s/ten" ] || fail "$("$VARVE" ls "$repo" s)"
if tail -c 1000 <&8 >"$work/late" 2>/dev/null; then fail "a deleted version is read"; fi
exec 8<&-
ok "rm and prune delete what nothing holds and name the rest; --force deletes what is read"

# ---- Writers. ----

mkdir "$mnt/s/w.partial"
exec 9>"$mnt/s/w.partial/file"
echo before >&9
begin=$(date +%s%N)
expect_status 1 "$VARVE" seal --wait=1 "$repo" s/w.partial
[ $(($(date +%s%N) - begin)) -ge 900000000 ] || fail "it did not wait"
message_says 'open for writing'
expect_status 2 "$VARVE" seal --wait=soon "$repo" s/w.partial
expect_status 0 "$VARVE" seal --force "$repo" s/w.partial
[ "$(cat "$mnt/s/w/file")" = before ] || fail "the version lacks what was written"
if echo late 2>/dev/null >&9; then fail "a sealed version was written"; fi
exec 9>&-
[ "$(cat "$mnt/s/w/file")" = before ] || fail "the version has changed"
unmount_repo
"$VARVE" -q check --read-data "$repo"
ok "a seal waits as long as it is told, and --force cuts writers off with what they wrote"
