#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-format 14 would change nothing. Skipped where it is not installed."""

import os
import shutil
import subprocess
import sys

import tree


def main():
    tool = shutil.which("clang-format-14")
    if not tool:
        print("skipped: clang-format-14 is not installed; Debian 12 has it")
        sys.exit(77)
    paths = tree.files(tree.CODE_SUFFIXES)
    run = subprocess.run([tool, "--dry-run", "-Werror", *paths], cwd=tree.ROOT,
                         stderr=subprocess.PIPE, text=True, check=False)
    problems = [line for line in run.stderr.splitlines() if " error: " in line]
    if run.returncode and not problems:
        problems = [run.stderr or f"{os.path.basename(tool)} ended with {run.returncode}"]
    tree.finish("clang-format would change nothing", len(paths), problems)


if __name__ == "__main__":
    main()
