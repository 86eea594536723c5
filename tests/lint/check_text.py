#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SPDX lines, sizes of files and lines, words that must not stay in the tree."""

import os
import re

import tree

LINES_MAX = 450
COLUMNS_MAX = 100
SPDX = "SPDX-License-Identifier: Apache-2.0"
# Split, so that this file passes its own check.
BANNED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b|/wor" r"k/")
SOURCE_SUFFIXES = (".h", ".cc", ".py", ".sh", "meson.build")
BYTES = ("tests/golden/", "tests/fuzz/corpus/")
NO_SPDX_NAMES = ("packages.txt", "packages-tidy.txt", "LICENSE", ".gitignore", ".clang-format",
                 ".clang-tidy", "meson_options.txt")


def is_text(path):
    with open(os.path.join(tree.ROOT, path), "rb") as file:
        return b"\0" not in file.read(4096)


def needs_spdx(path, text):
    if os.path.basename(path) in NO_SPDX_NAMES:
        return False
    return path.endswith(SOURCE_SUFFIXES) or text.startswith("#!")


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
    if path.endswith(SOURCE_SUFFIXES) and len(lines) - 1 > LINES_MAX:
        yield f"{path}: {len(lines) - 1} lines, at most {LINES_MAX}: split it"
    if path.endswith(tree.CODE_SUFFIXES):
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS_MAX:
                yield f"{path}:{number}: {len(line)} columns, at most {COLUMNS_MAX}"


def main():
    problems, checked = [], 0
    for path in tree.files():
        # LICENSE is not ours to edit; images and fuzzers' inputs are bytes, whatever they look like.
        if path == "LICENSE" or path.startswith(BYTES) or not is_text(path):
            continue
        checked += 1
        problems.extend(problems_of(path, tree.read(path)))
    tree.finish("text keeps the house rules", checked, problems)


if __name__ == "__main__":
    main()
