# SPDX-License-Identifier: Apache-2.0
# Completion of varve(1) for fish. Commands and options come from `varve --help`; series, versions and files
# from the repository that the line names. Completion sends no request to an object store: the command for the
# credentials fails, so an attached folder offers no series.

# Prints the words of the line before the cursor without -R NAME: the command first.
function __varve_words
    set -l words (commandline -opc)
    set -e words[1]
    if test (count $words) -ge 1; and test "$words[1]" = -R
        set -e words[1..2]
    end
    string match -v -- '-*' $words
end

function __varve_needs_command
    test (count (__varve_words)) -eq 0; and not __varve_needs_instance
end

function __varve_needs_instance
    set -l words (commandline -opc)
    test (count $words) -eq 2; and test "$words[2]" = -R
end

function __varve_commands
    command varve --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) *\(.*\)/\1\t\2/p'
end

function __varve_options
    set -l words (__varve_words)
    set -q words[1]; or return
    command varve $words[1] --help 2>/dev/null | grep -oE -- '(^|[ ,])--[a-z][a-z0-9-]*' | tr -d ' ,'
end

function __varve_instances
    set -l folder $HOME/.config
    set -q XDG_CONFIG_HOME; and set folder $XDG_CONFIG_HOME
    for file in $folder/varve/*.conf /etc/varve/*.conf
        string replace -r '.*/(.*)\.conf$' '$1' -- $file
    end
end

# Prints the places in object stores whose folders this machine knows.
function __varve_stores
    set -l folder $HOME/.local/state/varve
    test (id -u) -eq 0; and set folder /var/lib/varve
    set -q XDG_STATE_HOME; and set folder $XDG_STATE_HOME/varve
    test -r $folder/places; and cut -f 1 $folder/places | sort -u
end

function __varve_places
    set -l program env VARVE_CREDENTIALS_COMMAND=false varve
    set -l repository
    set -l words (commandline -opc)
    if test (count $words) -ge 3; and test "$words[2]" = -R
        set -a program -R $words[3]
    end
    for word in (__varve_words)
        test -e "$word/varve.repo"; and set repository $word
        contains -- (string trim -r -c / -- $word) (__varve_stores); and set repository $word
    end
    if test (count $repository) -eq 0; and string match -q -- 's3:*' (commandline -ct)
        __varve_stores
        return
    end
    if test (count $repository) -eq 0; and test (count $program) -eq 3; and test -z "$VARVE_REPO"
        return
    end
    set -l word (string unescape -- (commandline -ct))
    if string match -q -- '*/*/*' $word
        set -l place (string replace -r '/[^/]*$' '' -- $word)
        # One line: mode links owner group size date time name.
        command $program ls -l --bytes $repository $place 2>/dev/null |
            sed -nE 's/^([^ ])[^ ]+ +[0-9]+ +[0-9]+ +[0-9]+ +([0-9]+, )?[0-9]+ +[0-9-]+ [0-9:]+ +(.*)$/\1\3/p' |
            while read -l line
                set -l name (string sub -s 2 -- $line)
                switch $line
                    case 'd*'
                        printf '%s\n' $place/$name/
                    case 'l*'
                        printf '%s\n' $place/(string replace -r ' -> .*' '' -- $name)
                    case '*'
                        printf '%s\n' $place/$name
                end
            end
        return
    end
    set -l names (command $program ls $repository 2>/dev/null | sed 's/ (open.*//')
    printf '%s\n' $names
    printf '%s\n' $names | sed 's|/.*|/|' | sort -u
    printf '%s\n' $names | sed -n 's|/.*|/latest|p' | sort -u
end

# Behind the dashes of --stdin-from-command is a command of its own.
function __varve_in_stored_command
    set -l words (commandline -opc)
    set -l dashes (contains -i -- -- $words); or return
    string match -q -- '--stdin-from-command*' $words[1..$dashes]
end

function __varve_stored_command
    set -l words (commandline -opc) (commandline -ct)
    set -l dashes (contains -i -- -- $words)
    set -l first (math $dashes + 1)
    complete -C (string join ' ' -- $words[$first..-1])
end

complete -c varve -n __varve_in_stored_command -f -a '(__varve_stored_command)'
complete -c varve -n __varve_needs_instance -f -a '(__varve_instances)'
complete -c varve -n __varve_needs_command -f -a '(__varve_commands)'
complete -c varve -n 'not __varve_in_stored_command; and not __varve_needs_command; and string match -q -- "-*" (commandline -ct)' -f -a '(__varve_options)'
complete -c varve -n 'not __varve_in_stored_command; and not __varve_needs_command; and not __varve_needs_instance' -a '(__varve_places)'
