#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `varve status` tells fresh and sound backups from others, by its exit code, and checks record what
# they found. A mount in the foreground tells systemd when it is ready.
. "$(dirname "$0")/lib.sh"

# A full disk is a warning of its own.
[ $(($(stat -f -c '%a * 100 / %b' "$work"))) -ge 6 ] || skip "the disk is almost full"
mkdir "$work/tree"
head -c 200000 /dev/urandom >"$work/tree/file"
"$VARVE" init "$repo"
expect_status 0 "$VARVE" status "$repo"
expect_status 2 "$VARVE" status "$work"
expect_status 2 "$VARVE" status "$repo" nothing
expect_status 3 "$VARVE" status --max-age soon "$repo"
"$VARVE" -q store "$repo" home/one "$work/tree"
expect_status 0 "$VARVE" status --max-age 1h "$repo"
expect_status 1 "$VARVE" status --max-age 1h --max-check-age 1h "$repo"
expect_status 1 "$VARVE" status --min-free 1000T "$repo"
"$VARVE" -q check "$repo" >/dev/null
expect_status 0 "$VARVE" status --max-age 1h --max-check-age 1h "$repo" home
ok "fresh backups are OK; without a check of all data, or without space, there is a warning"

: "${VARVE_SHIFTED_CLOCK:?is the path of the library that shifts the clock}"
shifted() {  # SECONDS COMMAND…: runs with a clock that is wrong by so much
  echo "$1" >"$work/clock"
  shift
  VARVE_TEST_CLOCK=$work/clock LD_PRELOAD=$VARVE_SHIFTED_CLOCK "$@"
}
expect_status 2 shifted 7200 "$VARVE" status --max-age 1h "$repo"
expect_status 0 shifted 7200 "$VARVE" status --max-age 3h "$repo"
expect_status 1 shifted -7200 "$VARVE" status "$repo"
ok "an old newest version is critical; one from the future is a warning"

mount_repo
mkdir "$mnt/home/two"
echo data >"$mnt/home/two/file"
"$VARVE" status --json "$mnt" | python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
series = [line for line in lines if line["message_type"] == "series"]
assert [one["series"] for one in series] == ["home"], series
assert series[0]["newest"] == "one" and series[0]["versions"] == 1, series
assert [one["version"] for one in series[0]["open"]] == ["two"], series
assert lines[-1]["message_type"] == "status_summary" and lines[-1]["state"] == "OK", lines[-1]
assert lines[-1]["free_bytes"] > 0'
"$VARVE" seal "$mnt/home/two" >/dev/null
"$VARVE" umount "$mnt"
ok "a mounted repository is judged by the path of its mount, with its open version"

# A byte of the first frame, behind the container's header.
segment=$(find "$repo/series" \( -name '*.seg' -o -name '*.vol' \) -size +100k | head -n 1)
cp "$segment" "$work/segment"
printf 'damage' | dd of="$segment" bs=1 seek=60000 conv=notrunc status=none
expect_status 1 "$VARVE" check "$repo"
expect_status 2 "$VARVE" status "$repo"
said=$("$VARVE" status "$repo" || true)
grep -q "^CRITICAL - the check of .* found 1 damaged place" <<<"$said" || fail "it says $said"
"$VARVE" -q check --quick "$repo" >/dev/null
expect_status 2 "$VARVE" status "$repo"
"$VARVE" stats --prometheus "$repo" >"$work/figures"
grep -q 'varve_check_damages{.*depth="data"} 1' "$work/figures" || fail "Prometheus does not see it"
cp "$work/segment" "$segment"
"$VARVE" -q check "$repo" >/dev/null
expect_status 0 "$VARVE" status "$repo"
ok "damage stays critical until a check that reads the data finds none"

python3 - "$VARVE" "$repo" "$mnt" "$work/notify" <<'EOF'
import os, socket, subprocess, sys
varve, repo, mnt, path = sys.argv[1:]
number = os.getpid()
for address, name in ((path, path), (f"\0varve-test-{number}", f"@varve-test-{number}")):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(60)
        daemon = subprocess.Popen([varve, "mount", "-f", repo, mnt],
                                  env={**os.environ, "NOTIFY_SOCKET": name})
        assert manager.recv(100) == b"READY=1"
        assert os.path.ismount(mnt), "ready, but not mounted"
        subprocess.run([varve, "umount", mnt], check=True)
        assert daemon.wait(60) == 0
EOF
ok "a mount in the foreground says READY=1 once it can be used"
