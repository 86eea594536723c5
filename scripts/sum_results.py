#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sums Meson test logs and prints `N passed, N failed` as the last line.

A gtest program counts each of its test cases, a script each of its `ok - ` lines; any other
program counts as one test. A program that ends badly counts at least one failure.
"""

import json
import re
import sys

GTEST_RAN = re.compile(r"^\[==========\] (\d+) tests? from .* ran\.", re.M)
GTEST_FAILED = re.compile(r"^\[  FAILED  \] (\d+) tests?, listed below", re.M)
GTEST_SKIPPED = re.compile(r"^\[  SKIPPED \] (\d+) tests?, listed below", re.M)
SCRIPT_OK = re.compile(r"^ok - ", re.M)


def count(pattern, text):
    match = pattern.search(text)
    return int(match.group(1)) if match else 0


def tally(record):
    """(passed, failed, skipped) of one program of the log."""
    result = record["result"]
    text = record.get("stdout", "")
    if result == "SKIP":
        return 0, 0, 1
    failed = skipped = 0
    ran = count(GTEST_RAN, text)
    if ran:
        failed = count(GTEST_FAILED, text)
        skipped = count(GTEST_SKIPPED, text)
        passed = ran - failed - skipped
    else:
        passed = len(SCRIPT_OK.findall(text))
    if result in ("OK", "EXPECTEDFAIL"):
        return max(passed, 0 if ran else 1), failed, skipped
    return passed, max(failed, 1), skipped


def main():
    records = []
    for path in sys.argv[1:]:
        try:
            with open(path, encoding="utf-8") as log:
                found = [json.loads(line) for line in log if line.strip()]
        except OSError as error:
            print(f"sum_results: {error}", file=sys.stderr)
            found = []
        if not found:
            print(f"sum_results: no test ran for {path}", file=sys.stderr)
            print("0 passed, 1 failed")
            return 1
        records += found
    sums = [0, 0, 0]
    for record in records:
        for place, number in enumerate(tally(record)):
            sums[place] += number
        if record["result"] not in ("OK", "EXPECTEDFAIL"):
            print(f"{record['result']}: {record['name']}")
    passed, failed, skipped = sums
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
