#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rsnapshot with a series as its snapshot_root: docs/RECIPES.md.
limit_s=60
. "$(dirname "$0")/../lib.sh"
command -v rsnapshot >/dev/null || skip "rsnapshot is not installed"

mkdir -p "$work/src/dir" "$work/versions"
head -c 200000 /dev/urandom >"$work/src/random"
ln "$work/src/random" "$work/src/dir/link"

# Writes a configuration. The separators are tabs.
configure() {  # LINE…
  {
    printf 'config_version\t1.2\nsnapshot_root\t%s/\nlockfile\t%s\n' "$mnt/s" "$work/pid"
    printf 'cmd_rsync\t%s\nretain\talpha\t2\nretain\tbeta\t2\n' "$(command -v rsync)"
    printf 'no_create_root\t1\nverbose\t2\nlink_dest\t1\nbackup\t%s\tlocalhost/\n' "$work/src/"
    printf '%b\n' "$@"
  } >"$work/rsnapshot.conf"
}

runs=0
run() {  # runs it on a changed source, and checks the newest version and the one before
  runs=$((runs + 1))
  seq "$runs" >"$work/src/changing"  # Of another size: rsync compares times by the second.
  cp -a "$work/src" "$work/versions/$runs"
  rsnapshot -c "$work/rsnapshot.conf" alpha
  diff -r "$work/src" "$mnt/s/alpha.0/localhost$work/src"
  [ $runs -eq 1 ] || diff -r "$work/versions/$((runs - 1))" "$mnt/s/alpha.1/localhost$work/src"
}
names() { (cd "$mnt/s" && echo *); }

"$VARVE" init "$repo" 2>/dev/null
mount_repo -o rm_deletes
mkdir "$mnt/s"
post="$work/seal"
printf '#!/bin/sh\nexec %s -q seal %s >/dev/null\n' "$VARVE" "$mnt/s/alpha.0" >"$post"
chmod +x "$post"
configure "cmd_rm\t$(command -v rm)" "cmd_postexec\t$post"
run
run
run
[ "$(names)" = "alpha.0 alpha.1 latest" ] || fail "$(names)"
sealed "$mnt/s/alpha.0"
rsnapshot -c "$work/rsnapshot.conf" beta
[ "$(names)" = "alpha.0 beta.0 latest" ] || fail "$(names)"
diff -r "$work/versions/2" "$mnt/s/beta.0/localhost$work/src"
[ "$(readlink "$mnt/s/latest")" = alpha.0 ] || fail "latest"
ok "rsnapshot rotates, links and deletes with rm_deletes and /bin/rm"

configure "cmd_postexec\t$post"
run
run
run
[ "$(names)" = "alpha.0 alpha.1 beta.0 latest" ] || fail "$(names)"
ok "and with its own rmtree"
unmount_repo

mount_repo -o autoseal=0
configure "cmd_rm\t$(realpath "$here/../../mount-helpers/varve-rm")"
run
run
run
[ "$(names)" = "alpha.0 alpha.1 beta.0 latest" ] || fail "$(names)"
sealed "$mnt/s/alpha.1"
unmount_repo
expect_status 1 rsnapshot -c "$work/rsnapshot.conf" alpha
[ -z "$(ls -A "$mnt")" ] || fail "files below the mount point: $(ls -A "$mnt")"
ok "a run without the mount is an error, and writes nothing"
"$VARVE" -q check "$repo"
ok "and with varve-rm, without rm_deletes; the next run seals"
