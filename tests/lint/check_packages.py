#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/packages-build.txt names what debian/control names. check_lint.py shows that the check can fail."""

import re

import tree

# A Debian package is built with a compiler at hand, and recommends the programs that mount.
OUTSIDE = {"g++", "fuse3", "debhelper-compat"}
NAME = re.compile(r"[a-z0-9][a-z0-9.+-]+")


def listed(text):
    """The names in a list of packages."""
    return {match.group() for line in text.splitlines() if (match := NAME.match(line))}


def build_depends(control):
    """The names in the field Build-Depends."""
    field = re.search(r"^Build-Depends:(.*(?:\n .*)*)", control, re.M).group(1)
    return {match.group() for part in field.split(",") if (match := NAME.search(part))}


def differences(text, control):
    """The names that one of both has alone."""
    for name in sorted((listed(text) ^ build_depends(control)) - OUTSIDE):
        yield f"{name}: only one of scripts/packages-build.txt and debian/control has it"


def main():
    text = tree.read("scripts/packages-build.txt")
    problems = list(differences(text, tree.read("debian/control")))
    tree.finish("packages to build with are those of debian/control", len(listed(text)), problems)


if __name__ == "__main__":
    main()
