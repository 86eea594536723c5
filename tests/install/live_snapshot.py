#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes a live snapshot of a virtual machine in which an encrypted repository is mounted, and lets two futures follow.
Each future stores other texts. Then no two different texts of the futures have the same key and nonce.

usage: live_snapshot.py KERNEL INITRD DISK WORK   DISK is an image (raw, ext4) whose /guest is the init program
"""
import collections
import glob
import os
import socket
import struct
import subprocess
import sys
import time


class Machine:
    """A virtual machine: commands go to its serial line, and its monitor takes and loads snapshots."""

    def __init__(self, kernel, initrd, work, snapshot=None):
        self.monitor_path = os.path.join(work, "monitor")
        if os.path.exists(self.monitor_path):
            os.unlink(self.monitor_path)
        command = ["qemu-system-x86_64", "-accel", os.environ.get("VARVE_TEST_ACCEL", "tcg"), "-m", "1024", "-display", "none", "-no-reboot",
                   "-kernel", kernel, "-initrd", initrd, "-append", "root=/dev/vda rw console=ttyS0 quiet no_timer_check panic=-1 init=/guest",
                   "-drive", f"file={work}/disk.qcow2,if=virtio", "-drive", f"file={work}/out.qcow2,if=virtio",
                   "-serial", "stdio", "-monitor", f"unix:{self.monitor_path},server,nowait"]
        if snapshot:
            command += ["-loadvm", snapshot]
        self.run = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if not snapshot:
            self.read_to("GUEST IS READY")

    def read_to(self, word):
        shown = []
        for line in self.run.stdout:
            shown.append(line.decode(errors="replace").rstrip())
            if word in shown[-1]:
                return shown
        sys.exit(f"FAILED: no '{word}' from the machine:\n" + "\n".join(shown[-40:]))

    def do(self, command):
        self.run.stdin.write((command + "\n").encode())
        self.run.stdin.flush()
        shown = self.read_to("COMMAND ENDED")
        if not shown[-1].endswith("ENDED 0"):
            sys.exit(f"FAILED: {command}:\n" + "\n".join(shown))
        return shown[:-1]

    def ask_monitor(self, command):
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(self.monitor_path)
            answers = monitor.makefile("rb")

            def answer():
                text = b""
                while not text.endswith(b"(qemu) "):
                    text += answers.read(1)
                return text
            answer()
            monitor.sendall(command.encode() + b"\n")
            text = answer()
            if b"Error" in text:
                sys.exit(f"FAILED: {command}: {text.decode()}")

    def power_off(self):
        self.run.kill()
        self.run.wait()


def containers(path):
    """Yields the place in the file, the salt and the bytes of each sealed container of a segment or volume (FORMAT.md §14.2)."""
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at + 128 <= len(data):
        magic, _, _, flags, _, _, total = struct.unpack_from("<IHHIIII", data, at)
        if magic == 0x56525643 and flags & 2 and total:
            yield data[at + 24:at + 56], data[at:at + total]
            at += total
        else:
            at += 4096


def blocks(path):
    """Yields the salt with the nonce, and the bytes, of each block of a sealed file or a staging file (§14.3, §14.4)."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:4] == struct.pack("<I", 0x46535656):
        unit = struct.unpack_from("<I", data, 8)[0]
        for at in range(64, len(data) - 40, unit + 40):
            length = struct.unpack_from("<I", data, at + 8)[0]
            yield data[16:48] + data[at + 12:at + 24], data[at + 24:at + 40 + length]
    elif data[:4] == struct.pack("<I", 0x47535656):
        at = 64
        while at + 48 < len(data):
            length = struct.unpack_from("<I", data, at)[0]
            yield data[8:40] + data[at + 4:at + 16], data[at + 16:at + 32] + data[at + 48:at + 48 + length]
            at += 48 + length


