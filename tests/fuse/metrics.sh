#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `varve stats --live` and `--prometheus` show the counts of the daemon, and these match the work
# that was done on the mount.
. "$(dirname "$0")/lib.sh"

live() { "$VARVE" stats --live --json "$repo"; }

value_of() {  # NAME [OPERATION] [KEY]: prints a metric of the daemon
  live | python3 -c '
import json, sys
name, operation, key = sys.argv[1:]
for line in sys.stdin:
    metric = json.loads(line)
    if metric["name"] == name and metric["labels"].get("operation", "") == operation:
        print(metric[key])' "$1" "${2:-}" "${3:-value}"
}
equal() {  # VALUE NAME [OPERATION] [KEY]
  local want=$1 got
  shift
  got=$(value_of "$@")
  [ "$got" = "$want" ] || fail "$*: $got, not $want"
}
none_in_progress() { [ "$(value_of varve_fuse_requests_in_progress)" -eq 0 ]; }

"$VARVE" init "$repo"
expect_status 1 "$VARVE" stats --live "$repo"
message_says "is not mounted.*varve mount"
expect_status 10 "$VARVE" stats --live "$work"
"$VARVE" stats --prometheus "$repo" >"$work/figures"
! grep -q varve_fuse "$work/figures" || fail "there are metrics without a daemon"
ok "without a daemon, --live says that nothing is mounted, and --prometheus prints the figures"

# Sizes of files that are unique, so that no two chunks are equal.
mkdir "$work/tree"
bytes=0
for n in 1 2 3 4 5 6 7 8; do
  size=$((n * 70000 + 13))
  head -c $size /dev/urandom >"$work/tree/file$n"
  bytes=$((bytes + size))
