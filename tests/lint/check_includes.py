#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which room includes which: the tables of docs/ARCHITECTURE.md are the rule.

A room sees itself, the rooms of its row, base and include/varve. An outside library is
included only by the rooms of its row. The third table has names of classes and functions that
other files must not use: they use the interface.
"""

import os
import re

import tree

DOCUMENT = "docs/ARCHITECTURE.md"
# Pairs of rooms of which one includes the other, `base` not counted. May only fall.
PAIRS_MAX = 80
WORD = re.compile(r"`([^`]+)`")


def read_rooms():
    """room → what it may include, with `all above` written out."""
    rooms = {}
    for names, allowed, *_ in tree.table(DOCUMENT, "## Who may include whom"):
        for name in WORD.findall(names):
            seen = set(rooms) if "all above" in allowed else set()
            rooms[name] = seen | set(WORD.findall(allowed))
    return rooms


def read_libraries():
    """Prefix of a library's headers → rooms that may include them."""
    return {
        prefix: set(WORD.findall(rooms))
        for prefixes, rooms, *_ in tree.table(DOCUMENT, "## Outside libraries")
        for prefix in WORD.findall(prefixes)
    }


def read_hidden():
    """Name → beginnings of the paths below src/ that may use it."""
    return {
        name: tuple(WORD.findall(places))
        for names, _, places in tree.table(DOCUMENT, "## Classes behind an interface")
        for name in WORD.findall(names)
    }


def hidden_names(path, text, hidden):
    """(line number, name) for each use of a name that the file must not use."""
    below = path.split("/", 1)[1]
    forbidden = [name for name, places in hidden.items() if not below.startswith(places)]
    for number, line in enumerate(text.splitlines(), 1):
        for name in forbidden:
            if re.search(rf"\b{re.escape(name)}", line):
                yield number, name


def find_cycle(rooms):
    """A room that reaches itself through the table, or None."""
    for start in rooms:
        seen, todo = set(), {n for n in rooms[start] if "/" not in n}
        while todo:
            name = todo.pop()
            if name == start:
                return start
            if name not in seen:
                seen.add(name)
                todo |= {n for n in rooms.get(name, set()) if "/" not in n}
    return None


def problem_of(room, target, quoted, rooms, libraries):
    """What is wrong with one #include of a room, or None."""
    if not quoted:
        for prefix, allowed in libraries.items():
            if target.startswith(prefix) and room not in allowed:
                return f"<{target}> belongs to {', '.join(sorted(allowed))}"
        return None
    if target.startswith("varve/"):
        known = os.path.exists(os.path.join(tree.ROOT, "include", target))
        return None if known else f'"{target}" is not in include/'
    if not os.path.exists(os.path.join(tree.ROOT, "src", target)):
        return f'"{target}" is not in src/'
    other = target.split("/")[0]
    if other in (room, "base") or other in rooms[room] or target in rooms[room]:
        return None
    return f"{room} may not include {other} (\"{target}\")"


def main():
    rooms, libraries = read_rooms(), read_libraries()
    hidden = read_hidden()
    problems = []
    if not rooms or not libraries or not hidden:
        problems.append(f"{DOCUMENT}: a table is missing")
    cycle = find_cycle(rooms)
    if cycle:
        problems.append(f"{DOCUMENT}: {cycle} includes itself through the table")
    checked = 0
    pairs = set()
    for path in tree.files(tree.CODE_SUFFIXES, "src"):
        room = path.split("/")[1]
        if room not in rooms:
            problems.append(f"{path}: {room} has no row in {DOCUMENT}")
            continue
        for line, name in hidden_names(path, tree.read(path), hidden):
            problems.append(f"{path}:{line}: {name} is named outside of its places in {DOCUMENT}")
        for line, quoted, target in tree.includes(path):
            checked += 1
            wrong = problem_of(room, target, quoted, rooms, libraries)
            if wrong:
                problems.append(f"{path}:{line}: {wrong}")
            if quoted and target.split("/")[0] not in (room, "base", "varve"):
                pairs.add((room, target.split("/")[0]))
    if len(pairs) != PAIRS_MAX:
        problems.append(f"{len(pairs)} pairs of rooms include each other, and PAIRS_MAX is {PAIRS_MAX}: "
                        "let fewer rooms know each other, or lower PAIRS_MAX")
    for path in tree.files(tree.CODE_SUFFIXES, "include"):
        for line, quoted, target in tree.includes(path):
            checked += 1
            if quoted and not target.startswith("varve/"):
                problems.append(f"{path}:{line}: the public API includes only itself")
    tree.finish("includes follow the table", checked, problems)


if __name__ == "__main__":
    main()
