# SPDX-License-Identifier: Apache-2.0
# Sourced by the mount tests. The script runs twice: an outer process makes a mount namespace and a
# private folder, runs the test under a time limit, and cleans up whatever happened; the inner
# process tests.
#
#   limit_s=60                         # before sourcing, if 120 seconds of an idle machine do not fit
#   . "$(dirname "$0")/lib.sh"
#
# In the namespace of a test, all users may open /dev/fuse, as on every distribution, whatever mode
# the device has on the machine. VARVE_TEST_NAMESPACE=none runs a test in the caller's namespace, as
# happens where namespaces are not permitted.
#
# A part of a test that cannot run calls skip_part. The other parts run, and the test ends as skipped
# (exit 77): a test that passes has run whole.
#
# VARVE_TEST_SANITIZER=address|thread: $VARVE was built with these sanitizers (scripts/sanitize).
# Tests take longer, and fail if any process writes a report.
#
# VARVE_TEST_LIMIT_S=N sets the limit, for campaigns.
#
# VARVE_TEST_ENCRYPTED=1: `"$VARVE" init` makes encrypted repositories, and all commands have their
# passphrase. Scripts that look into files of a repository, or run as other users, may fail.
#
# Sets: $VARVE (the program), $work (an empty private folder on a real disk),
# $here (this folder), $repo, $mnt, and the functions below.

set -Eeuo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${VARVE:?is the path of the varve program to test}"
VARVE=$(realpath "$VARVE")
export VARVE LC_ALL=C.UTF-8
# The modules that the tests use are packages of the distribution's Python. Another Python before it in PATH may lack
# these modules, and may start slowly: the wrapper of pyenv takes 0.15 s, the distribution's Python 0.01 s.
[ ! -x /usr/bin/python3 ] || export PATH="/usr/bin:${PATH#/usr/bin:}"
unset VARVE_REPO

# Ends the test as skipped.
skip() {
  echo "skipped: $*"
  exit 77
}

# Notes that a part of the test is skipped. The outer process turns the success of the rest into 77.
skip_part() {  # REASON
  echo "skipped: $*"
  echo "$*" >>"$VARVE_TEST_SKIPPED"
}

mounts_below() {  # DIR: prints the mount points below it, innermost first
  awk -v dir="$1/" 'index($5 "/", dir) == 1 { print $3, $5 }' /proc/self/mountinfo | sort -rk2
}

