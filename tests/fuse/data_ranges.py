# SPDX-License-Identifier: Apache-2.0
"""Finds the data ranges of a file by lseek."""

import errno
import os


def data_ranges(fd):
    """Yields (start, end) of each range of data."""
    at, size = 0, os.fstat(fd).st_size
    while at < size:
        try:
            start = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        at = os.lseek(fd, start, os.SEEK_HOLE)
        if at <= start:
            raise RuntimeError(f"SEEK_HOLE went from {start} to {at}")
        yield start, at
