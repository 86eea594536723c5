#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bash, zsh and fish complete commands, options, instances, series, versions and files.
. "$(dirname "$0")/lib.sh"

completions=$here/../../completions
cd "$work"
mkdir bin src src/dir "src/with blank" && ln -s "$VARVE" bin/varve
export PATH=$work/bin:$PATH HOME=$work XDG_CONFIG_HOME=$work/config
echo content-of-file >src/dir/file && echo content-with-blank >"src/with blank/file"
ln -s dir/file src/link && mknod src/null c 1 3
touch "src/\$(touch pwned)" 'src/`touch pwned`'
printf '#!/bin/sh\nexec cat "$1"\n' >bin/own-program && chmod +x bin/own-program
"$VARVE" -q init repo
"$VARVE" -q store repo series/one src
"$VARVE" -q store repo series/2027-01-31T18:30:00 src
"$VARVE" -q store repo other/one src
mkdir -p -m 755 config/varve && echo "VARVE_REPO=$work/repo" >config/varve/instance.conf

shows() {  # FILE: each file's content appears once for each line that ends with it
  local blank
  blank=$(grep -c '^content-with-blank$' "$1" || true)
  [ "$(grep -c '^content-of-file$' "$1")" -eq 6 ] && [ "$blank" -eq 1 ] ||
    fail "$shell does not complete: $(cat "$1")"
  grep -q '^VERSION  *SEALED' "$1" || fail "$shell completes no command or version: $(cat "$1")"
  [ ! -e pwned ] || fail "$shell runs the name of a file"
}
# The last part of each word is typed with the key Tab; the command then shows whether it is right.
cat >lines <<'END'
varve dump repo ser\ton\t/di\tfi\t
varve dump repo series/2027-01-31T18:\t/dir/fi\t
varve dump repo series/one/wi\tfi\t
varve -R ins\tdump series/on\t/dir/fi\t
varve hist\trepo series/dir/file
varve ls repo series/one/\t\tKILL
export VARVE_REPO=repo
varve dump oth\ton\t/dir/fi\t
unset VARVE_REPO
varve dump s3://buc\tser\ton\t/dir/fi\t
varve store --stdin-from-command f repo stored/one -- own-prog\t src/dir/fi\t
varve dump repo stored/one/f
END
# A completed version is followed by a blank, which the slash has to replace.
sed -i 's|\\t/|\\t\x7f/|g; s|KILL|\x15|' lines

# The folder of a place in a store that nothing reaches: completion needs no request.
state=$work/state/varve
mkdir -p -m 700 "$state" && cp -a repo store-folder
printf '# The object store.\nplace = s3://bucket/way\nendpoint = http://127.0.0.1:9\nrole = writer\n' >store-folder/bucket
printf 's3://bucket/way\t%s/store-folder\n' "$work" >"$state/places"
chmod 600 "$state/places" store-folder/bucket
export XDG_STATE_HOME=$work/state AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b

shell=bash
{ echo "source $completions/varve.bash"; cat lines; } |
  python3 "$here/shell_lines.py" bash --norc --noprofile -i >bash.said || fail "bash: $(cat bash.said)"
shows bash.said
ok "bash completes series, versions and files"

shell=zsh
if command -v zsh >/dev/null; then
  { echo "fpath=($completions \$fpath); autoload -Uz compinit; compinit -u -D"; cat lines; } |
    python3 "$here/shell_lines.py" zsh -f -i >zsh.said || fail "zsh: $(cat zsh.said)"
  shows zsh.said
  ok "zsh completes series, versions and files"
else
  skip_part "zsh is missing, so nothing tried its completion"
fi

shell=fish
if command -v fish >/dev/null; then
  offers() {  # LINE WANTED…: fish offers at least these
    local line=$1 wanted
    shift
    fish --no-config -c "source $completions/varve.fish; complete -C '$line'" | cut -f1 >fish.said
    for wanted in "$@"; do
      grep -qxF -- "$wanted" fish.said || fail "fish does not offer $wanted for $line: $(cat fish.said)"
    done
  }
  offers 'varve sta' stat stats status
  offers 'varve prune --keep-w' --keep-weekly --keep-within
  offers 'varve ls repo se' series/ series/one series/latest
  offers 'varve ls repo series/o' series/one
  offers 'varve ls repo series/2027-01-31T18:' series/2027-01-31T18:30:00
  offers 'varve dump repo series/one/' series/one/dir/ series/one/link series/one/null
  offers 'varve dump repo series/one/w' 'series/one/with blank/'
  offers 'varve dump repo series/one/dir/f' series/one/dir/file
  offers 'varve ls s3://b' s3://bucket/way
  offers 'varve ls s3://bucket/way series/o' series/one
  offers 'varve store --stdin-from-command f repo s/v -- own-p' own-program
  offers 'varve store --stdin-from-command f repo s/v -- own-program src/di' src/dir/
  offers 'varve -R ' instance
  offers 'varve -R instance sta' stat
  offers 'varve -R instance dump series/one/d' series/one/dir/
  [ ! -e pwned ] || fail "fish runs the name of a file"
  ok "fish completes series, versions and files"
else
  skip_part "fish is missing, so nothing tried its completion"
fi
