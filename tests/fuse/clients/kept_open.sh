#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs with a repository of their own in a version that stays open; `varve seal --keep` makes a
# version of it each night: docs/RECIPES.md.
#
#   kept_open.sh PROGRAM
limit_s=90
. "$(dirname "$0")/../lib.sh"
program=${1:?is the program to test}
command -v "$program" >/dev/null || skip "$program is not installed"

export HOME=$work/home XDG_CACHE_HOME=$work/cache XDG_CONFIG_HOME=$work/config
export BORG_BASE_DIR=$work/borg BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes
export BORG_RELOCATED_REPO_ACCESS_IS_OK=yes RESTIC_PASSWORD=secret
mkdir -p "$HOME" "$work/src/dir"
head -c 300000 /dev/urandom >"$work/src/dir/random"
"$VARVE" init "$repo" 2>/dev/null
mount_repo
log() { "$@" >"$work/log" 2>&1 || fail "$*: $(tail -n 20 "$work/log")"; }

# Two nights. Then each is restored from its version. Calls begin, backup and restore.
nights() {
  local night
  open=$mnt/s/current.partial
  "$VARVE" open "$open" >/dev/null 2>&1
  log begin
  for night in 1 2; do
    seq "$night" >"$work/src/changing"
    next_second  # Of two backups, these programs name only those apart that begin in two seconds.
    log backup "$night"
    "$VARVE" -q seal --keep --wait=60 "$open" "night-$night" >/dev/null
    rm -rf "$work/expected.$night"
    cp -a "$work/src" "$work/expected.$night"
  done
  for night in 1 2; do
    sealed=$mnt/s/night-$night
    rm -rf "$work/restored"
    mkdir "$work/restored"
    log restore
    diff -r "$work/expected.$night" "$restored"
  done
  ok "$program: two nights, each restored from its sealed version"
}

case $program in
borg)
  begin() { borg init -e none "$open/borg"; }
  backup() { (cd "$work/src" && borg create "$open/borg::$1" .); }
  restore() {
    restored=$work/restored
    # The present cache knows that the repository has a newer state.
    (cd "$restored" && BORG_BASE_DIR=$work/borg.${sealed##*-} borg --bypass-lock extract "$sealed/borg::${sealed##*-}")
  }
  ;;
restic)
  begin() { restic -r "$open/restic" init; }
  backup() { (cd "$work/src" && restic -r "$open/restic" backup .); }
  restore() {
    restored=$work/restored
    restic --no-lock --no-cache -r "$sealed/restic" restore latest --target "$restored"
  }
  ;;
duplicity)
  begin() { true; }
  backup() {
    duplicity --no-encryption --archive-dir "$work/archive" "$work/src" "file://$open/duplicity"
  }
  restore() {
    restored=$work/restored/tree
    duplicity restore --no-encryption --archive-dir "$work/archive.${sealed##*-}" \
      "file://$sealed/duplicity" "$restored"
  }
  ;;
rdiff-backup)
  begin() { true; }
  backup() { rdiff-backup "$work/src" "$open/tree"; }
  restore() {
    restored=$work/restored/tree
    # Status 2: a warning that it cannot write its log into the sealed version.
    rdiff-backup -r now "$sealed/tree" "$restored" || [ $? -eq 2 ]
  }
  ;;
storeBackup)
  begin() { mkdir "$open/store"; }
  backup() {
    storeBackup --sourceDir "$work/src" --backupDir "$open/store"
  }
  restore() {
    restored=$work/restored/tree
    mkdir "$restored"
    newest=$(find "$sealed/store/default" -mindepth 1 -maxdepth 1 -type d | sort | tail -n 1)
    storeBackupRecover -r . -b "$newest" -t "$restored"
  }
  ;;
*) fail "no test of $program" ;;
esac
nights
unmount_repo
"$VARVE" -q check "$repo"
