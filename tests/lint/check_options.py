#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each command has a page of its own, and the page and the program name the same long options. The
names of chunkers, compression methods and restore engines are in the documents, and in one table of
the source each.

usage: check_options.py [VARVE]   With the program, its --help texts are compared too.
"""

import re
import subprocess
import sys

import tree

PAGE = "man/varve.1"
PAGE_OF = "man/varve-{}.1"
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "SEE ALSO"]
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
LONG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
DECLARED = re.compile(r'add_(?:option|flag)\(\s*"([^"]*)"')
COMMAND = re.compile(r'add_command\(\s*"([a-z-]+)"')

# The files that define names, the form of a definition, and the documents with the names.
REGISTRIES = [
    ("src/ingest/", re.compile(r'k(?:Keyed\w+)?Id = "([^"]+)"'), ["man/varve-init.1", "docs/FORMAT.md"]),
    ("src/format/compression.cc", re.compile(r'CompressionMethod\{Codec::\w+, "([^"]+)"'),
     ["man/varve-init.1", "docs/FORMAT.md"]),
    ("src/restore/engines.cc", re.compile(r'EngineInfo\{"([^"]+)"'), ["man/mount.varve.8"]),
]
COMMON_WORDS = {"none"}  # Also names of other things in the source.


def read_page(path):
    """A page's text without the escapes of roff."""
    text = re.sub(r'^[.\']\\".*\n', "", tree.read(path), flags=re.M)
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


def check_sections(command, page, problems):
    for section in SECTIONS:
        if not re.search(rf'^\.SH "?{section}"?$', page, flags=re.M):
            problems.append(f"{PAGE_OF.format(command)}: the section {section} is missing")
    if f"varve {command}" not in page:
        problems.append(f"{PAGE_OF.format(command)}: no synopsis of `varve {command}`")


def check_sources(sources, pages, common, problems):
    """Compares the options that the sources declare and name with the pages. Returns their number."""
    everywhere = common.union(*(LONG.findall(page) for page in pages.values()))
    checked, spelled = 0, set()
    for path, text in sources.items():
        commands = COMMAND.findall(text)
        if len(commands) == 1 and commands[0] in pages:
            of_page = common | set(LONG.findall(pages[commands[0]]))
            for option in LONG.findall(" ".join(DECLARED.findall(text))):
                checked += 1
                if option not in of_page:
                    problems.append(f"{path}: {option} is not in {PAGE_OF.format(commands[0])}")
        for literal in LITERAL.findall(text):
            for option in LONG.findall(literal):
                spelled.add(option)
                checked += 1
                if option not in everywhere:
                    problems.append(f"{path}: {option} is on no page")
    for command, page in pages.items():
        for option in sorted(page_tags(page) - spelled):
            problems.append(f"{PAGE_OF.format(command)}: {option} is not in src/cli")
    return checked


def check_help(program, pages, common, problems):
    """Compares the help of the program with the pages. Returns the number of options."""
    checked = 0
    for command, page in pages.items():
        of_program = set(LONG.findall(help_of(program, [command])))
        checked += len(of_program)
        for option in sorted(of_program - common - set(LONG.findall(page))):
            problems.append(f"varve {command}: {option} is not in {PAGE_OF.format(command)}")
        # A page may be that of a script too, as varve-rm.
        for option in sorted(page_tags(page) - of_program - common):
            problems.append(f"{PAGE_OF.format(command)}: `varve {command}` has no {option}")
    for option in sorted(set(LONG.findall(help_of(program, []))) - common):
        problems.append(f"varve: {option} is not in {PAGE}")
    return checked


def main():
    overview = read_page(PAGE)
    common = set(LONG.findall(overview))
    sources = {path: tree.read(path) for path in tree.files((".cc", ".h"), "src/cli")}
    commands = {name for text in sources.values() for name in COMMAND.findall(text)}
    installed = tree.read("man/meson.build")
    problems, pages = [], {}
    for command in sorted(commands):
        path = PAGE_OF.format(command)
        try:
            pages[command] = read_page(path)
        except FileNotFoundError:
            problems.append(f"{path}: the page of `varve {command}` is missing")
            continue
        check_sections(command, pages[command], problems)
        if path.removeprefix("man/") not in installed:
            problems.append(f"man/meson.build: {path} is not installed")
        if f"varve-{command} (1)" not in overview:
            problems.append(f"{PAGE}: the list has no varve-{command}(1)")
    checked = len(commands) + check_sources(sources, pages, common, problems)
    if len(sys.argv) > 1:
        checked += check_help(sys.argv[1], pages, common, problems)
    checked += check_registries(problems)
    tree.finish("man pages and program agree", checked, problems)


if __name__ == "__main__":
    main()
