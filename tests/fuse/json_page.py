#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the JSON lines of varve with man/varve-json.5.

usage: json_page.py PAGE LINES...   Each file has the lines of one command. Every line must have a known
message_type with the fields of its section and no others; every section and field must appear once.
"""

import json
import re
import sys
from datetime import datetime, timezone

FIELD = re.compile(r'^\.BR (\S+) " \(([^)]*)\)"$')
TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{9})Z")
COUNT = (int, float)
# Not made by the test: a damaged disk, an open pool stream without a series, names that are not UTF-8.
RARE = {"repair_summary.old_catalog", "status_summary.text", "deletion.waiting_for"}


def read_page(path):
    """Returns {message type: {field: (type, optional)}}."""
    messages, present = {}, None
    with open(path, encoding="utf-8") as page:
        for line in page:
            line = line.rstrip("\n")
            if line.startswith(".SS "):
                present = messages.setdefault(line[4:], {})
            elif line.startswith(".SH "):
                present = None
            elif present is not None and (match := FIELD.match(line)):
                kind = match[2].replace(", optional", "")
                present[match[1]] = (kind, match[2].endswith("optional"))
    return messages


def is_kind(value, kind, line, field):
    if kind == "name":
        return isinstance(value, str)
    if kind == "time":
        match = TIME.fullmatch(value) if isinstance(value, str) else None
        seconds = line.get(field + "_unix")
        if not match or not isinstance(seconds, int):
            return False
        there = datetime.strptime(match[1], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
        return int(there.timestamp()) == seconds
    if kind == "bytes":
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if kind == "number":
        return isinstance(value, COUNT) and not isinstance(value, bool)
    if kind == "string":
        return isinstance(value, str)
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "object":
        return isinstance(value, dict)
    of = {"strings": str, "numbers": int, "objects": dict}[kind.removeprefix("list of ")]
    return isinstance(value, list) and all(isinstance(one, of) for one in value)


def faults_of(line, messages):
    kind = line.get("message_type")
    if kind not in messages:
        yield f"the type {kind} is not on the page"
        return
    fields = messages[kind]
    allowed = {"message_type"}
    for name, (value_kind, optional) in fields.items():
        allowed |= {name}
        if value_kind == "time":
            allowed |= {name + "_unix"}
        if value_kind == "name":
            allowed |= {name + "_hex"}
        if name not in line:
            if not optional:
                yield f"{kind} lacks {name}"
        elif not is_kind(line[name], value_kind, line, name):
            yield f"{kind}.{name} is no {value_kind}: {line[name]!r}"
    for name in line.keys() - allowed:
        yield f"{kind}.{name} is not on the page"


def main():
    messages = read_page(sys.argv[1])
    seen, problems, lines = set(), [], 0
    for kind, fields in messages.items():
        for name, (value_kind, _) in fields.items():
            if (value_kind == "bytes") != name.endswith("_bytes"):
                problems.append(f"page: {kind}.{name} is called bytes and is none, or the reverse")
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            for text in file:
                lines += 1
                line = json.loads(text)
                problems += [f"{path}: {fault}" for fault in faults_of(line, messages)]
                seen |= {f"{line.get('message_type')}.{name}" for name in line}
    everything = {f"{kind}.{name}" for kind, fields in messages.items() for name in fields}
    problems += [f"no command printed {name}" for name in sorted(everything - seen - RARE)]
    for problem in problems:
        print(problem)
    if problems or not lines:
        sys.exit(1)
    print(f"{lines} lines of {len(messages)} types agree with the page")


if __name__ == "__main__":
    main()
