#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sums Meson test logs and prints `N passed, N failed[, N skipped]` as the last line.

A gtest program counts each of its test cases, a script each of its `ok - ` lines and each of its
`skipped: ` lines; any other program counts as one test. A program that ends badly counts at least
one failure. The lines before the last one name what failed, and what was skipped and why.
"""

import json
import re
import sys

GTEST_RAN = re.compile(r"^\[==========\] (\d+) tests? from .* ran\.", re.M)
GTEST_FAILED = re.compile(r"^\[  FAILED  \] (\d+) tests?, listed below", re.M)
GTEST_SKIPPED = re.compile(r"^\[  SKIPPED \] (\d+) tests?, listed below", re.M)
# gtest prints the place and the reason of a skip before the line with the name of the case.
GTEST_SKIP = re.compile(
    r"^(?:\S+:\d+: Skipped\n(?P<reason>(?:(?!\[).*\n)*?)\s*)?\[  SKIPPED \] (?P<case>\S+) \(\d+ ms\)", re.M)
SCRIPT_OK = re.compile(r"^ok - ", re.M)
SCRIPT_SKIPPED = re.compile(r"^skipped: (.*)", re.M)
NO_REASON = "no reason given"


def count(pattern, text):
    match = pattern.search(text)
    return int(match.group(1)) if match else 0


def skips(record):
    """The reasons of one program of the log, one for each test case or part that it skipped."""
    text = record.get("stdout", "")
    if count(GTEST_RAN, text):
        return [f"{match['case']}: {' '.join((match['reason'] or '').split()) or NO_REASON}"
                for match in GTEST_SKIP.finditer(text)]
    reasons = SCRIPT_SKIPPED.findall(text)
    return reasons or [NO_REASON] if record["result"] == "SKIP" else []


def tally(record):
    """(passed, failed, skipped) of one program of the log."""
    result = record["result"]
    text = record.get("stdout", "")
    if result == "SKIP":
        return len(SCRIPT_OK.findall(text)), 0, len(skips(record))
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
    for record in records:
        for reason in skips(record):
            print(f"SKIP: {record['name']}: {reason}")
    for record in records:
        if record["result"] not in ("OK", "EXPECTEDFAIL", "SKIP"):
            print(f"{record['result']}: {record['name']}")
    passed, failed, skipped = sums
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
