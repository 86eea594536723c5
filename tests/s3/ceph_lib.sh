# SPDX-License-Identifier: Apache-2.0
# A Ceph cluster of one disk with its S3 gateway, in one folder and on the loopback interface, for
# tests. Source it after `set -eu`; it needs bash.
#
#   ceph_need             ends the test (77) where a program of scripts/packages-s3.txt is missing
#   ceph_start DIR        starts what does not run; sets S3_ENDPOINT, S3_REGION, S3_KEY, S3_SECRET
#   ceph_make_bucket NAME [lock] makes a bucket, with object lock
#   ceph_for_test NAME    does all of this in a new folder, `work`, which goes with the shell
#   ceph_kill DIR NAME    kills mon, mgr, osd or rgw at once (SIGKILL)
#   ceph_stop DIR         ends everything; the data stays

CEPH_WAIT_S=${CEPH_WAIT_S:-90}

ceph_need() {
  local program
  for program in ceph-mon ceph-mgr ceph-osd radosgw radosgw-admin monmaptool ceph curl; do
    command -v "$program" >/dev/null && continue
    echo "skipped: $program is missing; ./scripts/test --s3 installs it"
    exit 77
  done
}

# The socket names of the daemons must not exceed the kernel's 107 bytes.
ceph_configure() {
  local dir=$1 ports
  [ ${#dir} -le 70 ] || { echo "the path $dir is too long for sockets" >&2; return 1; }
  mkdir -p "$dir"/{run,log,mon.a,mgr.x,osd.0,rgw}
  chmod 700 "$dir"
  # Two ports that are free now.
  ports=$(python3 -c '
import socket
free = [socket.socket() for _ in range(2)]
for s in free: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in free))')
  cat >"$dir/ceph.conf" <<END
[global]
fsid = $(cat /proc/sys/kernel/random/uuid)
mon host = v2:127.0.0.1:${ports% *}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
# The daemons trust this machine's programs, so that they need no keys and no encryption.
auth cluster required = none
auth service required = none
auth client required = none
auth allow insecure global id reclaim = false
ms mon client mode = crc
run dir = $dir/run
pid file = $dir/run/\$type.\$id.pid
admin socket = $dir/run/\$type.\$id.asok
log file = $dir/log/\$type.\$id.log
mon cluster log file = $dir/log/cluster.log
crash dir = $dir/log
log to stderr = false
mon data = $dir/mon.a
mgr data = $dir/mgr.x
osd data = $dir/osd.\$id
rgw data = $dir/rgw
mon data avail crit = 1
mon allow pool size one = true
mon warn on pool no redundancy = false
mon max pg per osd = 1000
mgr initial modules =
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
[osd]
# Its file is sparse. An object store in memory would forget what a killed daemon had acknowledged.
osd objectstore = bluestore
bluestore block size = 10737418240
bluestore cache autotune = false
bluestore cache size = 67108864
[client.rgw]
pid file = $dir/run/rgw.pid
log file = $dir/log/rgw.log
rgw frontends = beast endpoint=127.0.0.1:${ports#* } tcp_nodelay=1
rgw run sync thread = false
END
}

ceph_runs() { [ -s "$1" ] && kill -0 "$(cat "$1")" 2>/dev/null; }

# ceph_until WHAT COMMAND...: waits until the command succeeds.
ceph_until() {
  local what=$1 end=$((SECONDS + CEPH_WAIT_S))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { echo "no $what after $CEPH_WAIT_S s" >&2; return 1; }
    sleep 0.1
  done
}

ceph_start() {
  local dir=$1 conf=$1/ceph.conf fsid
  [ -e "$conf" ] || ceph_configure "$dir"
  fsid=$(sed -n 's/^fsid = //p' "$conf")
  if [ ! -e "$dir/mon.a/store.db" ]; then
    monmaptool --create --clobber --addv a "[$(sed -n 's/^mon host = //p' "$conf")]" --fsid "$fsid" \
      --set-min-mon-release 16 "$dir/monmap" >/dev/null
    ceph-mon -c "$conf" -i a --mkfs --monmap "$dir/monmap"
  fi
  ceph_runs "$dir/run/mon.a.pid" || ceph-mon -c "$conf" -i a
  ceph_until "monitor" timeout 20 ceph -c "$conf" --connect-timeout 10 mon stat
  ceph_runs "$dir/run/mgr.x.pid" || ceph-mgr -c "$conf" -i x
  if [ ! -e "$dir/osd.0/whoami" ]; then
    local uuid
    uuid=$(cat /proc/sys/kernel/random/uuid)
    timeout 60 ceph -c "$conf" osd new "$uuid" 0 >/dev/null
    ceph-osd -c "$conf" -i 0 --mkfs --osd-uuid "$uuid" >"$dir/log/mkfs" 2>&1
  fi
  ceph_runs "$dir/run/osd.0.pid" || ceph-osd -c "$conf" -i 0 >/dev/null 2>&1
  ceph_until "disk" sh -c "timeout 20 ceph -c '$conf' osd stat | grep '1 up' >/dev/null"
  if [ ! -e "$dir/keys" ]; then
    local key secret
    key=$(od -An -tx1 -N10 /dev/urandom | tr -d ' \n')
    secret=$(od -An -tx1 -N20 /dev/urandom | tr -d ' \n')
    timeout 100 radosgw-admin -c "$conf" user create --uid=test --display-name=test \
      --access-key="$key" --secret="$secret" >"$dir/log/user" 2>&1
    (umask 077 && echo "$key $secret" >"$dir/keys")
  fi
  read -r S3_KEY S3_SECRET <"$dir/keys"
  S3_REGION=default
  S3_ENDPOINT=http://$(sed -n 's/^rgw frontends = .*endpoint=\([^ ]*\).*/\1/p' "$conf")
  ceph_runs "$dir/run/rgw.pid" || radosgw -c "$conf" -n client.rgw
  ceph_until "gateway" curl -sf -o /dev/null "$S3_ENDPOINT/"
}

ceph_for_test() {
  ceph_need
  work=$(mktemp -d /tmp/varve-s3-XXXXXX)
  trap 'ceph_stop "$work"; rm -rf "$work"' EXIT
  trap 'exit 143' INT TERM
  ceph_start "$work"
  ceph_make_bucket "$@"
}

ceph_make_bucket() {
  S3_KEY=$S3_KEY S3_SECRET=$S3_SECRET python3 "$(dirname "${BASH_SOURCE[0]}")/make_bucket.py" "$S3_ENDPOINT" \
    "$S3_REGION" "$@"
}

ceph_pid_file() {
  case $2 in
    rgw) echo "$1/run/rgw.pid" ;;
    osd) echo "$1/run/osd.0.pid" ;;
    *) echo "$1/run/$2.$([ "$2" = mon ] && echo a || echo x).pid" ;;
  esac
}

ceph_kill() {
  local file
  file=$(ceph_pid_file "$1" "$2")
  kill -9 "$(cat "$file")"
  rm -f "$file"
}

ceph_stop() {
  local name file pid end
  for name in rgw mgr osd mon; do
    file=$(ceph_pid_file "$1" $name)
    ceph_runs "$file" || continue
    pid=$(cat "$file")
    kill "$pid"
    end=$((SECONDS + 15))
    while kill -0 "$pid" 2>/dev/null; do
      [ $SECONDS -lt $end ] || kill -9 "$pid" 2>/dev/null || true
      sleep 0.1
    done
  done
}
