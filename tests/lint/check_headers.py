#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every header has `#pragma once` and is included by somebody; every source is built."""

import os

import tree


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
            problems.append(f"{path}: nobody includes this header")
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
    tree.finish("headers are used, sources are built", len(headers) + len(sources), problems)


if __name__ == "__main__":
    main()
