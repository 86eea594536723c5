# SPDX-License-Identifier: Apache-2.0
"""Copies of repositories inside one file system, and the state of a folder: the module of tests that copy often."""

import os
import shutil


def copy_file(source, target):
    """Copies a file. The copy of a repository shares the reserve's 8 MB, which Varve removes but never changes."""
    if os.path.basename(source) == "reserve":
        os.link(source, target)
    else:
        shutil.copy2(source, target)
    return target


def copy_repository(source, target):
    """Copies the folder of a repository, with times and symbolic links, to a new folder."""
    shutil.copytree(source, target, symlinks=True, copy_function=copy_file)
