#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No source casts an interface to the class behind the interface: an interface offers its parts by functions.

check_lint.py shows that the check can fail.
"""

import re

import tree

# `dynamic_cast` to any class, and `static_cast` to a class that implements a public interface.
CAST = re.compile(r"\bdynamic_cast\s*<|\bstatic_cast\s*<\s*(?:const\s+)?[\w:]*Impl\b")
COMMENT = re.compile(r"//[^\n]*")
EXCEPTIONS = {
    "src/restore/window_engine.cc": "the engine made the cache, and asks one kind of cache for places",
    "src/version/open_names.cc": "clones share chunks only with a version of the same program",
    "src/version/open_version_file.cc": "clones share chunks only with a file of the same program",
    "src/version/sealed_version.cc": "compares chunk ids only with a version of the same program",
}


def problems_of(path, text, exceptions=EXCEPTIONS):
    if path in exceptions:
        return
    for match in CAST.finditer(COMMENT.sub(lambda comment: " " * len(comment.group()), text)):
        line = text.count("\n", 0, match.start()) + 1
        yield f"{path}:{line}: casts an interface: give the interface a function for that part"


def main():
    paths = [path for path in tree.files(tree.CODE_SUFFIXES) if path.split("/")[0] in ("include", "src", "examples")]
    problems = []
    for path in paths:
        problems += problems_of(path, tree.read(path))
    problems += [f"check_casts.py: {path} casts nothing" for path in EXCEPTIONS
                 if path not in paths or not list(problems_of(path, tree.read(path), {}))]
    tree.finish("interfaces are not cast", len(paths), problems)


if __name__ == "__main__":
    main()
