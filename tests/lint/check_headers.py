#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Headers have `#pragma once` and a reader; sources are built and named after their class's header.

Public headers include only public and standard headers, and name the errors of their functions.
check_lint.py shows that the checks of names and of public headers can fail.
"""

import os
import re

import tree

CLASS = re.compile(r"^(?:class|struct)\s+(?:\[\[\w+\]\]\s+)?(\w+)(?:\s+final)?\s*(?:$|[:{])", re.M)
MEMBER = re.compile(r"^(?:[\w:<>,*&\[\] ]+\s[*&]*)?(\w+)::~?\w+\(", re.M)
# A header of the standard library has no suffix.
STANDARD = re.compile(r"^[a-z_0-9]+$")
RETURNS_RESULT = re.compile(r"^\s*(?:\[\[nodiscard\]\]\s*)?(?:(?:virtual|static)\s+)*Result<.*?\b(\w+)\(")
DOCSTRING_LINE = re.compile(r"^\s*///(?!<)")
ERRORS_LINE = re.compile(r"^\s*/// Errors: \S")


def public_header_problems(path, text):
    """Includes that an installed header must not have, and functions without an "Errors:" line."""
    for match in tree.INCLUDE.finditer(text):
        quoted, target = match.group(1) == '"', match.group(2)
        if not (target.startswith("varve/") if quoted else STANDARD.match(target)):
            yield f"{path}: {target} is neither a public header nor one of the standard library"
    lines = text.split("\n")
    for number, line in enumerate(lines):
        function = RETURNS_RESULT.match(line + (lines + [""])[number + 1].strip())
        if not function:
            continue
        first = number
        while first > 0 and DOCSTRING_LINE.match(lines[first - 1]):
            first -= 1
        if not any(ERRORS_LINE.match(words) for words in lines[first:number]):
            yield f"{path}:{number + 1}: {function.group(1)}() has no line `/// Errors: ...`"


DECLARED = re.compile(r"^(?:class|struct|enum class)\s+(\w+)\s*(?::\s*[\w:]+\s*)?;", re.M)
DEFINED = re.compile(r"^\s*(?:class|struct|enum class|enum|union)\s+(?:\[\[\w+\]\]\s*)?(\w+)[^;{}()]*\{", re.M)
# Types that installed headers only declare, each with the reason.
OPAQUE = {
    "Target": "copy_target() and connect_target() make it, and copy_versions() uses it",
}


def unknown_types(texts, opaque):
    """Types that installed headers declare, and none of them defines. `texts`: path → text."""
    defined = {name for text in texts.values() for name in DEFINED.findall(text)}
    for path, text in texts.items():
        for name in DECLARED.findall(text):
            if name not in defined and name not in opaque:
                yield f"{path}: no installed header defines {name}"


def is_named_after(source, header):
    """`a/foo.cc` and `a/foo_part.cc` belong to `a/foo.h`, and to `a/foo_impl.h`."""
    stem = re.sub(r"_impl$", "", os.path.splitext(header)[0])
    name = os.path.splitext(source)[0]
    return name == stem or name.startswith(stem + "_")


def twin_problems(texts):
    """Sources that define members of a class from a header of another name. `texts`: path → text.

    A source with a header of its own name may define members of other classes too. So may a
    command of the CLI: cmd_NAME.cc is one file a command.
    """
    declared = {}
    for path, text in texts.items():
        if path.endswith(".h"):
            for name in CLASS.findall(text):
                declared[(os.path.dirname(path), name)] = path
    for path, text in texts.items():
        if not path.endswith(".cc") or os.path.splitext(path)[0] + ".h" in texts:
            continue
        if os.path.basename(path).startswith("cmd_"):
            continue
        folder = os.path.dirname(path)
        owners = {declared[(folder, name)] for name in MEMBER.findall(text)
                  if (folder, name) in declared}
        if owners and not any(is_named_after(path, header) for header in owners):
            yield f"{path}: name it after {', '.join(sorted(owners))}"


def main():
    headers = [p for p in tree.files((".h",)) if p.split("/")[0] in ("include", "src")]
    included = set()
    for path in tree.files(tree.CODE_SUFFIXES):
        own = os.path.splitext(path)[0]
        for _, quoted, target in tree.includes(path):
            header = ("include/" if target.startswith("varve/") else "src/") + target
            # A header that only its own source includes has no reader.
            if quoted and os.path.splitext(header)[0] != own:
                included.add(header)
    problems = []
    for path in headers:
        if "\n#pragma once\n" not in tree.read(path):
            problems.append(f"{path}: no #pragma once")
        if path not in included:
            problems.append(f"{path}: no other file includes this header")
        if path.startswith("include/"):
            problems.extend(public_header_problems(path, tree.read(path)))
    problems.extend(unknown_types({p: tree.read(p) for p in headers if p.startswith("include/")}, OPAQUE))
    sources = [p for p in tree.files((".cc",)) if p.split("/")[0] in ("src", "tests", "bench")]
    builds = {}
    for path in sources:
        # A folder without a build file is listed by the nearest one above it.
        folder = os.path.dirname(path)
        while not os.path.exists(os.path.join(tree.ROOT, folder, "meson.build")):
            folder = os.path.dirname(folder)
        build = os.path.join(folder, "meson.build")
        text = builds.setdefault(build, tree.read(build))
        if f"{os.path.relpath(path, folder)}'" not in text:
            problems.append(f"{path}: not in {build}")
    problems.extend(twin_problems({p: tree.read(p) for p in tree.files(tree.CODE_SUFFIXES, "src")}))
    tree.finish("headers are used, sources are built", len(headers) + len(sources), problems)


if __name__ == "__main__":
    main()
