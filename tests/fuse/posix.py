# SPDX-License-Identifier: Apache-2.0
"""Makes the same calls on two file systems and requires the same answers.

posix.py DIR REFERENCE: both are empty directories, REFERENCE on a local file system of the kernel.
Every case runs in a fresh directory of each, as root and as two other users, and records each
call's errno and the result of stat(2) afterwards. Prints the differences, and ends with status 1
if there are any.
"""
import os
import shutil
import stat
import struct
import subprocess
import sys
import zlib

from posix_calls import (ACCESS, ALICE, BOB, DEFAULT, EXCHANGE, FALLOC_MODES, GROUP, LIBC, NONE,
                         NOREPLACE, NOW, OMIT, PATH_CALLS, TYPES, acl, answers, bind, create,
                         fallocate, ftruncate, make, remove, rename2, umask, user, utimens, write)

def case_paths(log):
    """Names too long, loops, missing and wrong parents: every call alike."""
    strange = {
        'missing': 'no', 'missing parent': 'no/name', 'file as parent': 'plain/name',
        'fifo as parent': 'fifo/name', 'loop': 'loop', 'loop as parent': 'loop/name',
        'dangling': 'dangling', 'name of 255': 'n' * 255, 'name of 256': 'n' * 256,
        'parent of 256': 'n' * 256 + '/x', 'link to 256': 'to_long',
        'path of 4095': './' * 2045 + 'plain', 'path of 4096': './' * 2046 + 'plain',
        'trailing slash on file': 'plain/', 'trailing slash on dir': 'sub/',
        'trailing slash on nothing': 'no/', 'dot': 'sub/.', 'dotdot': 'sub/..', 'empty': '',
    }
    for what, path in strange.items():
        for name, call in PATH_CALLS.items():
            create('source'), create('plain'), os.mkfifo('fifo'), os.mkdir('sub')
            os.symlink('loop', 'loop'), os.symlink('nowhere', 'dangling')
            os.symlink('n' * 256, 'to_long')
            log.do(f'{name} {what}', call, path)
            for left in sorted(os.listdir('.')):
                log.stat(left[:20] if len(left) < 20 else left)
                remove(left)


def case_existing(log):
    """Every call on every type of file."""
    for kind in TYPES:
        for name, call in PATH_CALLS.items():
            if name == 'open' and kind in ('fifo', 'block', 'char', 'socket'):
                continue  # Would block, or access a device.
            create('source', 0o600)
            make(kind, 'it')
            log.do(f'{name} {kind}', call, 'it')
            for left in sorted(os.listdir('.')):
                log.stat(left, f'after {name} {kind}')
                remove(left)


def case_denied(log):
    """Search and write permission of the parent, for every call."""
    for mode in (0o777, 0o755, 0o711, 0o766, 0o700, 0o733):
        for present in (True, False):
            for name, call in PATH_CALLS.items():
                os.mkdir('d'), os.chmod('.', 0o777)
                if present:
                    create('d/it', 0o666), os.chown('d/it', ALICE, ALICE)
                create('source', 0o666), os.chown('source', ALICE, ALICE)
                os.chmod('d', mode)
                with user(ALICE):
                    log.do(f'{name} in {mode:o}, present {present}', call, 'd/it')
                for left in sorted(os.listdir('.')):
                    remove(left)


def case_access(log):
    """Opening and truncating by each class of users with each of the bits."""
    create('it', 0), os.mkdir('dir', 0)
    for owner, group in ((ALICE, ALICE), (BOB, ALICE), (BOB, GROUP), (BOB, BOB)):
        os.chown('it', owner, group), os.chown('dir', owner, group)
        for bits in range(8):
            for shift in (0, 3, 6):
                os.chmod('it', bits << shift), os.chmod('dir', bits << shift)
                with user(ALICE, groups=(GROUP,)):
                    what = f'{owner}:{group} {bits << shift:o}'
                    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC):
                        log.do(f'open {flags:o} {what}', lambda: os.close(os.open('it', flags)))
                    log.do(f'truncate {what}', os.truncate, 'it', 1)
                    log.do(f'exec {what}', os.access, 'it', os.X_OK, effective_ids=True)
                    log.do(f'list {what}', os.listdir, 'dir')
                    log.do(f'make {what}', create, 'dir/new')
                    log.do(f'remove {what}', os.unlink, 'dir/new')
                    log.do(f'utime now {what}', utimens, 'it', NOW, NOW)
                    log.do(f'utime set {what}', utimens, 'it', (1, 0), (2, 0))


