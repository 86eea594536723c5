#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Changes keys while the repository is mounted: the mount goes on, the change takes effect at the next opening, also after
# kill -9, and the control socket takes no keys from a program without one.
limit_s=180
. "$(dirname "$0")/lib.sh"
unset VARVE_PASSPHRASE_FILE
command -v setpriv >/dev/null || skip "setpriv is missing"

umask 077
for key in one two three other; do head -c 32 /dev/urandom >"$work/$key"; done
"$VARVE" -q init --encrypt --key-file "$work/one" "$repo"
key() { "$VARVE" -q --key-file "$work/$1" key "${@:2}"; }
opens() { "$VARVE" --key-file "$work/$1" ls "$repo" >/dev/null 2>&1; }

export VARVE_KEY_FILE=$work/one
mount_as_job
unset VARVE_KEY_FILE
mkdir "$mnt/s"
mkdir "$mnt/s/v"
head -c 300000 /dev/urandom >"$work/data"
exec 5>"$mnt/s/v/open"
echo before >&5
key one add --label second --new-key-file "$work/two" "$repo"
echo after >&5
exec 5>&-
opens two && opens one || fail "a key that was added beside the mount does not open the repository"
"$VARVE" key list "$repo" | grep -c second | grep -qx 1
cp "$work/data" "$mnt/s/v/data"
code=$("$VARVE" --key-file "$work/two" key recovery "$repo" 2>/dev/null)
key two change --new-key-file "$work/three" "$repo" 2
! opens two || fail "the replaced key still opens the repository"
opens three
key three rm "$repo" 1
! opens one || fail "the removed key still opens the repository"
expect_status 12 key one add --new-key-file "$work/other" "$repo"
expect_status 1 key three rm "$repo" 4
message_says 'last key'
ok "the mount goes on while keys are added, changed and removed"

# Of commands at the same moment, each succeeds or says that the keys were changed meanwhile.
failed=0
for i in 1 2 3 4; do
  { key three add --new-key-file "$work/other" "$repo" 2>"$work/add.$i" || touch "$work/refused.$i"; } &
  adds[i]=$!
done
wait "${adds[@]}"
for i in 1 2 3 4; do
  [ ! -e "$work/refused.$i" ] || { grep -q 'changed meanwhile' "$work/add.$i" && failed=$((failed + 1)); } ||
    fail "a change beside three others: $(cat "$work/add.$i")"
done
[ "$("$VARVE" key list --json "$repo" | wc -l)" -eq $((2 + 4 - failed)) ]
opens other
ok "of changes at the same moment, none is lost silently ($failed refused)"

# A program that reaches the socket, but has no key.
cp "$repo/varve.repo" "$work/present"
python3 - "$repo" <<'PY'
import json, os, re, socket, sys
repository = sys.argv[1]
text = open(repository + "/varve.repo").read()
counter = int(re.search(r"key_counter = (\d+)", text).group(1))
forged = text.replace(f"key_counter = {counter}", f"key_counter = {counter + 1}")
def ask(line):
    end = socket.socket(socket.AF_UNIX)
    os.chdir(repository)
    end.connect("control.sock")
    end.sendall((json.dumps(line) + "\n").encode())
    answer = b""
    while not answer.endswith(b"\n"):
        part = end.recv(65536)
        if not part:
            break
        answer += part
    return json.loads(answer)
protocol = 2
for bad in (text, forged, forged[:100], "", "a" * 200000):
    answer = ask({"op": "keys", "protocol": protocol, "superblock": bad})
    assert answer["ok"] is False, answer
assert ask({"op": "keys", "protocol": protocol})["ok"] is False
PY
cmp "$work/present" "$repo/varve.repo"
cmp "$repo/varve.repo" "$repo/varve.keys"
cp "$VARVE" "$work/varve"  # The user may not reach the folder of the program.
chmod 711 "$work"
expect_status 1 setpriv --reuid 65534 --regid 65534 --clear-groups "$work/varve" key rm "$repo" 3
message_says '^varve: '
ok "a program without a key changes none, nor does another user"

key other change --new-key-file "$work/two" "$repo" 4
sync "$mnt/s/v/data"
kill_daemon
opens two || fail "after kill -9, the changed key does not open the repository"
! opens three || fail "after kill -9, the replaced key opens the repository again"
export VARVE_KEY_FILE=$work/two
"$VARVE" -q check --read-data "$repo"
mount_as_job
cmp "$work/data" "$mnt/s/v/data"
[ "$(cat "$mnt/s/v/open")" = $'before\nafter' ]
"$VARVE" -q umount "$mnt"
wait "$daemon"
unset VARVE_KEY_FILE
(umask 077 && echo "$code" >"$work/code")
"$VARVE" --passphrase-file "$work/code" ls "$repo" >/dev/null
ok "after kill -9, the new keys open the repository, and the data is there"