# Waits until the daemons of the test have ended, and kills what runs on after three seconds. Another
# process of this mount namespace cannot be but the test's.
end_processes() {
  local own all left tries
  in_own_namespace || return 0
  own=$(stat -L -c %i /proc/$$/ns/mnt)
  for ((tries = 0; tries < 200; tries++)); do
    all=(/proc/[0-9]*/ns/mnt)  # Lists no process that the next line starts.
    mapfile -t left < <(stat -L -c '%i %n' "${all[@]}" 2>/dev/null |
      awk -F '[ /]' -v own="$own" -v outer=$$ '$1 == own && $4 != outer { print $4 }')
    [ ${#left[@]} -gt 0 ] || return 0
    [ $tries -lt 60 ] || kill -KILL "${left[@]}" 2>/dev/null || true
    sleep 0.05
  done
}

cleanup_outer() {
  local dev point
  # After an interruption, the test may still run. It must end before the clean-up.
  if [ -n "${inner:-}" ] && kill "$inner" 2>/dev/null; then wait "$inner" || true; fi
  # A hanging daemon would block the clean-up, too. This aborts its connection before any access.
  while read -r dev point; do
    [ -e "/sys/fs/fuse/connections/${dev#*:}/abort" ] || continue
    umount "$point" 2>/dev/null && continue
    echo 1 >"/sys/fs/fuse/connections/${dev#*:}/abort" 2>/dev/null || true
  done < <(mounts_below "$work")
  while read -r dev point; do umount -l "$point" 2>/dev/null || true; done < <(mounts_below "$work")
  end_processes
  rm -f "$VARVE_TEST_SKIPPED"
  rm -rf --one-file-system "$work"
  # The folder still exists only after an interruption.
  if [ -d "${reports:-}" ]; then no_reports || true; fi
}

# Each process writes its reports to a file. Otherwise, reports of background and killed processes
# would be lost. A library in LD_PRELOAD may precede the sanitizer's.
collect_reports() {
  reports=$(mktemp -d "${VARVE_TEST_TMP:-/var/tmp}/varve-reports.XXXXXX")
  chmod 1777 "$reports"
  export ASAN_OPTIONS="${ASAN_OPTIONS:-}:log_path=$reports/of:verify_asan_link_order=0"
  export UBSAN_OPTIONS="${UBSAN_OPTIONS:-}:log_path=$reports/of"
  export TSAN_OPTIONS="${TSAN_OPTIONS:-}:log_path=$reports/of"
}

# Shows the reports. Fails if there are any.
no_reports() {
  local report found=0
  for report in "$reports"/*; do
    [ -s "$report" ] || continue
    head -c 20000 "$report"
    found=$((found + 1))
  done
  rm -rf "$reports"
  [ $found -eq 0 ] || echo "FAILED: $found processes have a report of the sanitizer"
  [ $found -eq 0 ]
}

# A namespace is a copy: its processes hold all mounts that were visible when it was made, and keep
# their daemons alive. In namespaces of their own, tests that make namespaces hold no other test's
# mounts, and tests that forge mounts show them to no other test.
if [ -z "${VARVE_TEST_NAMESPACE:-}" ] && unshare -m true 2>/dev/null; then
  VARVE_TEST_NAMESPACE=$(readlink /proc/self/ns/mnt) exec unshare -m --propagation private "$0" "$@"
fi

in_own_namespace() {
  case ${VARVE_TEST_NAMESPACE:-none} in
  none | "$(readlink /proc/self/ns/mnt)") return 1 ;;
  esac
}

# Covers /dev/fuse with a device node that all users may open. Only this namespace sees it. The disk
# of $work may be mounted with nodev, so the node is in a file system of its own.
open_fuse_to_users() {
  mount -t tmpfs -o size=64k,mode=700 none "$work" || return
  { cp -a /dev/fuse "$work/fuse" && chmod 666 "$work/fuse" && mount --bind "$work/fuse" /dev/fuse; } || true
  umount "$work"
}

if [ -z "${VARVE_TEST_WORK:-}" ]; then
  [ "$(id -u)" -eq 0 ] || skip "needs root (owners, devices, mounts)"
  [ -c /dev/fuse ] || skip "/dev/fuse is missing"
  work=$(mktemp -d "${VARVE_TEST_TMP:-/var/tmp}/varve-test.XXXXXX")
  VARVE_TEST_SKIPPED=$(mktemp "${VARVE_TEST_TMP:-/var/tmp}/varve-skipped.XXXXXX")
  export VARVE_TEST_SKIPPED
  trap cleanup_outer EXIT
  trap 'exit 143' INT TERM
  # Where a container forbids this, parts that need other users' mounts are skipped by name.
  if in_own_namespace; then open_fuse_to_users 2>/dev/null || true; fi
  # Limits of the tests are for an idle machine. The limit is for tests that hang, and must not fail
  # one on a slow or busy machine, so it is several times as long; meson kills after 1000 seconds.
  limit_s=$((${limit_s:-120} * 5))
  [ $limit_s -lt 950 ] || limit_s=950
  if [ -n "${VARVE_TEST_SANITIZER:-}" ]; then
    limit_s=$((limit_s * 5))
    collect_reports
  fi
  limit_s=${VARVE_TEST_LIMIT_S:-$limit_s}
  VARVE_TEST_WORK=$work timeout -k 10 "$limit_s" "$0" "$@" &
  inner=$!
  status=0
  wait "$inner" || status=$?
  inner=
  [ $status -ne 124 ] || echo "FAILED: not done after $limit_s seconds"
  [ -z "${VARVE_TEST_SANITIZER:-}" ] || no_reports || status=1
  [ $status -ne 0 ] || [ ! -s "$VARVE_TEST_SKIPPED" ] || status=77
  exit $status
fi

work=$VARVE_TEST_WORK
repo=$work/repo
mnt=$work/mnt
export XDG_STATE_HOME=$work/state  # What Varve remembers of encrypted repositories.
mkdir "$mnt"
if [ -n "${VARVE_TEST_ENCRYPTED:-}" ]; then
  : "${VARVE_INIT_ENCRYPTED:?is the program that makes an encrypted repository}"
  export VARVE_PLAIN=$VARVE VARVE_PASSPHRASE_FILE=$work/passphrase VARVE=$here/varve_encrypted.sh
  (umask 077 && echo lacustrine-clay >"$VARVE_PASSPHRASE_FILE")
fi
trap 'echo "FAILED: ${BASH_SOURCE[0]##*/}:$LINENO: $BASH_COMMAND"' ERR

ok() { echo "ok - $*"; }

fail() {
  echo "FAILED: $*"
  trap - ERR
  exit 1
}

# Mounts $repo on $mnt, with further arguments before them.
mount_repo() { "$VARVE" mount "$@" "$repo" "$mnt"; }

unmount_repo() { "$VARVE" umount "$mnt"; }

# Sets $arguments to those of `varve init` for a kind of repository, and the key for later commands.
arguments_of() {  # lineage, pool or encrypted
  arguments=(--placement "$1")
  unset VARVE_KEY_FILE
  if [ "$1" = encrypted ]; then
    (umask 077 && head -c 32 /dev/urandom >"$work/key")
    export VARVE_KEY_FILE=$work/key
    arguments=(--encrypt --key-file "$work/key")
  fi
}

# Mounts with a background job as daemon. Sets $daemon to its process id.
mount_as_job() {
  "$VARVE" mount -f "$@" "$repo" "$mnt" 2>>"$work/daemon.log" &
  daemon=$!
  wait_until "the mount appears" mountpoint -q "$mnt"
}

# Kills the daemon and removes the rest of its mount.
kill_daemon() {
  kill -9 "$daemon"
  wait "$daemon" 2>/dev/null || true
  umount -l "$mnt"
}

# Succeeds if ordinary users may open /dev/fuse, and fusermount3 finds the table of mounts, which an empty chroot lacks.
users_mount() { setpriv --reuid=65534 --regid=65534 --clear-groups sh -c ': <>/dev/fuse </etc/mtab' 2>/dev/null; }

# Succeeds if the programs are built with a sanitizer. Some tests do not work with one.
under_sanitizer() { [ -n "${VARVE_TEST_SANITIZER:-}" ]; }

wait_until() {  # WHAT COMMAND…: polls for at most some 200 seconds, then shows the last message
  local what=$1 tries=0
  shift
  until "$@"; do
    tries=$((tries + 1))
    [ $tries -lt 4000 ] || fail "not in time: $what; $(tail -n 5 "$work/stderr" 2>/dev/null)"
    sleep 0.05
  done
}

checkpoints() { "$VARVE" stats --live "$repo" | awk '$1 == "varve_ingest_checkpoints_total" { print $2 }'; }

has_more_checkpoints() { [ "$(checkpoints)" -gt "$1" ]; }

# Waits for a checkpoint of the only open version that begins after the call. The first one that ends may have begun
# before, and a checkpoint needs a change.
wait_for_checkpoint() {  # FOLDER of the version
  local round before
  for round in 1 2; do
    before=$(checkpoints)
    touch "$1"
    wait_until "checkpoint $round" has_more_checkpoints "$before"
  done
}

# Puts the wall clock of all programs that start from now on ahead, where a test would sleep. Times of
# files and pauses stay those of the kernel.
pass_time() {  # SECONDS
  if [ -z "${VARVE_SHIFTED_CLOCK:-}" ] || under_sanitizer; then
    sleep "$1"
    return
  fi
  passed_s=$((${passed_s:-0} + $1))
  export VARVE_TEST_CLOCK=$work/clock LD_PRELOAD=$VARVE_SHIFTED_CLOCK
  echo $passed_s >"$VARVE_TEST_CLOCK"
}

is_after() { [ "$(date +%s)" -gt "$1" ]; }

# Waits for the next second of the wall clock: some programs give each second one name.
next_second() { wait_until "the next second" is_after "$(date +%s)"; }

# Runs a command that must end with a status. Sets $message to its stderr.
expect_status() {  # STATUS COMMAND…
  local want=$1 got=0
  shift
  "$@" >"$work/stdout" 2>"$work/stderr" || got=$?
  message=$(tr '\0' ' ' <"$work/stderr")
  [ "$got" -eq "$want" ] || fail "status $got, not $want: $* ($message)"
}

# Checks that the last message matches a pattern, in upper or lower case.
message_says() {
  grep -qiE -- "$1" <<<"$message" || fail "the message does not say '$1': $message"
}

# Empties the kernel's caches of $mnt and of the files in $repo. Other tests keep what the kernel has
# of theirs, which /proc/sys/vm/drop_caches would empty.
drop_caches() {
  sync -f "$repo"
  find "$repo" -type f -exec dd if={} iflag=nocache count=0 status=none \;
  # The kernel refuses any remount of FUSE by fsconfig(2), which mount(8) calls since util-linux 2.39.
  LIBMOUNT_FORCE_MOUNT2=always mount --internal-only -o remount "$mnt"
}

# Checks two trees for complete equality: content, attributes, links, xattrs, holes.
same_tree() { python3 "$here/tree_state.py" "$@"; }

# Restores versions of the series s and compares them with $work/versions/NAME.
restored_is_stored() {  # NAME…
  local name
  for name in "$@"; do
    "$VARVE" -q restore "$repo" "s/$name" "$work/restored"
    same_tree --ignore holes "$work/versions/$name" "$work/restored"
    rm -rf "$work/restored"
  done
}

no_rsync_difference() {  # A/ B/
  local difference
  difference=$(rsync -aHAXnc --modify-window=-1 --delete --itemize-changes "$1" "$2")
  [ -z "$difference" ] || fail "rsync sees differences: $difference"
}

sealed() { [ "$(state_of "$1")" = sealed ]; }
state_of() { getfattr --absolute-names --only-values -n user.varve.state "$1"; }

# rsync treats two times inside one second as equal, and the copy was made just before. So each
# changed file gets a new distinct time before rsync compares it. The time differs between calls,
# because two calls may come within a second.
backdated_hours=1
backdate() {
  backdated_hours=$((backdated_hours + 1))
  find "$1" -newermt '-1 hour' -print0 | xargs -0 touch -h -d "$backdated_hours hours ago"
}

stat_of() {  # REPOSITORY KEY: prints one of the totals of `varve stats --json`
  "$VARVE" stats --json "$1" | head -1 | python3 -c '
import json, sys
print(json.load(sys.stdin)[sys.argv[1]])' "$2"
}

# Creates a separate file system for the repository. Sets $repo.
repo_on_disk() {  # MIB
  truncate -s "$1M" "$work/image"
  mkfs.ext4 -q -m 0 "$work/image"
  mkdir "$work/disk"
  mount -o loop "$work/image" "$work/disk" 2>/dev/null || skip "no loop device here"
  repo=$work/disk/repo
}

# Starts an object store on the loopback interface and gives its access to all programs. Sets $place.
start_store() {
  coproc STORE { exec python3 "$here/../s3/store.py"; }
  local port
  read -r _ port <&"${STORE[0]}"
  export AWS_ENDPOINT_URL=http://127.0.0.1:$port
  export AWS_ACCESS_KEY_ID=AKIDTEST AWS_SECRET_ACCESS_KEY=secret/of+the=test
  unset AWS_PROFILE AWS_SESSION_TOKEN AWS_REGION
  place=s3://varve-test/machines/laptop
}
