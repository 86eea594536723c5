#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SPDX lines, sizes of files and lines, words and forms of comments that must not stay in the tree.

check_lint.py shows that these checks can fail.
"""

import os
import re

import tree

LINES_MAX = 450
COLUMNS_MAX = 100
SPDX = "SPDX-License-Identifier: Apache-2.0"
# Split, so that this file passes its own check.
BANNED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b|/wor" r"k/")
# Archaic and private words: docs/GLOSSARY.md and plain English have the others. `--anew` is an
# option that scripts may use.
BANNED_PROSE = re.compile(
    r"(?<!-)\banew\b|\b(?:whoever|whomever|somebody|in the place of|to be had)\b"
    r"|\b(?:let|lets|letting) (?:it |them )?be\b|\bmend(?:s|ed|ing|er|ers)?\b|\bcrews?\b", re.I)
# This folder names the words in order to find them.
MAY_NAME_WORDS = "tests/lint/"
# A sentence of a comment that begins so hides its actor. A question may.
WHO_SENTENCE = re.compile(r"(?:^|[.!?:;] )((?:Who|Whom|Whose|Whoever|What|Whatever)\b[^.!?]*)(\??)")
MEMBER_OF = re.compile(r"///< (?:Of|That)\b")
COMMENT = re.compile(r"^\s*///?(?!/|<)\s?(.*)")
RULE = re.compile(r"(?<![\w-])O([0-9]{1,2})\b")
RULE_OF = re.compile(r"^- \*\*O([0-9]+)\*\*", re.M)
RULES = "docs/ORDERING.md"
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
NAMED_FILE = re.compile(r"`([a-z_0-9]+/[a-z_0-9/]+\.(?:h|cc|py|sh|md))`")
ARCHITECTURE = "docs/ARCHITECTURE.md"
ARCHITECTURE_LINES_MAX = 215
# One file to copy to a rescue medium, short enough to be read beside docs/FORMAT.md.
READER = "rescue/varve-read.py"
READER_LINES_MAX = 560
EXAMPLES = "examples/"
EXAMPLE_LINES_MAX = 80
DECISIONS = "docs/decisions/"
SOURCE_SUFFIXES = (".h", ".cc", ".py", ".sh", "meson.build")
BYTES = ("tests/golden/", "tests/fuzz/corpus/")
NO_SPDX_NAMES = ("LICENSE", ".gitignore", ".clang-format",
                 ".clang-tidy", "meson_options.txt")


def is_text(path):
    with open(os.path.join(tree.ROOT, path), "rb") as file:
        return b"\0" not in file.read(4096)


def needs_spdx(path, text):
    if os.path.basename(path) in NO_SPDX_NAMES:
        return False
    return path.endswith(SOURCE_SUFFIXES) or text.startswith("#!")


def comments(lines):
    """(number of the first line, text) of each run of `//` or `///` lines."""
    first, words = 0, []
    for number, line in enumerate([*lines, ""], 1):
        found = COMMENT.match(line)
        if found and SPDX not in line:
            first = first or number
            words.append(found.group(1))
        elif words:
            yield first, " ".join(words)
            first, words = 0, []


def prose_problems(path, lines):
    """Words and forms of comments that hide the actor, or that a reader has to look up."""
    for number, line in enumerate(lines, 1):
        found = BANNED_PROSE.search(line)
        if found and not path.startswith(MAY_NAME_WORDS):
            yield f"{path}:{number}: `{found.group(0)}`: use a common word"
        if path.endswith(tree.CODE_SUFFIXES) and MEMBER_OF.search(line):
            yield f"{path}:{number}: a member's comment is a noun phrase that is complete by itself"
    if path.endswith(tree.CODE_SUFFIXES):
        for number, words in comments(lines):
            for sentence, question in WHO_SENTENCE.findall(words):
                if not question:
                    yield f"{path}:{number}: `{sentence[:30]}`: name the actor, or begin with a verb"


def rule_problems(path, text, rules):
    """Citations of ordering rules that do not exist."""
    for match in RULE.finditer(text):
        if int(match.group(1)) not in rules:
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: {match.group(0)} is no rule of {RULES}"


def link_problems(path, text, exists):
    """Links of a page, and sources that it names, that lead nowhere."""
    if not path.endswith(".md"):
        return
    for target in LINK.findall(text):
        if not exists(os.path.normpath(os.path.join(os.path.dirname(path), target))):
            yield f"{path}: the link {target} leads nowhere"
    for name in NAMED_FILE.findall(text):
        if not any(exists(folder + name) for folder in ("src/", "")):
            yield f"{path}: there is no file {name}"


def order_problems(rules):
    if rules != list(range(1, len(rules) + 1)):
        yield f"{RULES}: the rules are not numbered from O1 in reading order"


def index_problems(pages, index):
    """Decisions whose index does not list them, or whose number has not three digits. `pages`: names of the pages."""
    for page in pages:
        if not re.match(r"[0-9]{3}-", page):
            yield f"{DECISIONS}{page}: a number has three digits"
        if f"]({page})" not in index:
            yield f"{DECISIONS}{page}: {DECISIONS}README.md does not list it"


def problems_of(path, text):
    lines = text.split("\n")
    if needs_spdx(path, text) and not any(SPDX in line for line in lines[:2]):
        yield f"{path}:1: no line `{SPDX}`"
    if text and not text.endswith("\n"):
        yield f"{path}: the last line does not end"
    for number, line in enumerate(lines, 1):
        found = BANNED.search(line)
        if found:
            yield f"{path}:{number}: `{found.group(0)}` must not stay"
        if line != line.rstrip():
            yield f"{path}:{number}: blanks at the end of the line"
    yield from prose_problems(path, lines)
    if path == ARCHITECTURE and len(lines) - 1 > ARCHITECTURE_LINES_MAX:
        yield f"{path}: {len(lines) - 1} lines, at most {ARCHITECTURE_LINES_MAX}"
    lines_max = EXAMPLE_LINES_MAX if path.startswith(EXAMPLES) else LINES_MAX
    lines_max = READER_LINES_MAX if path == READER else lines_max
    if path.endswith(SOURCE_SUFFIXES) and len(lines) - 1 > lines_max:
        yield f"{path}: {len(lines) - 1} lines, at most {lines_max}: split it"
    if path.endswith(tree.CODE_SUFFIXES):
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS_MAX:
                yield f"{path}:{number}: {len(line)} columns, at most {COLUMNS_MAX}"


def main():
    rules = [int(number) for number in RULE_OF.findall(tree.read(RULES))]
    problems, checked = list(order_problems(rules)), 0
    for path in tree.files():
        # LICENSE is not ours to edit; images and fuzzers' inputs are bytes, whatever they look like.
        if path == "LICENSE" or path.startswith(BYTES) or not is_text(path):
            continue
        checked += 1
        text = tree.read(path)
        problems.extend(problems_of(path, text))
        if not path.startswith(MAY_NAME_WORDS):
            problems.extend(rule_problems(path, text, rules))
        problems.extend(link_problems(
            path, text, lambda name: os.path.exists(os.path.join(tree.ROOT, name))))
    pages = [os.path.basename(path) for path in tree.files((".md",), DECISIONS) if not path.endswith("README.md")]
    problems.extend(index_problems(pages, tree.read(DECISIONS + "README.md")))
    tree.finish("text keeps the house rules", checked, problems)


if __name__ == "__main__":
    main()
