# SPDX-License-Identifier: Apache-2.0
"""The project's files, and how a lint test reports. Used by the checks beside it."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CODE_SUFFIXES = (".h", ".cc")
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)


def files(suffixes=None, below=""):
    """Paths of the project's files, relative to its root, sorted."""
    found = []
    for folder, names, leaves in os.walk(os.path.join(ROOT, below)):
        names[:] = sorted(n for n in names if not (
            n in (".git", ".cache", "__pycache__", "subprojects") or n.startswith("build")))
        for leaf in leaves:
            if suffixes is None or leaf.endswith(suffixes):
                found.append(os.path.relpath(os.path.join(folder, leaf), ROOT))
    return sorted(found)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def includes(path):
    """(line number, True if quoted, target) of each #include."""
    text = read(path)
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start(2)) + 1, match.group(1) == '"', match.group(2)


def table(document, heading):
    """Rows of the first Markdown table below a heading, as lists of stripped cells."""
    text = read(document)
    start = text.find(heading)
    if start < 0:
        return []
    rows = []
    for line in text[start:].splitlines()[1:]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            break
    return rows[2:]


def finish(subject, checked, problems):
    """Prints the outcome and ends the program."""
    for problem in problems:
        print(problem)
    if not checked:
        problems = ["nothing was checked"]
        print(f"{subject}: nothing was checked")
    if problems:
        print(f"{subject}: {len(problems)} problem(s)")
        sys.exit(1)
    print(f"ok - {subject}: {checked} checked")
    sys.exit(0)
