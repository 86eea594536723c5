#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# varve -R NAME takes the repository and options of an instance from its file.
. "$(dirname "$0")/lib.sh"

export XDG_CONFIG_HOME=$work/config
conf=$XDG_CONFIG_HOME/varve/home.conf
mkdir -p -m 755 "$XDG_CONFIG_HOME/varve" "$work/tree/cache" "$work/my files"
echo one >"$work/tree/file" && echo two >"$work/tree/cache/file" && echo three >"$work/my files/file"
"$VARVE" -q init "$repo"
cat >"$conf" <<END
# The backup of this machine.
VARVE_REPO=$repo
VARVE_SOURCE=$work/tree
VARVE_SERIES=home
VARVE_MOUNT=$mnt
VARVE_STORE=--exclude cache --no-arrange
VARVE_KEEP="--keep-last 2"
VARVE_STATUS=--max-age 1h
VARVE_OPTIONS=series=home
END
chmod 600 "$conf"
varve() { "$VARVE" -R home "$@"; }

varve -q store
varve ls | grep -qE '^home/20[0-9-]{8}T[0-9]{6}Z$' || fail "the version has no time as its name: $(varve ls)"
varve ls home/latest | grep -qx file
! varve ls home/latest | grep -qx cache || fail "the exclude of the file does not count"
varve -q store home/by-name
varve -q store other/files "$work/my files"
[ "$(varve dump home/by-name/file)" = one ] && [ "$(varve dump other/files/file)" = three ]
expect_status 0 varve status
grep -q '^home ' "$work/stdout" && ! grep -q '^other ' "$work/stdout" || fail "status looks at other series"
echo four >>"$work/tree/file" && varve -q store home/third
varve prune >/dev/null
[ "$(varve ls home | wc -l)" -eq 2 ] && [ "$(varve ls other | wc -l)" -eq 1 ] || fail "prune: $(varve ls)"
varve -q prune --keep-last 1
[ "$(varve ls home)" = home/third ] || fail "a rule of the command line does not replace those of the file"
varve mount
[ "$(cat "$mnt/third/file")" = "$(cat "$work/tree/file")" ] || fail "the mount options do not count"
varve umount
! mountpoint -q "$mnt"
varve scrub >/dev/null
ok "commands use the repository, series, source, rules and options of the instance"

"$VARVE" -q init "$work/second"
[ -z "$(varve ls "$work/second")" ] || fail "-R wins over a repository on the command line"
[ "$(VARVE_REPO=$work/second varve ls home)" = home/third ] || fail "VARVE_REPO wins over -R"
expect_status 2 "$VARVE" ls -R home
message_says 'give -R before the command'
expect_status 2 "$VARVE" -R
expect_status 2 "$VARVE" -R ../home ls
expect_status 1 "$VARVE" -R absent ls
message_says 'no instance "absent".*/etc/varve/absent.conf'
echo 'VARVE_STORE=--nonsense' >"$XDG_CONFIG_HOME/varve/bad.conf"
expect_status 2 "$VARVE" -R bad store
message_says 'options of .*/bad.conf are a part'
echo 'VARVE_SORUCE=/x' >"$XDG_CONFIG_HOME/varve/bad.conf"
expect_status 1 "$VARVE" -R bad store
message_says 'bad.conf: line 1: unknown key VARVE_SORUCE; did you mean "VARVE_SOURCE"'
ok "an unknown instance, a wrong file and a -R in the wrong place are refused"

# A file that others can change decides nothing.
before=$("$VARVE" ls "$repo")
refused() {  # PATTERN
  expect_status 1 "$VARVE" -R home prune
  message_says "$1"
}
chmod 620 "$conf" && refused 'writable by group or others.*chmod go-w'
chmod 602 "$conf" && refused 'writable by group or others'
chmod 600 "$conf" && chown nobody "$conf" && refused 'belongs to user'
chown root "$conf" && chmod 777 "$XDG_CONFIG_HOME/varve" && refused 'writable by group or others'
chmod 755 "$XDG_CONFIG_HOME/varve"
mv "$conf" "$work/kept"
printf 'VARVE_REPO=%s\0\n' "$repo" >"$conf" && refused 'NUL bytes'
head -c 100000 /dev/zero | tr '\0' '#' >"$conf" && refused 'more than 64 KiB'
rm "$conf" && mkfifo "$conf" && refused 'not a regular file'
rm "$conf" && ln -s /dev/zero "$conf" && refused 'not a regular file|belongs'
rm "$conf" && echo "VARVE_KEEP='--keep-last 1" >"$conf" && echo "VARVE_REPO=$repo" >>"$conf"
refused 'a quote . has no end'
printf 'VARVE_REPO=%s\nVARVE_KEEP=--keep-last $(touch %s/pwned)\n' "$repo" "$work" >"$conf"
expect_status 2 "$VARVE" -R home prune
[ ! -e "$work/pwned" ] || fail "a value was run as a command"
[ "$("$VARVE" ls "$repo")" = "$before" ]
mv "$work/kept" "$conf"
[ "$(varve ls home)" = home/third ]
ok "a hostile file is refused, and nothing in it is run"

# The file of the system.
if ! unshare -m true 2>/dev/null; then
  skip_part "the file in /etc/varve: a private mount namespace cannot be made here"
  exit 0
fi
mkdir "$work/upper"
unshare -m --propagation private sh -ec '
  mount -t tmpfs none "$2" && mkdir "$2/etc" "$2/work"
  mount -t overlay -o "lowerdir=/etc,upperdir=$2/etc,workdir=$2/work" overlay /etc
  mkdir -p -m 755 /etc/varve && cp "$1" /etc/varve/machine.conf && chmod 644 /etc/varve/machine.conf
  "$VARVE" -R machine ls home' sh "$conf" "$work/upper" >"$work/out"
[ "$(cat "$work/out")" = home/third ] || fail "/etc/varve is not used: $(cat "$work/out")"
ok "/etc/varve/NAME.conf is the file of an instance"