def case_make(log):
    """Owner, group and mode of new files, with umasks and set-group-ID directories."""
    for parent_mode in (0o777, 0o2777, 0o1777):
        os.mkdir('p'), os.chown('p', BOB, GROUP), os.chmod('p', parent_mode)
        for mask in (0, 0o022, 0o077, 0o777):
            for mode in (0o777, 0o644, 0o6777, 0o2755, 0o2770):
                for kind in ('file', 'dir', 'fifo', 'symlink'):
                    for uid, groups in ((0, ()), (ALICE, ()), (ALICE, (GROUP,))):
                        with umask(mask), user(uid, groups=groups):
                            what = f'{kind} {mode:o} mask {mask:o} in {parent_mode:o} as {uid}'
                            log.do(f'make {what} {groups}', make, kind, 'p/new', mode)
                        log.stat('p/new', what)
                        if os.path.lexists('p/new'):
                            remove('p/new')
        log.stat('p')
        remove('p')


def case_sticky(log):
    """Who may remove and rename in a sticky directory."""
    for parent in (0, ALICE, BOB):
        for owner in (0, ALICE, BOB):
            for kind in ('file', 'dir', 'symlink'):
                for name in ('unlink', 'rmdir', 'rename', 'replace', 'exchange'):
                    os.mkdir('p'), make(kind, 'p/it')
                    make(kind, 'p/other'), os.lchown('p/other', ALICE, ALICE)
                    os.lchown('p/it', owner, owner), os.chown('p', parent, parent)
                    os.chmod('p', 0o1777)
                    if kind == 'dir':
                        os.chmod('p/it', 0o777), os.chmod('p/other', 0o777)
                    calls = {'unlink': lambda: os.unlink('p/it'), 'rmdir': lambda: os.rmdir('p/it'),
                             'rename': lambda: os.rename('p/it', 'p/new'),
                             'replace': lambda: os.rename('p/other', 'p/it'),
                             'exchange': lambda: rename2('p/other', 'p/it', EXCHANGE)}
                    with user(ALICE):
                        log.do(f'{name} {kind} of {owner} in dir of {parent}', calls[name])
                    remove('p')


def case_chmod(log):
    for kind in ('file', 'dir', 'fifo'):
        for mode in (0, 0o111, 0o777, 0o1777, 0o2755, 0o4755, 0o6711, 0o2644, 0o7777):
            for owner, gid in ((0, 0), (ALICE, ALICE), (ALICE, BOB), (ALICE, GROUP), (BOB, ALICE)):
                for uid in (0, ALICE):
                    make(kind, 'it'), os.chown('it', owner, gid)
                    with user(uid, groups=(GROUP,)):
                        log.do(f'chmod {kind} {mode:o} of {owner}:{gid} as {uid}', os.chmod, 'it',
                               mode)
                    log.stat('it', f'{mode:o} {owner}:{gid} as {uid}')
                    remove('it')


def case_chown(log):
    for kind in ('file', 'dir', 'symlink'):
        for mode in (0o644, 0o6755, 0o6777, 0o2644, 0o4644, 0o7777):
            for change in ((-1, -1), (ALICE, -1), (BOB, -1), (-1, ALICE), (-1, GROUP), (-1, BOB),
                           (ALICE, GROUP), (BOB, BOB), (0, 0), (4000000000, 4000000000)):
                for uid in (0, ALICE):
                    make(kind, 'it'), os.lchown('it', ALICE, ALICE)
                    if kind != 'symlink':
                        os.chmod('it', mode)
                    with user(uid, groups=(GROUP,)):
                        log.do(f'chown {kind} {mode:o} {change} as {uid}', os.lchown, 'it', *change)
                    log.stat('it', f'{mode:o} {change} as {uid}')
                    remove('it')


