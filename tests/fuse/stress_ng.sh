#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stress-ng's file system stressors inside an open version, with --verify. None may fail, the
# daemon must survive, and what they leave must be sealed and found clean.
#
# VARVE_STRESSORS chooses some of them ("all" for all), VARVE_STRESS_SECONDS (1) is the time for
# each. By default, those of Debian 12 run that make the most changes in the least time; "all" has those of
# newer versions, too.
seconds=${VARVE_STRESS_SECONDS:-1}
limit_s=$((300 + 70 * seconds * 4))
. "$(dirname "$0")/lib.sh"
command -v stress-ng >/dev/null || skip "stress-ng is not installed"

stressors=${VARVE_STRESSORS:-chown copy-file dentry dirdeep fallocate filename fpunch getdent
  link open rename sync-file xattr}
[ "$stressors" != all ] || stressors="access acl chattr chdir chmod chown copy-file dentry dir dirdeep dirmany
  dup eventfd fallocate fanotify fcntl fiemap file-ioctl filename flock fpunch fsize fstat getdent
  handle hdd inode-flags inotify io iomix ioprio lease link locka lockf lockofd metamix mknod
  msync open pseek punch readahead rename revio seal seek sendfile splice symlink sync-file
  sync-load touch truncate unlink utime verity vm-splice xattr"

v=$mnt/s/v.partial
"$VARVE" init "$repo"
mount_as_job -o default_permissions
mkdir "$mnt/s" "$v"
ran=0
failed=()
skipped=()
for stressor in $stressors; do
  size=()
  case $stressor in
    fallocate | readahead | revio | sync-file | hdd | iomix) size=("--$stressor-bytes" 16M) ;;
    seek) size=(--seek-size 4M) ;;
    copy-file) size=(--copy-file-bytes 128M) ;;
  esac
  status=0
  (cd / && timeout -k 5 $((seconds * 4 + 60)) stress-ng --verify --temp-path "$v" \
    "--$stressor" 2 "${size[@]}" --timeout "$seconds") >"$work/stress" 2>&1 || status=$?
  kill -0 "$daemon" 2>/dev/null || fail "$stressor: the daemon is gone: $(tail -5 "$work/daemon.log")"
  case $status in
    0) ran=$((ran + 1)) ;;
    3 | 4) skipped+=("$stressor") ;;
    *)
      if grep -qE 'nrecognized option|unknown option' "$work/stress"; then
        skipped+=("$stressor (unknown)")
        continue
      fi
      failed+=("$stressor")
      echo "$stressor ($status): $(grep -E 'fail|error|out of' "$work/stress" | head -4)"
      ;;
  esac
done
[ $ran -gt 0 ] || fail "nothing ran"
[ ${#failed[@]} -eq 0 ] || fail "stressors: ${failed[*]}"
ok "$ran stressors found nothing"
[ ${#skipped[@]} -eq 0 ] || skip_part "stressors that do not run here: ${skipped[*]}"
find "$v" -mindepth 1 -delete
mv -T "$v" "$mnt/s/v"
unmount_repo
wait "$daemon"
"$VARVE" check --read-data "$repo"
ok "the version is sealed, and check finds nothing"
