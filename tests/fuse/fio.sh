#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fio writes in random order by several engines and block sizes, and verifies the bytes that it
# reads: at once, from another mount, and as a sealed version.
#
# VARVE_FIO_MIB (12) is the size of each file.
limit_s=400
. "$(dirname "$0")/lib.sh"
command -v fio >/dev/null || skip "fio is not installed"
mib=${VARVE_FIO_MIB:-12}

"$VARVE" init "$repo"
mount_repo
v=$mnt/s/v.partial
mkdir "$mnt/s" "$v"

# Prints the name and the options of each job. One job writes 4 times the size of the file, so it
# overwrites blocks.
jobs_of() {
  cat <<'EOF'
psync-4k --ioengine=psync --rw=randwrite --bs=4k
psync-odd --ioengine=psync --rw=randwrite --bs=3k --blockalign=512
psync-mixed --ioengine=psync --rw=randrw --bsrange=512-64k --bs_unaligned=1
mmap-4k --ioengine=mmap --rw=randwrite --bs=4k
mmap-64k --ioengine=mmap --rw=randrw --bs=64k --fsync=32
direct-128k --ioengine=psync --direct=1 --rw=randwrite --bs=128k
append --ioengine=psync --rw=write --bs=16k --fsync=64
sync-4k --ioengine=sync --sync=1 --rw=randwrite --bs=4k --io_size=1m
threads --ioengine=psync --rw=randwrite --bs=8k --numjobs=3 --thread --group_reporting
libaio-16k --ioengine=libaio --iodepth=8 --direct=1 --rw=randwrite --bs=16k
EOF
}

run_job() {  # NAME OPTIONS…
  local name=$1
  shift
  fio --name="$name" --directory="$v" --aux-path="$work" --size="${mib}m" --verify=crc32c \
    --verify_fatal=1 --randseed=7 --end_fsync=1 --fallocate=none --output="$work/fio-$name" "$@" ||
    fail "fio $name: $(grep -iE 'err|verify' "$work/fio-$name" | head -5)"
}

while read -r name options; do
  # shellcheck disable=SC2086
  run_job "$name" $options
done < <(jobs_of)
ok "fio verifies what it wrote"
(cd "$v" && sha256sum -- *) >"$work/sums"
unmount_repo
mount_repo
(cd "$v" && sha256sum --quiet -c "$work/sums")
while read -r name options; do
  # fio cannot replay mixed reads and writes, or a part of the file, without writing again.
  case $options in *randrw* | *io_size*) continue ;; esac
  # shellcheck disable=SC2086
  run_job "$name" $options --verify_only=1
done < <(jobs_of)
ok "and finds it in another mount"
mv -T "$v" "$mnt/s/v"
(cd "$mnt/s/v" && sha256sum --quiet -c "$work/sums")
unmount_repo
mount_repo
(cd "$mnt/s/v" && sha256sum --quiet -c "$work/sums")
unmount_repo
"$VARVE" check --read-data "$repo"
ok "sealed and remounted it is the same"
