# SPDX-License-Identifier: Apache-2.0
"""Helpers of posix.py: users, system calls that Python lacks, and the log."""
import ctypes
import errno
import os
import shutil
import socket
import stat
import struct
import time
from contextlib import contextmanager

ALICE, BOB, GROUP = 65534, 65533, 65532  # GROUP is not the group of a user.
LIBC = ctypes.CDLL(None, use_errno=True)
COARSE_CLOCK = 5  # CLOCK_REALTIME_COARSE, the clock of file times.
NOREPLACE, EXCHANGE = 1, 2
FALLOC_MODES = {'keep': 1, 'punch': 3, 'zero': 16, 'zero_keep': 17, 'collapse': 8, 'insert': 32}
TYPES = ('file', 'dir', 'fifo', 'block', 'char', 'socket', 'symlink')


@contextmanager
def user(uid, gid=None, groups=()):
    """Runs the calls inside as this user."""
    os.setgroups(list(groups))
    os.setegid(uid if gid is None else gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups([])


@contextmanager
def umask(mask):
    old = os.umask(mask)
    try:
        yield
    finally:
        os.umask(old)


def create(path, mode=0o644, flags=os.O_RDWR | os.O_CREAT | os.O_EXCL):
    os.close(os.open(path, flags, mode))


def bind(path):
    with socket.socket(socket.AF_UNIX) as endpoint:
        endpoint.bind(path)


def make(kind, path, mode=0o644):
    if kind == 'file':
        create(path, mode)
    elif kind == 'dir':
        os.mkdir(path, mode)
    elif kind == 'fifo':
        os.mkfifo(path, mode)
    elif kind == 'block':
        os.mknod(path, mode | stat.S_IFBLK, os.makedev(11, 0))
    elif kind == 'char':
        os.mknod(path, mode | stat.S_IFCHR, os.makedev(1, 3))
    elif kind == 'socket':
        bind(path)
    else:
        os.symlink('nowhere', path)


def rename2(old, new, flags):
    if LIBC.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags) != 0:
        raise OSError(ctypes.get_errno(), 'renameat2')


def utimens(path, atime, mtime, follow=True):
    """Sets times as (seconds, nanoseconds), or with the special nanoseconds UTIME_NOW and
    UTIME_OMIT."""
    times = struct.pack('4q', *atime, *mtime)
    if LIBC.utimensat(-100, os.fsencode(path), times, 0 if follow else 0x100) != 0:
        raise OSError(ctypes.get_errno(), 'utimensat')


NOW, OMIT = (0, (1 << 30) - 1), (0, (1 << 30) - 2)


def fallocate(path, mode, offset, length, flags=os.O_RDWR):
    fd = os.open(path, flags)
    try:
        if LIBC.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
            raise OSError(ctypes.get_errno(), 'fallocate')
    finally:
        os.close(fd)


def ftruncate(path, size, flags):
    fd = os.open(path, flags)
    try:
        # Python would repeat the call after a signal, so this calls the C library.
        if LIBC.ftruncate(fd, ctypes.c_long(size)) != 0:
            raise OSError(ctypes.get_errno(), 'ftruncate')
    finally:
        os.close(fd)


def write(path, data=b'x', flags=os.O_WRONLY):
    fd = os.open(path, flags)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def acl(*entries):
    """Returns the extended attribute for (tag, permissions, id) entries, for example ('u', 7,
    65534)."""
    tags = {'U': 1, 'u': 2, 'G': 4, 'g': 8, 'M': 16, 'O': 32}
    return struct.pack('<I', 2) + b''.join(
        struct.pack('<HHI', tags[t], p, i) for t, p, i in entries)


NONE = 0xffffffff
ACCESS, DEFAULT = 'system.posix_acl_access', 'system.posix_acl_default'


class Log:
    """The answers of one file system."""

    def __init__(self):
        self.lines = []

    def note(self, what, value):
        self.lines.append((what, value))

    def do(self, what, call, *args, **named):
        try:
            result = call(*args, **named)
            tells = isinstance(result, (bool, bytes, str, list))
            self.note(what, result if tells else 'ok')
        except OSError as error:
            self.note(what, errno.errorcode.get(error.errno, error.errno))

    def stat(self, path, what=''):
        try:
            s = os.lstat(path)
        except OSError as error:
            self.note(f'lstat {path} {what}', errno.errorcode[error.errno])
            return
        size = s.st_size if not stat.S_ISDIR(s.st_mode) else 0
        self.note(f'lstat {path} {what}',
                  (oct(s.st_mode), s.st_uid, s.st_gid, s.st_nlink, size, s.st_rdev))

    def times(self, what, paths, call, *args, **named):
        """Returns which times of `paths` the call changed."""
        before = {p: os.lstat(p) for p in paths}
        last = max((max(s.st_ctime_ns, s.st_mtime_ns) for s in before.values()), default=0)
        while time.clock_gettime_ns(COARSE_CLOCK) <= last:
            pass
        self.do(what, call, *args, **named)
        for p, old in before.items():
            try:
                new = os.lstat(p)
            except OSError as error:
                self.note(f'{what}: {p}', errno.errorcode[error.errno])
                continue
            if new.st_ino != old.st_ino:
                self.note(f'{what}: {p}', 'another file')
                continue
            moved = [n for n in ('st_atime_ns', 'st_mtime_ns', 'st_ctime_ns')
                     if getattr(old, n) != getattr(new, n)]
            self.note(f'{what}: {p}', moved)


def remove(path):
    if stat.S_ISDIR(os.lstat(path).st_mode):
        shutil.rmtree(path)
    else:
        os.unlink(path)


# The calls that take one path, to test their common errors.
PATH_CALLS = {
    'stat': os.stat, 'lstat': os.lstat, 'unlink': os.unlink, 'rmdir': os.rmdir,
    'mkdir': os.mkdir, 'mkfifo': os.mkfifo, 'open': lambda p: os.close(os.open(p, os.O_RDONLY)),
    'create': create, 'bind': bind, 'readlink': os.readlink,
    'mknod': lambda p: os.mknod(p, 0o600 | stat.S_IFREG),
    'chmod': lambda p: os.chmod(p, 0o640), 'chown': lambda p: os.chown(p, ALICE, ALICE),
    'lchown': lambda p: os.lchown(p, ALICE, ALICE), 'truncate': lambda p: os.truncate(p, 7),
    'utimens': lambda p: utimens(p, (1, 2), (3, 4)),
    'symlink': lambda p: os.symlink('target', p),
    'link to': lambda p: os.link('source', p), 'link from': lambda p: os.link(p, 'new_link'),
    'rename to': lambda p: os.rename('source', p), 'rename from': lambda p: os.rename(p, 'moved'),
    'listxattr': os.listxattr, 'chdir': lambda p: os.close(os.open(p, os.O_DIRECTORY)),
}


def answers(directory, case):
    """Runs a case in this directory. Returns the file system's answers."""
    place = os.path.join(directory, case.__name__)
    os.mkdir(place)
    os.chmod(place, 0o777)
    os.chdir(place)
    log = Log()
    with umask(0o022):
        case(log)
    os.chdir('/')
    return log.lines