def case_privileges(log):
    """A write by a user other than root clears the set-user-ID and set-group-ID bits."""
    calls = {
        'write': lambda: write('it'), 'append': lambda: write('it', flags=os.O_WRONLY | os.O_APPEND),
        'read and write': lambda: write('it', flags=os.O_RDWR),
        'write nothing': lambda: write('it', b''),
        'truncate': lambda: os.truncate('it', 1), 'extend': lambda: os.truncate('it', 100),
        'O_TRUNC': lambda: os.close(os.open('it', os.O_WRONLY | os.O_TRUNC)),
    }
    for name, call in calls.items():
        for mode in (0o4777, 0o2777, 0o6777, 0o6767, 0o1777, 0o7777, 0o4711):
            for uid in (0, ALICE, BOB):
                create('it'), write('it', b'abc'), os.chown('it', ALICE, ALICE)
                os.chmod('it', mode), os.lstat('it')
                with user(uid):
                    log.do(f'{name} {mode:o} as {uid}', call)
                log.stat('it', f'{name} {mode:o} as {uid}')
                remove('it')
    # The mode bits are set after the opening, and other users write with the descriptor.
    for flags in (os.O_WRONLY, os.O_RDWR):
        fd = os.open('it', flags | os.O_CREAT, 0o777)
        os.chown('it', ALICE, ALICE)
        for uid in (ALICE, 0, ALICE, BOB):
            os.fchmod(fd, 0o6777)
            with user(uid):
                log.do(f'late bits, {flags:o} as {uid}', os.write, fd, b'more')
            log.stat('it', f'late bits as {uid}')
        os.close(fd)
        remove('it')
    create('it')
    os.setxattr('it', 'security.capability',
                struct.pack('<IIIII', 0x02000001, 0x400, 0, 0, 0))
    log.do('capability', os.listxattr, 'it')
    write('it')
    log.do('capability after write', os.listxattr, 'it')


def case_rename(log):
    kinds = TYPES + ('full dir', 'absent')
    for old in kinds[:-1]:
        for new in kinds:
            for flags in (0, NOREPLACE, EXCHANGE):
                for kind, name in ((old, 'a/old'), (new, 'b/new')):
                    os.mkdir(os.path.dirname(name))
                    if kind == 'full dir':
                        os.mkdir(name), create(name + '/in')
                    elif kind != 'absent':
                        make(kind, name)
                watched = ['a', 'b', 'a/old']
                log.times(f'rename {old} over {new}, flags {flags}', watched,
                          rename2, 'a/old', 'b/new', flags)
                for p in ('a', 'b', 'a/old', 'b/new'):
                    log.stat(p, f'{old} over {new}, {flags}')
                remove('a'), remove('b')
    os.makedirs('d/e/f'), create('one'), os.link('one', 'two')
    log.do('dir below itself', os.rename, 'd', 'd/e/g')
    log.do('dir into itself', os.rename, 'd', 'd/g')
    log.do('exchange with own child', rename2, 'd', 'd/e', EXCHANGE)
    log.do('parent onto child', os.rename, 'd/e/f', 'd/e')
    log.do('same name', os.rename, 'one', 'one')
    log.do('two names of one file', os.rename, 'one', 'two')
    log.do('bad flags', rename2, 'one', 'two', 3)
    log.do('dot', os.rename, 'd/.', 'x'), log.do('dotdot', os.rename, 'd/..', 'x')
    for p in ('one', 'two', 'd', 'd/e'):
        log.stat(p)
    # A directory that changes its parent must be writable itself.
    os.mkdir('from'), os.mkdir('to'), os.chmod('from', 0o777), os.chmod('to', 0o777)
    for mode, owner in ((0o755, BOB), (0o777, BOB), (0o555, ALICE), (0o755, ALICE)):
        os.mkdir('from/d'), os.chmod('from/d', mode), os.chown('from/d', owner, owner)
        with user(ALICE):
            log.do(f'move dir {mode:o} of {owner}', os.rename, 'from/d', 'to/d')
            log.do(f'and within {mode:o} of {owner}', os.rename, 'from/d', 'from/e')
        for p in ('from/d', 'from/e', 'to/d'):
            if os.path.lexists(p):
                remove(p)