done
mount_repo
mkdir "$mnt/s" "$mnt/s/one.partial"
cp "$work"/tree/* "$mnt/s/one.partial/"
mv -T "$mnt/s/one.partial" "$mnt/s/one"
equal $bytes varve_ingest_received_bytes_total
equal $bytes varve_ingest_stored_bytes_total
chunks=$(value_of varve_ingest_new_chunks_total)
[ "$chunks" -ge 8 ] || fail "$chunks new chunks"
[ "$chunks" -eq "$(stat_of "$repo" chunks)" ] || fail "the repository has another number of chunks"
equal "$chunks" varve_ingest_cut_chunks_total
equal 0 varve_ingest_duplicate_chunks_total
equal "$(stat_of "$repo" containers)" varve_layout_containers_total
equal "$(stat_of "$repo" container_bytes)" varve_layout_container_bytes_total
equal 8 varve_fuse_request_seconds create count
[ "$(value_of varve_fuse_request_seconds write count)" -ge 8 ] || fail "writes are missing"
equal 2 varve_fuse_request_seconds mkdir count
equal 1 varve_fuse_request_seconds rename count
ok "writing: $bytes bytes, $chunks new chunks and each request by its operation are counted"

mkdir "$mnt/s/two.partial"
cp "$work"/tree/* "$mnt/s/two.partial/"
[ "$(value_of varve_index_entries)" -ge "$chunks" ] || fail "the index is not counted"
mv -T "$mnt/s/two.partial" "$mnt/s/two"
equal $((2 * bytes)) varve_ingest_received_bytes_total
equal "$chunks" varve_ingest_new_chunks_total
equal "$chunks" varve_ingest_duplicate_chunks_total
equal $bytes varve_ingest_stored_bytes_total
equal "$chunks" varve_index_hits_total
[ "$(value_of varve_index_lookups_total)" -ge $((2 * chunks)) ] || fail "lookups are missing"
equal 0 varve_index_entries
ok "the same tree again: all chunks are found in the index, and no new chunk is counted"

errors=$(value_of varve_fuse_errors_total unlink)
! rm -f "$mnt/s/one/file1" 2>/dev/null || fail "a sealed version was changed"
equal $((errors + 1)) varve_fuse_errors_total unlink
ok "a request that fails is counted as an error of its operation"

delivered=$(value_of varve_restore_delivered_bytes_total)
cat "$mnt"/s/two/* >"$work/read"
[ "$(stat -c %s "$work/read")" -eq $bytes ] || fail "the read data has another size"
[ "$(value_of varve_restore_delivered_bytes_total)" -ge $((delivered + bytes)) ] ||
  fail "fewer bytes were delivered than read"
[ "$(value_of varve_restore_read_bytes_total)" -ge $bytes ] || fail "fewer bytes were read"
[ "$(value_of varve_restore_requests_total)" -gt 0 ] || fail "no request to the store is counted"
[ "$(value_of varve_fuse_request_seconds read count)" -ge 8 ] || fail "reads are missing"
wait_until "all requests are answered" none_in_progress
ok "reading: requests, bytes read and bytes delivered are counted"

"$VARVE" -q arrange "$repo"
[ "$(value_of varve_arrange_runs_total)" -ge 1 ] || fail "no run of the arranger is counted"
"$VARVE" stats --live "$repo" >"$work/table"
grep -q "^varve_ingest_new_chunks_total  *$chunks  " "$work/table" || fail "$(cat "$work/table")"
grep -q "^varve_fuse_request_seconds operation=read  *[0-9]" "$work/table" || fail "no durations"
! grep -q "operation=fallocate" "$work/table" || fail "an operation that never happened is shown"
ok "--live prints a table"

"$VARVE" stats --prometheus "$repo" >"$work/exposition"
python3 - "$work/exposition" "$repo" "$bytes" <<'PYTHON'
import re, sys
path, repository, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
SAMPLE = re.compile(r'^([a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)+)\} ([0-9.]+)$')
family, kinds, helped, values = None, {}, set(), {}
for line in open(path, encoding="utf-8").read().splitlines():
    if line.startswith("# HELP "):
        name = line.split(" ", 3)[2]
        assert name not in helped, f"two HELP lines of {name}"
        helped.add(name)
    elif line.startswith("# TYPE "):
        family, kind = line.split(" ")[2:]
        assert family in helped and family not in kinds, line
        kinds[family] = kind
    else:
        match = SAMPLE.match(line)
        assert match, line
        name, labels, value = match.groups()
        endings = ("_bucket", "_sum", "_count") if kinds[family] == "histogram" else ("",)
        assert name in [family + ending for ending in endings], f"{line} below {family}"
        assert f'repository="{repository}"' in labels, line
        assert (name, labels) not in values, f"{line} comes twice"
        values[(name, labels)] = float(value)
buckets = {}
for (name, labels), value in values.items():
    if name.endswith("_bucket"):
        rest, bound = labels.split(",le=")
        buckets.setdefault((name[:-7], rest), []).append((bound.strip('"'), value))
for (name, labels), bounds in buckets.items():
    assert [float(b) for b, _ in bounds] == sorted(float(b) for b, _ in bounds), labels
    assert [v for _, v in bounds] == sorted(v for _, v in bounds), f"{labels} is not cumulative"
    assert bounds[-1] == ("+Inf", values[(name + "_count", labels)]), labels
    assert (name + "_sum", labels) in values, labels
assert len(buckets) > 20 and list(kinds.values()).count("counter") > 15
assert values[("varve_ingest_received_bytes_total", f'repository="{repository}"')] == 2 * size
assert values[("varve_repository_chunks", f'repository="{repository}"')] > 0
PYTHON
ok "--prometheus prints the figures and all metrics in the text format"

unmount_repo
mount_repo
equal 0 varve_ingest_received_bytes_total
ok "another daemon counts from 0"
unmount_repo
"$VARVE" stats --prometheus "$repo" >"$work/figures"
! grep -q varve_fuse "$work/figures" || fail "there are metrics without a daemon"
