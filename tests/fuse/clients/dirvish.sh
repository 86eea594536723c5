#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# dirvish with the repository as its bank and a series as a vault: docs/RECIPES.md.
limit_s=60
. "$(dirname "$0")/../lib.sh"
export PATH=$PATH:/usr/sbin
command -v dirvish >/dev/null || skip "dirvish is not installed"

unshare -m true 2>/dev/null || skip "mounts cannot be private here"
[ -d /etc/dirvish ] || skip "/etc/dirvish is missing"
mkdir -p "$work/src/dir" "$work/etc"
head -c 200000 /dev/urandom >"$work/src/random"
"$VARVE" init "$repo" 2>/dev/null
mount_repo -o beside=dirvish,rm_deletes,autoseal=0

mkdir "$mnt/vault" "$mnt/vault/dirvish"
cat >"$mnt/vault/dirvish/default.conf" <<END
client: $(hostname)
tree: $work/src
xdev: 1
index: none
image-default: %Y-%m-%d-%H%M%S
END
# dirvish reads its main configuration only from there. The bind mount is private to each run.
cat >"$work/etc/master.conf" <<END
bank:
	$mnt
image-default: %Y-%m-%d-%H%M%S
expire-default: +30 days
END
run() {  # ARGUMENT…
  seq "$((++runs))" >"$work/src/changing"
  next_second  # An image has the time in seconds as its name.
  unshare -m sh -ec 'mount --bind "$0" /etc/dirvish && exec dirvish --vault vault "$@"' \
    "$work/etc" "$@" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
  newest=$(images | tail -n 1)
  diff -r "$work/src" "$mnt/vault/$newest/tree"
}
images() { find "$mnt/vault" -mindepth 1 -maxdepth 1 -type d -name '2*' -printf '%f\n' | sort; }
runs=0

run --init
oldest=$newest
run
run
[ "$(images | wc -l)" -eq 3 ] || fail "$(images)"
sealed "$mnt/vault/$oldest"
[ "$(cat "$mnt/vault/$oldest/tree/changing")" = 1 ] || fail "the oldest image"
[ "$(grep -c '^2' "$mnt/vault/dirvish/default.hist")" -eq 3 ] || fail "default.hist"
[ ! -e "$mnt/vault/dirvish/lock_file" ]
grep -q '^Status: success' "$mnt/vault/$newest/summary"
ok "each image is a version; default.hist and the configuration are beside them"

# What dirvish-expire does.
rm -rf "$mnt/vault/$oldest/tree"
rm -rf "$mnt/vault/$oldest"
[ "$(images | wc -l)" -eq 2 ] || fail "$(images)"
"$VARVE" -q seal "$mnt/vault/$newest" >/dev/null
unmount_repo
"$VARVE" -q check "$repo"
ok "an image that expires is deleted as a whole"