def values(path):
    """Yields the nonce and the bytes of each value of an encrypted environment (§14.3). The environment is older than
    the snapshot, or its nonces would have other salts: equal nonces are checked as if the salts were equal."""
    dump = subprocess.run(["mdb_dump", "-a", "-n", path], capture_output=True, check=True, text=True).stdout
    lines = [line[1:] for line in dump.splitlines() if line.startswith(" ")]
    for text in lines[1::2]:
        value = bytes.fromhex(text)
        if len(value) >= 32:
            yield value[:12], value[12:-4]


def nonces(repo):
    """Returns {kind and key and nonce: texts} of all that is sealed in a repository."""
    found = collections.defaultdict(set)
    for path in glob.glob(repo + "/**", recursive=True):
        name = os.path.basename(path)
        if not os.path.isfile(path) or name == "lock.mdb":
            continue
        if name.endswith((".seg", ".vol")):
            parts, kind = containers(path), "container"
        elif name.endswith(".mdb"):
            parts, kind = values(path), "value"
        else:
            parts, kind = blocks(path), "block"
        for nonce, text in parts:
            found[kind, nonce].add(text)
    return found


FUTURE = r"""
for i in $(seq 60000); do echo "{name} $i"; done >/tmp/text &&
cp /tmp/text /mnt/s/two.partial/file && sync /mnt/s/two.partial/file &&
dd if=/tmp/text of=/mnt/s/two.partial/staged bs=4096 seek=5 count=40 status=none &&
dd if=/tmp/text of=/mnt/s/two.partial/staged bs=4096 seek=1 count=3 conv=notrunc status=none &&
sync /mnt/s/two.partial/staged && cp -r /repo /before && mv -T /mnt/s/two.partial /mnt/s/two &&
varve -q store --key-file /key /repo t/{name} /tmp/text.d && varve umount /mnt && sync &&
tar -C / -cf - repo before | dd of=/dev/vdb bs=1M conv=fsync status=none
""".replace("\n", " ").strip()


def future(name, kernel, initrd, work, machine):
    machine.do("mkdir -p /tmp/text.d && echo %s >/tmp/text.d/file" % name)
    machine.do(FUTURE.replace("{name}", name))
    machine.power_off()
    out = os.path.join(work, name)
    os.mkdir(out)
    subprocess.run(["qemu-img", "convert", "-O", "raw", f"{work}/out.qcow2", f"{work}/out.tar"], check=True)
    subprocess.run(["tar", "-C", out, "-xf", f"{work}/out.tar"], check=True)
    return nonces(out)


def main():
    kernel, initrd, disk, work = sys.argv[1:]
    subprocess.run(["qemu-img", "convert", "-O", "qcow2", disk, f"{work}/disk.qcow2"], check=True)
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", f"{work}/out.qcow2", "1G"], check=True)
    machine = Machine(kernel, initrd, work)
    machine.do("umask 077 && head -c 32 /dev/urandom >/key && varve -q init --encrypt --key-file /key /repo && mkdir -p /mnt")
    machine.do("varve mount --key-file /key /repo /mnt && mkdir /mnt/s && mkdir /mnt/s/one.partial && cp -r /etc /mnt/s/one.partial/"
               " && mv -T /mnt/s/one.partial /mnt/s/one && mkdir /mnt/s/two.partial && echo begun >/mnt/s/two.partial/begun"
               " && sync /mnt/s/two.partial/begun && sync")
    machine.ask_monitor("savevm live")
    begin = time.monotonic()
    first = future("one", kernel, initrd, work, machine)
    second = future("two", kernel, initrd, work, Machine(kernel, initrd, work, "live"))
    repeated = collections.Counter()
    new = collections.Counter()
    for place in first.keys() | second.keys():
        if first.get(place) != second.get(place):
            new[place[0]] += 1
        if len(first.get(place, set()) | second.get(place, set())) > 1:
            repeated[place[0]] += 1
    print(f"two futures of {time.monotonic() - begin:.0f} s; sealed in one of them only: {dict(new)}; "
          f"the same key and nonce for two texts: {dict(repeated)}")
    if min(new[kind] for kind in ("container", "value", "block")) < 2:
        sys.exit("FAILED: the futures sealed too little")
    if repeated:
        sys.exit("FAILED: a key and nonce has two texts")


main()
