# SPDX-License-Identifier: Apache-2.0
# Completion of varve(1) for bash. Commands and options come from `varve --help`, so they are those of
# the installed program. Series and versions come from the repository that the line names. A name from a
# repository is never expanded: it may be `$(command)`.

_varve_commands() {
  command varve --help 2>/dev/null | sed -n '/^Subcommands:/,/^$/ s/^  \([a-z][a-z-]*\) .*/\1/p'
}

_varve_options() {  # COMMAND
  command varve "$1" --help 2>/dev/null | grep -oE -- '(^|[ ,])--[a-z][a-z0-9-]*' | tr -d ' ,'
}

# Prints the series, or all versions if the word names a series already.
_varve_places() {  # REPO WORD
  local names
  names=$(command varve ls "$1" 2>/dev/null | sed 's/ (open.*//')
  if [[ $2 == */* ]]; then
    printf '%s\n' "$names"
    printf '%s\n' "$names" | sed -n 's|/.*|/latest|p' | sort -u
  else
    printf '%s\n' "$names" | sed 's|/.*|/|' | sort -u
  fi
}

# Adds the lines of standard input that begin with the word, quoted for the shell.
_varve_offer() {  # WORD
  local line
  while IFS= read -r line; do
    [[ -n $line && $line == "$1"* ]] && COMPREPLY+=("$(printf '%q' "$line")")
  done
}

_varve() {
  local word=${COMP_WORDS[COMP_CWORD]} command= repository=${VARVE_REPO:-} i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} == -* ]] && continue
    if [[ -z $command ]]; then
      command=${COMP_WORDS[i]}
    elif [[ -e ${COMP_WORDS[i]}/varve.repo ]]; then
      repository=${COMP_WORDS[i]}
    fi
  done
  if [[ -z $command ]]; then
    _varve_offer "$word" < <(_varve_commands; printf '%s\n' --help --version)
  elif [[ $word == -* ]]; then
    _varve_offer "$word" < <(_varve_options "$command")
  elif [[ -n $repository ]]; then
    _varve_offer "$word" < <(_varve_places "$repository" "$word")
    # A series is completed further, with its versions.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then compopt -o nospace; fi
  fi
  if [[ ${#COMPREPLY[@]} -eq 0 ]]; then compopt -o default; fi
}

complete -F _varve varve
