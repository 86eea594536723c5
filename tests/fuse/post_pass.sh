#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Arranging removes the duplicates that the pool's index did not find: by the daemon when it is idle,
# and by the command, which may be killed at any time. Every version stays whole: after deletions,
# with a lost catalog, and with a damaged file of aliases.
limit_s=240
. "$(dirname "$0")/lib.sh"

# Trees of hosts: the same files under other names, and some of them changed.
python3 - "$work/t" <<'PYTHON'
import os, random, sys
rng = random.Random(5)
pieces = [rng.randbytes(rng.randrange(20000, 400000)) for _ in range(50)]
for host in range(4):
    os.makedirs("%s/%d" % (sys.argv[1], host))
    own = random.Random(host)
    for i, piece in enumerate(pieces):
        piece = bytearray(piece)
        if own.random() < 0.3:
            at = own.randrange(len(piece))
            piece[at:at] = own.randbytes(own.randrange(10, 5000))
        with open("%s/%d/f%d-%d" % (sys.argv[1], host, own.randrange(10), i), "wb") as file:
            file.write(piece)
PYTHON
for host in 0 1 2 3; do backdate "$work/t/$host"; done

pool_bytes() { find "$repo/pool/active" -name '*.seg' -printf '%s\n' | awk '{n += $1} END {print n + 0}'; }
all_are_whole() {  # FOLDER HOST…
  local host
  for host in "${@:2}"; do
    diff -r "$work/t/$host" "$1/h$host/v" >"$work/diff" || fail "h$host differs: $(head -3 "$work/diff")"
  done
}
is_sound() { "$VARVE" -q check --read-data "$repo" >"$work/check" || fail "$(cat "$work/check")"; }

"$VARVE" init --placement pool --pool-index zero-chunk:10 --compression none "$repo" 2>/dev/null
for host in 0 1 2 3; do
  mount_repo -o noarrange
  mkdir "$mnt/h$host"
  rsync -a "$work/t/$host/" "$mnt/h$host/v.partial/"
  mv -T "$mnt/h$host/v.partial" "$mnt/h$host/v"
  unmount_repo
done
mount_as_job
has_aliases() { [ "$(stat_of "$repo" pool_aliases)" -gt 200 ]; }
wait_until "the idle daemon makes aliases" has_aliases
all_are_whole "$mnt" 0 1 2 3
"$VARVE" stats --live --prometheus "$repo" >"$work/metrics" 2>/dev/null || "$VARVE" stats --live "$repo" >"$work/metrics"
grep -Eq '^varve_post_pass_aliases_total +[1-9]' "$work/metrics" || fail "$(grep post_pass "$work/metrics")"
kill_daemon
mount_repo
all_are_whole "$mnt" 0 1 2 3
unmount_repo
is_sound
ok "the idle daemon makes duplicates aliases"

"$VARVE" -q copy "$repo" "$work/second"
"$VARVE" -q arrange "$work/second"
echo more >>"$(find "$work/t/1" -type f | sort | head -n 1)" && backdate "$work/t/1"
"$VARVE" -q rm "$repo" h1/v && "$VARVE" -q store "$repo" h1/v "$work/t/1"
"$VARVE" -q copy --prune "$repo" "$work/second"
for host in 0 1 2 3; do
  mkdir -p "$work/copied/h$host" && "$VARVE" -q restore "$work/second" "h$host/v" "$work/copied/h$host/v"
done
all_are_whole "$work/copied" 0 1 2 3
"$VARVE" -q check --read-data "$work/second" >"$work/check" || fail "$(cat "$work/check")"
ok "varve copy reads aliases"

rm -rf "$repo"
"$VARVE" init --placement pool --pool-index zero-chunk:10 --compression none "$repo" 2>/dev/null
for host in 0 1 2 3; do "$VARVE" -q store --no-arrange "$repo" "h$host/v" "$work/t/$host"; done
before=$(pool_bytes)
[ "$(stat_of "$repo" pool_new_bytes)" -gt 0 ] || fail "nothing is to be compared"
for delay in 0.01 0.02 0.03 0.05 0.08; do
  "$VARVE" -q arrange --arrange-rate=40M "$repo" & job=$!
  sleep $delay
  kill -9 $job 2>/dev/null || true
  wait $job 2>/dev/null || true
  mount_repo -o ro
  all_are_whole "$mnt" 0 1 2 3
  unmount_repo
done
"$VARVE" -q arrange "$repo"
[ "$(stat_of "$repo" pool_new_bytes)" -eq 0 ] || fail "the pass is not over"
[ "$(pool_bytes)" -lt $((before * 85 / 100)) ] || fail "$before bytes became $(pool_bytes)"
is_sound
mount_repo
all_are_whole "$mnt" 0 1 2 3
unmount_repo
ok "arranging that is killed loses nothing, and ends later"

"$VARVE" -q rm "$repo" h0/v h1/v
is_sound
rm -rf "$repo/catalog"
"$VARVE" -q repair --yes "$repo" >"$work/repaired" 2>&1 || fail "$(cat "$work/repaired")"
is_sound
mount_repo
all_are_whole "$mnt" 2 3
# A version may refer to aliases, and to what the index finds by them.
cp -a "$work/t/2" "$mnt/h2/again"
"$VARVE" -q rm "$repo" h2/v
diff -r "$work/t/2" "$mnt/h2/again" || fail "a copy of a version with aliases differs"
unmount_repo
ok "aliases come back with a lost catalog"

file=$(find "$repo/pool" -name 'aliases-*.als' | head -1)
printf 'x' | dd of="$file" bs=1 seek=70 conv=notrunc status=none
"$VARVE" check "$repo" >"$work/check" 2>&1 && fail "a damaged file of aliases was not found"
case $(cat "$work/check") in *"file of aliases"*) ;; *) fail "$(cat "$work/check")" ;; esac
"$VARVE" -q repair --yes "$repo" >"$work/repaired" 2>&1 || fail "$(cat "$work/repaired")"
is_sound
rm "$repo"/pool/aliases-*.als
"$VARVE" check "$repo" >"$work/check" 2>&1 && fail "a missing file of aliases was not found"
"$VARVE" -q repair --yes "$repo" >"$work/repaired" 2>&1 || fail "$(cat "$work/repaired")"
is_sound
rm -rf "$repo/catalog"
"$VARVE" -q repair --yes "$repo" >"$work/repaired" 2>&1 || fail "$(cat "$work/repaired")"
is_sound
mount_repo
diff -r "$work/t/3" "$mnt/h3/v" || fail "h3/v differs"
"$VARVE" -q rm "$repo" h2/again h3/v
unmount_repo
"$VARVE" -q arrange "$repo"
[ "$(pool_bytes)" -eq 0 ] || fail "the empty pool has $(pool_bytes) bytes"
ok "a damaged or missing file of aliases is found, and written again"
