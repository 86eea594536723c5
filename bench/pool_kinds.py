# SPDX-License-Identifier: Apache-2.0
"""Makes the trees of hosts that share small pieces: KINDS[name](folder, hosts, versions) fills
FOLDER/hostH-vV for H from 0 and V from 1."""

import os
import random

BLOCK = 8192


def noise(seed, size=BLOCK):
    return random.Random(seed).randbytes(size)


def place_of(folder, host, version, name):
    path = os.path.join(folder, f"host{host}-v{version}", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def images(folder, hosts, versions):
    """One image of 96 MiB a host. 60 % of its pieces come from 160 MiB that all hosts have, at
    other places in each: most are 5 blocks long, some 40. A version changes 2 %, in pieces of 1 to
    7 blocks, half of them to a content that other hosts get, too."""
    blocks = 12288
    for host in range(hosts):
        rng = random.Random(1000 + host)
        disk, own = [], (host + 1) << 32
        while len(disk) < blocks:
            if rng.random() < 0.3:
                count = min(1 + int(rng.expovariate(1 / 40)), 400)
            else:
                count = 1 + int(rng.expovariate(1 / 5))
            is_shared = rng.random() < 0.6
            first = rng.randrange(20000) if is_shared else own
            own += 0 if is_shared else count
            disk += range(first, first + count)
        disk = disk[:blocks]
        for version in range(1, versions + 1):
            for _ in range(blocks // 200 if version > 1 else 0):
                at, count = rng.randrange(blocks - 8), 1 + rng.randrange(7)
                is_shared = rng.random() < 0.5
                first = (version << 40) + rng.randrange(4000) if is_shared else own
                own += 0 if is_shared else count
                disk[at:at + count] = range(first, first + count)
            with open(place_of(folder, host, version, "disk"), "wb") as image:
                for block in disk:
                    image.write(noise(block))


def mails(folder, hosts, versions):
    """A file for each mail, 11 KB on average, 3 % with an attachment of up to 2 MB. Half of the
    mails go to several hosts, half of these with another header in each."""
    rng, boxes, sent = random.Random(5), [[] for _ in range(hosts)], 0
    for version in range(1, versions + 1):
        for _ in range(4000 if version == 1 else 300):
            sent += 1
            size = min(60_000, 600 + int(rng.expovariate(1 / 11_000)))
            attached = rng.randrange(100_000, 2_000_000) if rng.random() < 0.03 else 0
            to = rng.sample(range(hosts), rng.choice([1, 1, 1, 2, 3, hosts]))
            has_header = rng.random() < 0.5
            for host in to:
                boxes[host].append((sent, size, attached, has_header))
        for host, box in enumerate(boxes):
            for _ in range(len(box) // 50):
                box.pop(rng.randrange(len(box)))
            for mail, size, attached, has_header in box:
                name = f"{mail % 16:02}/{mail:06}"
                path = place_of(folder, host, version, name)
                older = os.path.join(folder, f"host{host}-v{version - 1}", name)
                if os.path.exists(older):
                    os.link(older, path)
                    continue
                with open(path, "wb") as file:
                    file.write(noise(f"h{mail}.{host}", 500) if has_header else b"")
                    file.write(noise(mail, size) + noise(f"a{mail}", attached))


def edited(data, seed):
    rng = random.Random(seed)
    for _ in range(1 + rng.randrange(3)):
        at = rng.randrange(len(data) + 1)
        text = f"/* {seed} {rng.random()} */\n".encode() * (1 + rng.randrange(20))
        data = data[:at] + text + data[at + rng.randrange(200):]
    return data


def source(folder, hosts, versions):
    """A working copy a host of up to 9,000 files of text from this machine, each host without 15 %
    of them and with edits in 20 % of the others. A version gets edits in 3 % that most hosts get,
    and in 1 % of its own."""
    names = []
    for root in ("/usr/include", "/usr/lib/python3", "/usr/lib/python3.11", "/usr/share/perl"):
        for base, folders, found in os.walk(root):
            folders.sort()
            names += [os.path.join(base, name) for name in sorted(found)]
    names = [name for name in names if os.path.isfile(name) and not os.path.islink(name)][:9000]
    base = []
    for name in names:
        with open(name, "rb") as file:
            base.append(file.read())
    for host in range(hosts):
        rng, files = random.Random(70 + host), {}
        for i, data in enumerate(base):
            if rng.random() < 0.85:
                files[i] = data if rng.random() < 0.8 else edited(data, 10 * i + rng.randrange(3))
        for version in range(1, versions + 1):
            for i in list(files) if version > 1 else ():
                chance = rng.random()
                if random.Random(f"{version}.{i}").random() < 0.03 and chance < 0.8:
                    files[i] = edited(base[i], f"{version}.{i}")
                elif 0.81 < chance < 0.82:
                    files[i] = edited(files[i], f"{host}.{version}.{i}")
                elif chance > 0.995:
                    del files[i]
            for i, data in files.items():
                with open(place_of(folder, host, version, names[i][1:]), "wb") as file:
                    file.write(data)


KINDS = {"images": images, "mails": mails, "source": source}
