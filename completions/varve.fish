# SPDX-License-Identifier: Apache-2.0
# Completion of varve(1) for fish. Commands and options come from `varve --help`, series and versions from
# the repository that the line names.

function __varve_commands
    command varve --help 2>/dev/null | sed -n '/^Subcommands:/,/^$/ s/^  \([a-z][a-z-]*\) *\(.*\)/\1\t\2/p'
end

function __varve_options
    set -l words (commandline -opc)
    set -q words[2]; or return
    command varve $words[2] --help 2>/dev/null | grep -oE -- '(^|[ ,])--[a-z][a-z0-9-]*' | tr -d ' ,'
end

function __varve_places
    set -l repository $VARVE_REPO
    for word in (commandline -opc)
        test -e "$word/varve.repo"; and set repository $word
    end
    test -n "$repository"; or return
    set -l names (command varve ls $repository 2>/dev/null | sed 's/ (open.*//')
    printf '%s\n' $names
    printf '%s\n' $names | sed 's|/.*|/|' | sort -u
    printf '%s\n' $names | sed -n 's|/.*|/latest|p' | sort -u
end

complete -c varve -n __fish_use_subcommand -f -a '(__varve_commands)'
complete -c varve -n 'not __fish_use_subcommand; and string match -q -- "-*" (commandline -ct)' -f -a '(__varve_options)'
complete -c varve -n 'not __fish_use_subcommand' -a '(__varve_places)'