def case_links(log):
    for kind in TYPES:
        make(kind, 'it'), os.mkdir('d')
        log.times(f'link {kind}', ['it', 'd', '.'], os.link, 'it', 'd/name', follow_symlinks=False)
        log.stat('it', kind), log.stat('d/name', kind)
        if kind != 'dir':
            log.times(f'unlink {kind}', ['it', 'd', '.'], os.unlink, 'd/name')
            log.stat('it', kind)
        remove('it'), remove('d')
    create('it'), os.mkdir('sub')
    fd = os.open('it', os.O_RDWR)
    os.unlink('it')
    log.note('unlinked but open', os.fstat(fd).st_nlink)
    log.do('write to it', os.write, fd, b'still here')
    log.do('read it', os.pread, fd, 100, 0)
    log.do('chmod it', os.fchmod, fd, 0o600)
    os.close(fd)
    log.times('rmdir', ['.'], os.rmdir, 'sub')
    os.mkdir('gone')
    inside = os.open('gone', os.O_DIRECTORY)
    os.rmdir('gone')
    log.do('make in a removed directory', os.open, 'x', os.O_CREAT | os.O_WRONLY, 0o600,
           dir_fd=inside)
    os.close(inside)
    os.makedirs('full/x')
    log.do('rmdir full', os.rmdir, 'full')
    log.do('rmdir .', os.rmdir, 'full/.'), log.do('rmdir ..', os.rmdir, 'full/x/..')


def case_symlinks(log):
    for length in (1, 255, 4095):
        log.do(f'target of {length}', os.symlink, 't' * length, 'l')
        log.stat('l', length)
        remove('l')
    log.do('target of 4096', os.symlink, 't' * 4096, 'l')
    log.do('empty target', os.symlink, '', 'l')


def case_times(log):
    create('it'), os.mkdir('dir'), os.symlink('it', 'link'), write('it', b'12345')
    os.mkdir('other')
    for call in (('chmod', os.chmod, 'it', 0o600), ('chown', os.chown, 'it', ALICE, -1),
                 ('truncate', os.truncate, 'it', 3), ('same size', os.truncate, 'it', 3),
                 ('write', write, 'it'), ('write nothing', write, 'it', b''),
                 ('O_TRUNC', lambda: os.close(os.open('it', os.O_WRONLY | os.O_TRUNC))),
                 ('O_TRUNC when empty', lambda: os.close(os.open('it', os.O_WRONLY | os.O_TRUNC))),
                 ('setxattr', os.setxattr, 'it', 'user.a', b'1'),
                 ('removexattr', os.removexattr, 'it', 'user.a'),
                 ('no such xattr', os.removexattr, 'it', 'user.a'),
                 ('utime omit', utimens, 'it', OMIT, OMIT), ('utime now', utimens, 'it', NOW, NOW),
                 ('utime atime', utimens, 'it', (5, 6), OMIT),
                 ('utime mtime', utimens, 'it', OMIT, (5, 6)),
                 ('mkdir', os.mkdir, 'dir/sub'), ('create', create, 'dir/file'),
                 ('symlink', os.symlink, 'x', 'dir/link'), ('link', os.link, 'it', 'dir/it'),
                 ('rename in', os.rename, 'dir/file', 'dir/file2'),
                 ('rename across', os.rename, 'dir/file2', 'other/file'),
                 ('open existing', lambda: os.close(os.open('it', os.O_RDWR | os.O_CREAT, 0o600))),
                 ('failed create', create, 'dir/it'), ('failed chmod', os.chmod, 'no', 0),
                 ('unlink', os.unlink, 'dir/it'), ('rmdir', os.rmdir, 'dir/sub')):
        log.times(call[0], ['it', 'dir', 'other', '.', 'link'], *call[1:])
    for moment in (0, 1, -1, -2000000000, 2 ** 31, 2 ** 32, 2 ** 33, 15000000000):
        for nanoseconds in (0, 1, 999999999):
            log.do(f'utime {moment}', utimens, 'it', (moment, nanoseconds), (moment + 1, 7))
            s = os.stat('it')
            log.note(f'times {moment}.{nanoseconds}', (s.st_atime_ns, s.st_mtime_ns))
    utimens('link', (11, 12), (13, 14), follow=False)
    log.note('of the link', os.lstat('link').st_mtime_ns)
    log.note('not of its target', os.stat('link').st_mtime_ns)
    log.do('bad nanoseconds', utimens, 'it', (1, 10 ** 9), (1, 0))
    for owner in (ALICE, BOB):
        for mode in (0o666, 0o644, 0o444):
            os.chown('it', owner, owner), os.chmod('it', mode)
            with user(ALICE):
                for what, a, m in (('now', NOW, NOW), ('set', (1, 1), (1, 1)), ('omit', OMIT, OMIT),
                                   ('one omitted', NOW, OMIT), ('mixed', NOW, (1, 1))):
                    log.do(f'utime {what}, {owner} {mode:o}', utimens, 'it', a, m)


