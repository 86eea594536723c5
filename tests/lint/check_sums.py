#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The summary of a test run counts each case, names each failure, and gives the reason of each skip."""

import json
import pathlib
import subprocess
import sys
import tempfile

SUMMARY = pathlib.Path(__file__).parents[2] / "scripts/sum_results.py"
GTEST = """[ RUN      ] Cipher.Fast
../tests/unit/cipher_test.cc:61: Skipped
no AES instructions

[  SKIPPED ] Cipher.Fast (0 ms)
[ RUN      ] Cipher.Silent
../tests/unit/cipher_test.cc:70: Skipped

[  SKIPPED ] Cipher.Silent (0 ms)
[       OK ] Cipher.Slow (1 ms)
[==========] 3 tests from 1 test suite ran. (1 ms total)
[  PASSED  ] 1 test.
[  SKIPPED ] 2 tests, listed below:
[  SKIPPED ] Cipher.Fast
[  SKIPPED ] Cipher.Silent
"""
# ((result, output) of each program, the wanted lines, the wanted exit status)
RUNS = [
    ([("OK", "ok - a\nok - b\n"), ("OK", "")], ["3 passed, 0 failed"], 0),
    ([("OK", "ok - a\n"), ("SKIP", "ok - b\nskipped: no fish\nok - c\nskipped: no zsh\n")],
     ["SKIP: t1: no fish", "SKIP: t1: no zsh", "3 passed, 0 failed, 2 skipped"], 0),
    ([("OK", "ok - a\n"), ("SKIP", "")], ["SKIP: t1: no reason given", "1 passed, 0 failed, 1 skipped"], 0),
    ([("OK", GTEST)], ["SKIP: t0: Cipher.Fast: no AES instructions", "SKIP: t0: Cipher.Silent: no reason given",
                       "1 passed, 0 failed, 2 skipped"], 0),
    ([("FAIL", "ok - a\nskipped: no fish\nFAILED: b\n"), ("TIMEOUT", "")],
     ["FAIL: t0", "TIMEOUT: t1", "1 passed, 2 failed"], 1),
    ([("SKIP", "skipped: no root\n")], ["SKIP: t0: no root", "0 passed, 0 failed, 1 skipped"], 1),
]


def main():
    failed = 0
    for programs, wanted, status in RUNS:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as log:
            for number, (result, text) in enumerate(programs):
                log.write(json.dumps({"name": f"t{number}", "result": result, "stdout": text}) + "\n")
            log.flush()
            run = subprocess.run([sys.executable, SUMMARY, log.name], capture_output=True, text=True, check=False)
        if (run.stdout.splitlines(), run.returncode) != (wanted, status):
            print(f"{programs} gives {run.returncode} {run.stdout}{run.stderr}")
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
