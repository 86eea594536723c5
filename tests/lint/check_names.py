#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One private name has one meaning in a room and in a program, so that several sources can be compiled as one.

Builds do so by default (unity in meson.build), which costs half of the time. check_lint.py shows that the
check can fail.
"""

import collections
import os
import re

import tree

TYPE = re.compile(r"(?:struct|class|enum class) (\w+)|using (\w+) =")
CONSTANT = re.compile(r"(?:constexpr|const|thread_local|static) [^=({;]*?\b(\w+)(?:\[\w*\])? ?[={;]")
LOCAL = re.compile(r" +constexpr [^=({;]*?\b(k[A-Z]\w*)(?:\[\w*\])? ?[={;]")
LIST = re.compile(r"\[([^\[\]]*)\]")
SOURCE = re.compile(r"'([^']+\.cc)'")
FUNCTION = re.compile(r"(?:\w[\w:<>,*& ]*[ *&])(\w+\([^)]*\)?)")
PARAMETER_NAME = re.compile(r"[ *&]\w+(?=[,)]|$)")


def private_names(text):
    """The names (functions with their parameters) in the anonymous namespaces of a source."""
    inside = False
    for line in text.splitlines():
        if line == "namespace {":
            inside = True
        elif line == "}  // namespace":
            inside = False
        elif inside and line[:1].isalpha():
            for pattern in (TYPE, CONSTANT, FUNCTION):
                match = pattern.match(line)
                if match:
                    name = next(group for group in match.groups() if group)
                    # Parameters of the same types under other names are no other function.
                    yield PARAMETER_NAME.sub(lambda found: found.group()[0].strip(), name)
                    break


def local_constants(text):
    """The constants in functions of a source."""
    return {match.group(1) for line in text.splitlines() if (match := LOCAL.match(line))}


def collisions(texts, room_of=os.path.dirname):
    """Private names that another source or a header of the room declares, and constants of functions that
    hide a private name, of which clang warns. `texts`: path → text."""
    users = collections.defaultdict(set)
    shared = collections.defaultdict(set)
    locals_of = {}
    for path, text in texts.items():
        room = room_of(path)
        if path.endswith(".cc"):
            for name in private_names(text):
                users[(room, name)].add(path)
            locals_of[path] = local_constants(text)
        elif path.endswith(".h"):
            for line in text.splitlines():
                match = TYPE.match(line) or CONSTANT.match(line.removeprefix("inline "))
                if match:
                    shared[(room, next(group for group in match.groups() if group))].add(path)
    for key, headers in shared.items():
        if key in users:
            users[key] |= headers
    for (_, name), paths in users.items():
        if len(paths) > 1:
            yield f"{min(paths)}: {', '.join(sorted(paths - {min(paths)}))} declares {name} too"
    for path, names in locals_of.items():
        for name in sorted(names):
            hidden = users.get((room_of(path), name)) or shared.get((room_of(path), name))
            if hidden:
                yield f"{path}: its local {name} hides that of {', '.join(sorted(hidden))}"


def programs(folder, build_file):
    """The lists of two or more sources in a build file, each as paths: programs of several sources."""
    for match in LIST.finditer(build_file):
        sources = SOURCE.findall(match.group(1))
        if len(sources) > 1:
            yield [os.path.normpath(os.path.join(folder, source)) for source in sources]


def collisions_in_programs(build_files, text_of):
    """As collisions(), for the programs in build files. `build_files`: folder → text."""
    for folder, build_file in build_files.items():
        for sources in programs(folder, build_file):
            yield from collisions({source: text_of(source) for source in sources}, lambda _: sources[0])


def main():
    texts = {path: tree.read(path) for below in ("src", "tests/unit", "tests/fuzz")
             for path in tree.files((".h", ".cc"), below)}
    build_files = {os.path.dirname(path): tree.read(path) for below in ("tests", "bench")
                   for path in tree.files(("meson.build",), below)}
    problems = set(collisions(texts)) | set(collisions_in_programs(build_files, tree.read))
    tree.finish("private names are unique in a room and in a program", len(texts), sorted(problems))


if __name__ == "__main__":
    main()
