#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Comments repeat the noun: few words that only stand for one, in each file.

usage: check_prose.py [FILE…]    prints what each file has, over the limit or not
"""

import re
import sys

import tree

STAND_INS = frozenset(("it its one ones this these that those what which who whoever they them their "
                       "other others such").split())
PER_HUNDRED_MAX = 4.5
# All tests are to come; these have no file above the limit.
FOLDERS = ("include", "src", "examples", "tests/unit/base", "tests/unit/cli", "tests/unit/io", "tests/unit/parity",
           "tests/unit/series", "tests/unit/web")
# A shorter text says too little for a share.
WORDS_MIN = 40
COMMENT = re.compile(r"//+/?<?\s?(.*)$")
WORD = re.compile(r"[A-Za-z']+")


def words(text):
    """The words of all comments of a source, in lower case."""
    found = []
    for line in text.splitlines():
        match = COMMENT.search(line)
        if match and "SPDX" not in line and "http" not in line:
            found += WORD.findall(match.group(1).lower())
    return found


def share(text):
    """(words that stand for a noun, words) of a source's comments."""
    found = words(text)
    return sum(word in STAND_INS for word in found), len(found)


def is_problem(text):
    count, of = share(text)
    return of >= WORDS_MIN and 100 * count > PER_HUNDRED_MAX * of


def main():
    if len(sys.argv) > 1:
        for path in sys.argv[1:]:
            count, of = share(tree.read(path))
            print(f"{path}: {count} of {of} words, {100 * count / max(of, 1):.1f} in 100"
                  f"{', too many' if is_problem(tree.read(path)) else ''}")
        return
    paths = [path for folder in FOLDERS for path in tree.files(tree.CODE_SUFFIXES, folder)]
    problems = []
    for path in paths:
        if is_problem(tree.read(path)):
            count, of = share(tree.read(path))
            problems.append(f"{path}: {count} of {of} words of comments stand for a noun, more than "
                            f"{PER_HUNDRED_MAX} in 100: repeat the noun")
    tree.finish("comments repeat the noun", len(paths), problems)


if __name__ == "__main__":
    main()
