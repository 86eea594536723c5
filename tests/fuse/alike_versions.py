# SPDX-License-Identifier: Apache-2.0
# Makes versions of a tree of which much changes a little each time: rows of a dump, records of a file of pages, and
# sources. Usage: alike_versions.py DIR COUNT
import os
import random
import sys

folder, count = sys.argv[1], int(sys.argv[2])
rng = random.Random(5)
words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(2000)]


def text(n):
    return " ".join(rng.choices(words, k=n))


rows = [(i, text(3), text(rng.randint(5, 40)), rng.randrange(1000)) for i in range(3000)]
pages = [bytearray(rng.randbytes(4096)) for _ in range(150)]
sources = [[text(rng.randint(1, 12)) for _ in range(rng.randint(5, 400))] for _ in range(60)]
for version in range(count):
    here = os.path.join(folder, f"{version:02}")
    os.makedirs(os.path.join(here, "src"))
    with open(os.path.join(here, "dump.sql"), "w", encoding="ascii") as file:
        file.writelines(f"insert into t values({i}, '{a}', '{b}', {n});\n" for i, a, b, n in rows)
    with open(os.path.join(here, "pages"), "wb") as file:
        file.writelines(pages)
    for i, lines in enumerate(sources):
        with open(os.path.join(here, "src", f"{i:02}.c"), "w", encoding="ascii") as file:
            file.writelines(line + "\n" for line in lines)
    for _ in range(120):
        at = rng.randrange(len(rows))
        rows[at] = (*rows[at][:3], rng.randrange(1000))
    for _ in range(10):
        rows.insert(rng.randrange(len(rows)), (10000 + rng.randrange(90000), text(3), text(20), 0))
        del rows[rng.randrange(len(rows))]
    for page in rng.sample(pages, 90):
        at = rng.randrange(4000)
        page[at:at + 16] = rng.randbytes(16)
    for lines in rng.sample(sources, 30):
        lines[rng.randrange(len(lines))] = text(8)
