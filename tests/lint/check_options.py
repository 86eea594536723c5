#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The man page and the program name the same commands and long options. The names of chunkers,
compression methods and restore engines are in the documents, and in one table of the source each.

usage: check_options.py [VARVE]   With the program, its --help texts are compared too.
"""

import re
import subprocess
import sys

import tree

PAGE = "man/varve.1"
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
LONG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
COMMAND = re.compile(r'add_command\(\s*"([a-z]+)"')

# The files that define names, the form of a definition, and the documents with the names.
REGISTRIES = [
    ("src/ingest/", re.compile(r'kId = "([^"]+)"'), [PAGE, "docs/FORMAT.md"]),
    ("src/format/compression.cc", re.compile(r'CompressionMethod\{Codec::\w+, "([^"]+)"'),
     [PAGE, "docs/FORMAT.md"]),
    ("src/restore/engines.cc", re.compile(r'EngineInfo\{"([^"]+)"'), ["man/mount.varve.8"]),
]
COMMON_WORDS = {"none"}  # Also names of other things in the source.


def read_page():
    """The page's text without the escapes of roff."""
    text = re.sub(r'^[.\']\\".*\n', "", tree.read(PAGE), flags=re.M)
    return re.sub(r"\\f[BIRP]", "", text.replace("\\-", "-"))


def page_tags(page):
    """Long options that stand as the tag of a .TP paragraph: the page's own list."""
    lines = page.split("\n")
    tags = [lines[i + 1] for i, line in enumerate(lines[:-1]) if line.startswith(".TP")]
    return {option for tag in tags for option in LONG.findall(tag)}


def help_of(program, command):
    run = subprocess.run([program, *command, "--help"], stdout=subprocess.PIPE, text=True,
                         check=True, timeout=20)
    return run.stdout


def check_registries(problems):
    """Returns the number of names."""
    sources = {path: tree.read(path) for path in tree.files((".cc", ".h"), "src")}
    checked = 0
    for where, definition, documents in REGISTRIES:
        defined = {}
        for path, text in sources.items():
            if path.startswith(where):
                defined.update((name, path) for name in definition.findall(text))
        if not defined:
            problems.append(f"{where}: no definition is like {definition.pattern}")
        for name, home in defined.items():
            checked += 1
            for document in documents:
                text = tree.read(document).replace("\\-", "-")
                if not re.search(rf"(?<![\w-]){name}(?![\w-])", text):
                    problems.append(f"{document}: {name} of {home} is missing")
            for path, text in sources.items():
                if path != home and name not in COMMON_WORDS and name in LITERAL.findall(text):
                    problems.append(f"{path}: \"{name}\" is spelled again; {home} has it")
    return checked


def main():
    page = read_page()
    sources = {path: tree.read(path) for path in tree.files((".cc", ".h"), "src/cli")}
    problems, checked, spelled, commands = [], 0, set(), set()
    documented = set(LONG.findall(page))
    for path, text in sources.items():
        commands |= set(COMMAND.findall(text))
        for literal in LITERAL.findall(text):
            for option in LONG.findall(literal):
                spelled.add(option)
                checked += 1
                if option not in documented:
                    problems.append(f"{path}: {option} is not in {PAGE}")
    for option in sorted(page_tags(page) - spelled - {"--help", "--version"}):
        problems.append(f"{PAGE}: {option} is not in src/cli")
    for command in sorted(commands):
        checked += 1
        if not re.search(rf"\b{command}\b", page):
            problems.append(f"{PAGE}: the command `{command}` is missing")
    if len(sys.argv) > 1:
        for command in [[]] + [[name] for name in sorted(commands)]:
            for option in set(LONG.findall(help_of(sys.argv[1], command))) - documented:
                problems.append(f"{' '.join(['varve', *command])}: {option} is not in {PAGE}")
    checked += check_registries(problems)
    tree.finish("man page and program agree", checked, problems)


if __name__ == "__main__":
    main()