def case_contents(log):
    create('it'), os.mkdir('dir'), os.mkfifo('fifo'), write('it', b'0123456789')
    for size in (5, 0, 4096, 100000, 3):
        log.do(f'truncate {size}', os.truncate, 'it', size), log.stat('it', size)
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
        log.do(f'ftruncate {flags}', ftruncate, 'it', 10, flags)
        log.do(f'ftruncate negative {flags}', ftruncate, 'it', -1, flags)
    for path in ('it', 'dir', 'fifo', 'no'):
        log.do(f'truncate {path}', os.truncate, path, 0)
        log.do(f'truncate negative {path}', lambda: LIBC.truncate(os.fsencode(path), -1))
        for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_RDONLY | os.O_DIRECTORY,
                      os.O_RDWR | os.O_DIRECTORY, os.O_RDONLY | os.O_CREAT | os.O_EXCL):
            log.do(f'open {flags:o} {path}',
                   lambda: os.close(os.open(path, flags | os.O_NONBLOCK, 0o644)))
    os.symlink('it', 'link')
    log.do('nofollow', lambda: os.open('link', os.O_RDONLY | os.O_NOFOLLOW))
    log.do('exclusive on a link', create, 'link')
    os.symlink('made', 'to_new')
    log.do('create through a link', lambda: create('to_new', flags=os.O_CREAT | os.O_WRONLY))
    log.stat('made'), log.stat('to_new')
    log.do('open a socket', lambda: (bind('s'), os.open('s', os.O_RDONLY))[1])
    log.do('nobody reads the fifo', lambda: os.open('fifo', os.O_WRONLY | os.O_NONBLOCK))
    shutil.copy('/bin/sleep', 'program')
    running = subprocess.Popen(['./program', '60'])
    while not os.readlink(f'/proc/{running.pid}/exe').endswith('/program'):
        pass
    log.do('write to a running program', write, 'program')
    log.do('truncate a running program', os.truncate, 'program', 0)
    log.do('unlink a running program', os.unlink, 'program')
    running.kill(), running.wait()


def case_fallocate(log):
    for name, mode in {'extend': 0, **FALLOC_MODES}.items():
        if name in ('collapse', 'insert'):
            continue  # Not supported; see docs/POSIX.md.
        for offset, length in ((0, 10), (5, 5), (0, 100000), (70000, 4096), (4096, 8192), (-1, 5),
                               (0, 0), (0, -1)):
            create('it'), write('it', bytes(range(256)) * 200)
            # KEEP_SIZE alone changes nothing, not even the times (docs/POSIX.md).
            watched = [] if name == 'keep' else ['it']
            log.times(f'{name} {offset} {length}', watched, fallocate, 'it', mode, offset, length)
            log.stat('it', f'{name} {offset} {length}')
            with open('it', 'rb') as file:
                log.note(f'content after {name} {offset} {length}', zlib.crc32(file.read()))
            remove('it')
    create('it'), os.mkfifo('fifo')
    log.do('read-only', fallocate, 'it', 0, 0, 10, os.O_RDONLY)
    log.do('of a fifo', fallocate, 'fifo', 0, 0, 10, os.O_RDWR)


