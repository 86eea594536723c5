#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""name_to_handle_at(2) and open_by_handle_at(2): handles.py MOUNT make|use|forge|inside|gone FILE"""

import ctypes
import errno
import os
import pickle
import random
import subprocess
import sys

libc = ctypes.CDLL(None, use_errno=True)
BYTES = 128
MS_REMOUNT = 32


class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("data", ctypes.c_ubyte * BYTES)]


def handle_of(path):
    handle, mount = Handle(BYTES), ctypes.c_int()
    if libc.name_to_handle_at(-100, path.encode(), ctypes.byref(handle), ctypes.byref(mount), 0):
        raise OSError(ctypes.get_errno(), f"name_to_handle_at {path}")
    return handle.type, bytes(handle.data[:handle.bytes])


def open_handle(mount_fd, handle, flags=os.O_RDONLY):
    kind, data = handle
    there = Handle(len(data), kind)
    ctypes.memmove(there.data, data, len(data))
    fd = libc.open_by_handle_at(mount_fd, ctypes.byref(there), flags)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "open_by_handle_at")
    return fd


def refused(want, call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        assert error.errno == want, error
        return
    raise SystemExit("a handle was not refused")


def drop_caches(mount):
    """Empties the kernel's caches of this mount only, as mount -o remount does."""
    kept = os.statvfs(mount).f_flag & (os.ST_RDONLY | os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC)
    if libc.mount(None, mount.encode(), None, MS_REMOUNT | kept, None):
        raise OSError(ctypes.get_errno(), "remount")


def make(mount, out):
    series = f"{mount}/s"
    for version in "v.partial", "open.partial":
        top = f"{series}/{version}"
        os.makedirs(f"{top}/dir/deeper", exist_ok=True)
        for i in range(20):
            with open(f"{top}/dir/deeper/file{i}", "w") as file:
                file.write(f"content {i}")
        os.symlink("target", f"{top}/link")
        os.link(f"{top}/dir/deeper/file3", f"{top}/second name")
        if version == "v.partial":
            os.rename(top, f"{series}/sealed")
    drop_caches(mount)  # The kernel still has the numbers from before the seal.
    handles = {}
    for version in "sealed", "open.partial":
        for directory, _, names in os.walk(f"{series}/{version}"):
            for path in [directory] + [f"{directory}/{name}" for name in names]:
                if not os.path.islink(path):
                    handles[os.path.relpath(path, mount)] = handle_of(path)
    handles["s"] = handle_of(series)
    os.unlink(f"{series}/open.partial/dir/deeper/file7")
    del handles["s/open.partial/dir/deeper/file7"]
    open(out, "wb").write(pickle.dumps(handles))


def use(mount, handles, prefix="s"):
    mount_fd = os.open(mount, os.O_RDONLY)
    used = 0
    for rounds in range(2):
        for path, handle in handles.items():
            if not path.startswith(prefix):
                continue
            if rounds == 0:
                drop_caches(mount)
            try:
                fd = open_handle(mount_fd, handle)
            except OSError as error:
                raise SystemExit(f"{path}: {error}") from error
            # A lookup by handle and a lookup by name afterwards must find the same file.
            status = os.fstat(fd)
            if path.rpartition("/")[2].startswith("file"):
                number = path.rpartition("file")[2]
                assert os.read(fd, 100).decode() == f"content {number}", path
            elif not path.endswith("second name"):
                os.listdir(fd)
                up = os.stat("..", dir_fd=fd)
                want = os.path.dirname(f"{mount}/{path}")
                assert up.st_ino == os.stat(want).st_ino, path
            named = os.stat(f"{mount}/{path}")
            assert (named.st_ino, named.st_size, named.st_mtime_ns) == (
                status.st_ino, status.st_size, status.st_mtime_ns), path
            os.close(fd)
            used += 1
    assert used > 20, used


def forge(mount, handles):
    mount_fd = os.open(mount, os.O_RDONLY)
    rng = random.Random(9)
    for kind, data in handles.values():
        for _ in range(30):
            forged = bytearray(data)
            for _ in range(1 + rng.randrange(3)):
                forged[rng.randrange(len(forged))] ^= 1 << rng.randrange(8)
            try:
                os.close(open_handle(mount_fd, (kind, bytes(forged))))
            except OSError as error:
                assert error.errno in (errno.ESTALE, errno.ELOOP), error
    subprocess.run(["ls", "-lR", mount], check=True, stdout=subprocess.DEVNULL)


def inside(mount, handles):
    mount_fd = os.open(mount, os.O_RDONLY)
    for path, handle in handles.items():
        if path.startswith("s/sealed/"):
            fd = open_handle(mount_fd, handle)
            assert os.fstat(fd).st_ino == os.stat(mount + path.removeprefix("s/sealed")).st_ino
            os.close(fd)
        elif path != "s/sealed":
            refused(errno.ESTALE, open_handle, mount_fd, handle)


def gone(mount, handles):
    mount_fd = os.open(mount, os.O_RDONLY)
    for path, handle in handles.items():
        if path.startswith("s/sealed"):
            refused(errno.ESTALE, open_handle, mount_fd, handle)
        else:
            os.close(open_handle(mount_fd, handle))


mount, command, file, *rest = sys.argv[1:]
if command == "make":
    make(mount, file)
else:
    handles = pickle.loads(open(file, "rb").read())
    if command == "use":
        use(mount, handles, "s/sealed" if rest else "s")
    else:
        {"forge": forge, "inside": inside, "gone": gone}[command](mount, handles)
