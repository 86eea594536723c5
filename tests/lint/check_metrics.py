#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Metrics are declared once, have names and helps by the rules, and docs/METRICS.md lists them.

check_lint.py shows that the check can fail.
"""

import re

import tree

PAGE = "docs/METRICS.md"
# A declaration, in one piece: the function of base::Metrics, the name and the help.
DECLARED = re.compile(r'\.(counter|gauge|histogram)\(\s*"([^"]*)",\s*"((?:[^"\\]|\\.)*)"')
CALL = re.compile(r'\.(?:counter|gauge|histogram)\(')
NAME = re.compile(r"varve_[a-z]+(?:_[a-z0-9]+)+$")
ENDINGS = {"counter": "_total", "histogram": "_seconds"}


def declarations(path, text):
    """(path, kind, name, help) of each metric that a source declares."""
    for kind, name, words in DECLARED.findall(text):
        yield path, kind, name, words


def source_problems(path, text):
    """Metrics that are not declared by the rules."""
    if len(CALL.findall(text)) != len(DECLARED.findall(text)):
        yield f"{path}: declare a metric by its name and its help, as literals"
    for _, kind, name, words in declarations(path, text):
        if not NAME.match(name):
            yield f"{path}: {name} is no name of a metric"
        if kind in ENDINGS and not name.endswith(ENDINGS[kind]):
            yield f"{path}: a {kind} ends in {ENDINGS[kind]}: {name}"
        if kind != "counter" and name.endswith("_total"):
            yield f"{path}: only a counter ends in _total: {name}"
        if not re.match(r"[A-Z].*\.$", words) or len(words) > 120:
            yield f"{path}: the help of {name} is no sentence of at most 120 characters"


def page_problems(declared, rows):
    """Differences between the declared metrics and the rows of the page: name, kind, meaning."""
    listed = {}
    for row in rows:
        name = row[0].strip("`").split("{")[0]
        if name in listed:
            yield f"{PAGE}: {name} comes twice"
        listed[name] = row[1:]
    seen = {}
    for path, kind, name, words in declared:
        if name in seen:
            yield f"{path}: {seen[name]} declares {name} too"
        seen[name] = path
        if listed.get(name) != [kind, words]:
            yield f"{PAGE}: no row is | `{name}` | {kind} | {words} |"
    for name in listed:
        if name not in seen:
            yield f"{PAGE}: no source declares {name}"
    if list(listed) != sorted(listed):
        yield f"{PAGE}: the metrics are not in the order of their names"


def main():
    problems, declared = [], []
    for path in tree.files(tree.CODE_SUFFIXES, "src"):
        if path.startswith("src/base/metrics."):
            continue
        text = tree.read(path)
        problems += source_problems(path, text)
        declared += declarations(path, text)
    problems += page_problems(declared, tree.table(PAGE, "## The metrics"))
    tree.finish("metrics follow the rules and are documented", len(declared), problems)


if __name__ == "__main__":
    main()