def case_acl(log):
    full = acl(('U', 7, NONE), ('u', 7, ALICE), ('G', 5, NONE), ('M', 7, NONE), ('O', 0, NONE))
    group = acl(('U', 6, NONE), ('G', 4, NONE), ('g', 6, GROUP), ('M', 6, NONE), ('O', 0, NONE))
    plain = acl(('U', 7, NONE), ('G', 5, NONE), ('O', 1, NONE))

    def show(path):
        log.stat(path)
        for name in (ACCESS, DEFAULT):
            log.do(f'{name} of {path}', os.getxattr, path, name, follow_symlinks=False)
    for default in (full, group, plain):
        os.mkdir('d'), os.chown('d', BOB, BOB), os.chmod('d', 0o2777)
        os.setxattr('d', DEFAULT, default)
        show('d')
        for mask in (0, 0o077):
            for mode in (0o777, 0o640, 0o600, 0o7666):
                for kind in TYPES:
                    with umask(mask), user(BOB):
                        log.do(f'make {kind} {mode:o} mask {mask:o}', make, kind, 'd/new', mode)
                    if os.path.lexists('d/new'):
                        show('d/new')
                        remove('d/new')
        remove('d')
    for value in (full, group, plain, b'\2\0\0\0', b'junk', acl(('U', 7, NONE))):
        for uid, owner, gid in ((0, ALICE, ALICE), (ALICE, ALICE, ALICE), (ALICE, ALICE, BOB),
                                (ALICE, ALICE, GROUP), (ALICE, BOB, BOB)):
            create('it'), os.mkdir('dir')
            for path in ('it', 'dir'):
                os.chown(path, owner, gid), os.chmod(path, 0o2755)
                for name in (ACCESS, DEFAULT):
                    with user(uid, groups=(GROUP,)):
                        log.do(f'set {name} {len(value)} as {uid} on {owner}:{gid}', os.setxattr,
                               path, name, value)
                    show(path)
            log.do('chmod', os.chmod, 'it', 0o2470), show('it')
            for name in (ACCESS, DEFAULT):
                log.do(f'remove {name}', os.removexattr, 'dir', name), show('dir')
            remove('it'), remove('dir')
    for value in (full, group):
        create('it'), os.mkdir('dir'), os.setxattr('it', ACCESS, value)
        os.setxattr('dir', ACCESS, value)
        for mode in (None, 0o700, 0o740, 0o770, 0o707):
            if mode is not None:
                os.chmod('it', mode), os.chmod('dir', mode)
            for uid, groups in ((ALICE, ()), (BOB, (GROUP,)), (BOB, ())):
                with user(uid, groups=groups):
                    for flags in (os.O_RDONLY, os.O_WRONLY):
                        log.do(f'open {flags} as {uid} {groups} {mode}',
                               lambda: os.close(os.open('it', flags)))
                    log.do('list', os.listdir, 'dir'), log.do('make', create, 'dir/x')
                if os.path.lexists('dir/x'):
                    remove('dir/x')
        remove('it'), remove('dir')


def main():
    tested, reference = (os.path.abspath(p) for p in sys.argv[1:3])
    wanted = sys.argv[3:]
    differences = calls = 0
    for name, case in list(globals().items()):
        if not name.startswith('case_') or (wanted and name[5:] not in wanted):
            continue
        ours, theirs = answers(tested, case), answers(reference, case)
        calls += len(ours)
        if len(ours) != len(theirs):
            print(f'{name}: {len(ours)} answers, not {len(theirs)}')
            differences += 1
        for mine, other in zip(ours, theirs):
            if mine != other:
                differences += 1
                print(f'{name}: {mine[0]}: {mine[1]}, not {other[1] if mine[0] == other[0] else other}')
    print(f'{calls} answers compared, {differences} differ')
    sys.exit(1 if differences or calls == 0 else 0)


if __name__ == '__main__':
    main()
