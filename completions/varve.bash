# SPDX-License-Identifier: Apache-2.0
# Completion of varve(1) for bash. Commands and options come from `varve --help`, so they are those of
# the installed program. Series, versions and files come from the repository that the line names. A name
# from a repository is never expanded: it may be `$(command)`. Completion sends no request to an object store:
# the command for the credentials fails, so an attached folder offers no series.

_varve_commands() {
  command varve --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p'
}

_varve_options() {  # COMMAND
  command varve "$1" --help 2>/dev/null | grep -oE -- '(^|[ ,])--[a-z][a-z0-9-]*' | tr -d ' ,'
}

# Prints the names of instances.
_varve_instances() {
  local file
  for file in "${XDG_CONFIG_HOME:-$HOME/.config}"/varve/*.conf /etc/varve/*.conf; do
    [[ -e $file ]] || continue
    file=${file##*/}
    printf '%s\n' "${file%.conf}"
  done
}

# Prints the places in object stores whose folders this machine knows.
_varve_stores() {
  local folder=${XDG_STATE_HOME:-$HOME/.local/state}/varve
  [[ -n ${XDG_STATE_HOME:-} || $EUID -ne 0 ]] || folder=/var/lib/varve
  [[ -r $folder/places ]] && cut -f 1 "$folder/places" | sort -u
}

# Prints the series; all versions if the word names a series; the files beside the word if it names a
# version. Uses the array _varve_program, which has the program, and the instance or the repository.
_varve_places() {  # WORD
  local names place line
  if [[ $1 == */*/* ]]; then
    place=${1%/*}
    # One line: mode links owner group size date time name.
    "${_varve_program[@]}" ls -l --bytes "${_varve_repository[@]}" "$place" 2>/dev/null |
      sed -nE 's/^([^ ])[^ ]+ +[0-9]+ +[0-9]+ +[0-9]+ +([0-9]+, )?[0-9]+ +[0-9-]+ [0-9:]+ +(.*)$/\1\3/p' |
      while IFS= read -r line; do
        case $line in
          d*) printf '%s\n' "$place/${line:1}/" ;;
          l*) line=${line:1}; printf '%s\n' "$place/${line%% -> *}" ;;
          *) printf '%s\n' "$place/${line:1}" ;;
        esac
      done
    return
  fi
  names=$("${_varve_program[@]}" ls "${_varve_repository[@]}" 2>/dev/null | sed 's/ (open.*//')
  if [[ $1 == */* ]]; then
    printf '%s\n' "$names"
    printf '%s\n' "$names" | sed -n 's|/.*|/latest|p' | sort -u
  else
    printf '%s\n' "$names" | sed 's|/.*|/|' | sort -u
  fi
}

# Adds the lines of standard input that begin with the word, quoted for the shell. Removes what bash
# keeps of the word: it ends words at colons.
_varve_offer() {  # WORD
  local line kept=${1%"${1##*:}"}
  [[ $COMP_WORDBREAKS == *:* ]] || kept=
  while IFS= read -r line; do
    [[ -n $line && $line == "$1"* ]] && COMPREPLY+=("$(printf '%q' "${line#"$kept"}")")
  done
}

_varve() {
  local line=${COMP_LINE:0:COMP_POINT} word command= place i
  local -a _varve_program=(env VARVE_CREDENTIALS_COMMAND=false varve) _varve_repository=()
  COMPREPLY=()
  # The word up to the cursor, without the quoting that completion itself makes.
  word=${COMP_WORDS[COMP_CWORD]}
  for ((i = COMP_CWORD - 1; i > 0; --i)); do
    [[ ${COMP_WORDS[i + 1]} == :* || ${COMP_WORDS[i]} == *: ]] || break
    [[ $line == *"${COMP_WORDS[i]}$word" ]] || break
    word=${COMP_WORDS[i]}$word
  done
  word=${word#[\"\']}
  word=${word//\\/}
  if [[ ${COMP_WORDS[COMP_CWORD - 1]} == -R && $COMP_CWORD -le 2 ]]; then
    _varve_offer "$word" < <(_varve_instances)
    return
  fi
  local stores
  stores=$(_varve_stores)
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} == -- && " ${COMP_WORDS[*]:0:i} " == *" --stdin-from-command"[\ =]* ]]; then
      # Behind the dashes is a command of its own.
      ((i + 1 < COMP_CWORD)) || mapfile -t COMPREPLY < <(compgen -c -- "$word")
      compopt -o default
      return
    fi
    if [[ -z $command && ${COMP_WORDS[i]} == -R ]]; then
      _varve_program+=(-R "${COMP_WORDS[++i]}")
      continue
    fi
    [[ ${COMP_WORDS[i]} == -* ]] && continue
    if [[ -z $command ]]; then
      command=${COMP_WORDS[i]}
    elif [[ -e ${COMP_WORDS[i]//\\/}/varve.repo ]]; then
      _varve_repository=("${COMP_WORDS[i]//\\/}")
    elif [[ ${COMP_WORDS[i]} == s3 && ${COMP_WORDS[i + 1]:-} == : && $((i + 2)) -lt $COMP_CWORD ]]; then
      # bash has cut the place into three words.
      place=s3:${COMP_WORDS[i + 2]//\\/}
      [[ -n $stores && $'\n'$stores$'\n' == *$'\n'${place%/}$'\n'* ]] && _varve_repository=("$place")
      ((i += 2))
    elif [[ ${COMP_WORDS[i]} == s3://* ]]; then
      place=${COMP_WORDS[i]//\\/}
      [[ -n $stores && $'\n'$stores$'\n' == *$'\n'${place%/}$'\n'* ]] && _varve_repository=("$place")
    fi
  done
  if [[ -z $command ]]; then
    _varve_offer "$word" < <(_varve_commands; printf '%s\n' --help --version)
  elif [[ $word == -* ]]; then
    _varve_offer "$word" < <(_varve_options "$command")
  elif [[ $word == s3:* && ${#_varve_repository[@]} -eq 0 ]]; then
    _varve_offer "$word" <<<"$stores"
  elif [[ ${#_varve_repository[@]} -gt 0 || ${#_varve_program[@]} -gt 3 || -n ${VARVE_REPO:-} ]]; then
    _varve_offer "$word" < <(_varve_places "$word")
    # A series is completed further, with its versions, and a directory with its files.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then compopt -o nospace; fi
  fi
  if [[ ${#COMPREPLY[@]} -eq 0 ]]; then compopt -o default; fi
}

complete -F _varve varve
