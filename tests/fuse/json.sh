#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every command with --json prints what varve-json(5) says, and -q prints nothing about a success.
. "$(dirname "$0")/lib.sh"

page=$here/../../man/varve-json.5
cd "$work"
mkdir lines src src/dir
n=0
covered=
json() {  # COMMAND…: keeps the lines that it prints with --json
  n=$((n + 1))
  covered+=" $1 "
  "$VARVE" "$@" --json >"lines/$(printf '%02d' $n)-$1" 2>stderr || [ $? -eq "${allowed:-0}" ] ||
    fail "varve $* --json: $(cat stderr)"
  [ -s "lines/$(printf '%02d' $n)-$1" ] || fail "varve $* --json prints nothing"
}

echo one >src/a && ln -s a src/link && mkfifo src/fifo && mknod src/null c 1 3 && head -c 200000 /dev/urandom >src/dir/data
touch "src/$(printf 'odd\xff')"
json init --placement lineage+pool repo
json store --time 2020-01-01 repo s/one src
echo two >>src/a && rm src/fifo && touch src/new && chmod 700 src/dir
json store -n repo s/two src
json store repo s/two src
json ls repo
json ls repo s/one
json ls repo s/one/dir/data
json stat repo s/one
json du repo
json diff repo s/one s/two
json history repo s/a
json find repo 'odd*'
json config repo
json config repo s
json config repo rewrite=har arrange-rate=50M keep-within=1y
"$VARVE" -q config repo keep-within=none
json open repo s/three.partial
json status repo
json stats repo
json stats --categories repo
json stats --delta repo
json stats repo s/two
json seal --keep repo s/three.partial three
allowed=3 json prune --keep-last 1 -n repo
json stat repo s/three
"$VARVE" -q rm repo s/three.partial
json clone repo s/latest s/four.partial
json rm -n repo s/two
"$VARVE" -q seal repo s/four.partial
json reopen repo s/four
json rm repo s/four.partial
json lock --until 2099-01-01 repo s/one
json stat repo s/one
allowed=3 json rm repo s/one s/three
json prune --keep-last 1 -n repo
json arrange --compact-catalog repo
mkdir -p snaps/2020-01-01 snaps/2020-01-02 && echo x >snaps/2020-01-01/x
json import -n repo snaps old
json import repo snaps old
json import -n repo snaps old
json copy -n repo second
json copy repo second
json stat second s/one
(umask 077 && head -c 32 /dev/urandom >filekey)
json init --encrypt --key-file filekey filed
json copy --encrypt --target-key-file filekey repo filed2
json stat --key-file filekey filed2 s/one
json restore repo s/one out
json restore -n repo s/two out
json restore --to-tar out.tar repo s/one
mkdir -p kept/other && cp repo/varve.repo kept/other/
allowed=3 json restore --delete repo s/one kept
json mv repo s/one first
json mv repo old older
json copy --verify repo second
"$VARVE" -q mv repo s/first one && "$VARVE" -q mv repo older old
"$VARVE" -q config repo pool-index=stream
json mount repo mnt
mkdir mnt/empty mnt/s/five.partial && cp src/dir/data mnt/s/five.partial/
json ls repo
json status mnt
json stats --live repo
json stats --streams repo
"$VARVE" -q seal mnt/s/five.partial
"$VARVE" umount mnt
"$VARVE" -q config repo s placement=pool rewrite=har
"$VARVE" -q store repo s/six src
"$VARVE" -q config repo placement=pool
"$VARVE" -q store repo pooled/one src
json stats repo pooled/one
json check repo
json check --read-data repo
json scrub repo
mkdir hollow
expect_status 13 "$VARVE" store repo s/hollow hollow
allowed=2 json status --max-age 1h repo
touch repo/series/00000001/active/strange
echo damage | tee -a repo/series/00000001/labels >repo/series/00000001/beside
segment=$(find repo/series/00000001/active repo/pool/active -name '*.seg' -size +20k | head -n 1)
printf 'xxxxxxxxxxxxxxxx' | dd of="$segment" bs=1 seek=20000 conv=notrunc status=none
start_store
store() { echo "$@" >&"${STORE[1]}" && read -r _ <&"${STORE[0]}"; }
store set lock_kind 1
(export HOME=$work
  "$VARVE" -q init "$place" --local=distant --object-lock=30
  "$VARVE" -q store distant s/one src)
json wait distant s/one
json status distant
echo 'put = 0.005' >prices
json stats --prices prices distant
store set clock_offset 120
json check distant
json config distant
json attach "$place" attached
json reclaim attached
store lose /seg/
allowed=1 json check distant
allowed=2 json status distant
store lose /cat/
json attach --rebuild --dry-run "$place" rebuilt
(umask 077 && echo secret >pass)
"$VARVE" -q init --encrypt --passphrase-file pass --key-cost 64K:1:2 sealed
json key --passphrase-file pass recovery sealed
json key list sealed
for command in check stats status; do json "$command" --passphrase-file pass sealed; done
allowed=1 json check repo
allowed=2 json status repo
allowed=3 json repair -n repo
allowed=3 json repair --yes repo
head -c 1000000 /dev/urandom >src/dir/large
"$VARVE" -q init --compression none lossy 2>/dev/null
"$VARVE" -q store lossy s/one src
python3 "$here/flip_data.py" "$(find lossy -name '*.seg' -size +100k | head -n 1)"
allowed=1 json check lossy
json clone lossy s/one s/two
json seal lossy s/two
allowed=2 json status lossy
allowed=3 json repair --yes lossy
python3 "$here/json_page.py" "$page" lines/*
missing=
for command in $("$VARVE" --help | sed -n 's/^  \([a-z][a-z-]*\).*/\1/p'); do
  "$VARVE" "$command" --help >help
  if grep -q -- '--json' help && [[ $covered != *" $command "* ]]; then missing+=" $command"; fi
done
[ -z "$missing" ] || fail "no test has the lines of:$missing"
ok "the lines of every command agree with the page, and the page with the lines"

# -q.
repo=$work/quiet
silent() {  # COMMAND…: succeeds and prints nothing
  expect_status "${status:-0}" "$VARVE" -q "$@"
  [ ! -s stdout ] && [ -z "$message" ] || fail "varve -q $* prints: $(cat stdout) $message"
}
silent init "$repo"
silent store "$repo" s/one src
echo three >>src/a
silent store "$repo" s/two src
silent open "$repo" s/three
silent seal "$repo" s/three
silent clone "$repo" s/latest s/four
silent rm "$repo" s/four
silent reopen "$repo" s/three
silent rm "$repo" s/three.partial
silent lock --for 0d "$repo" s/two
silent config "$repo" rewrite=har
silent mv "$repo" s/three 3
silent import "$repo" snaps old
silent prune --keep-last 2 "$repo" s
silent rm "$repo" old/2020-01-01
silent arrange --compact-catalog "$repo"
silent check "$repo"
silent scrub "$repo"
silent repair --yes "$repo"
silent restore "$repo" s/two restored
silent copy "$repo" second-quiet
silent mount "$repo" mnt
silent umount mnt
[ -n "$("$VARVE" -q ls "$repo")" ] && [ -n "$("$VARVE" -q prune -n --keep-last 1 "$repo")" ] ||
  fail "-q hides what was asked for"
[ -n "$("$VARVE" -q rm --json "$repo" old/2020-01-02)" ] || fail "-q hides JSON lines"
ok "-q prints nothing about a success"
