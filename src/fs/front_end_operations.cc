// SPDX-License-Identifier: Apache-2.0
// The C functions that libfuse calls. Each passes its request to a group of operations, whose
// result the Responder sends. "Valid replies" lists the replies that the kernel accepts; any
// request that expects a reply may also end with an errno.
#include <fcntl.h>

#include <cerrno>

#include "base/interruption.h"
#include "fs/front_end.h"

namespace varve::fs {
namespace {

FrontEnd& front_end_of(fuse_req_t req) { return *static_cast<FrontEnd*>(fuse_req_userdata(req)); }

/// Runs `work`, an operation of the session's FrontEnd, and sends its reply.
template <typename Work>
void answer(fuse_req_t req, Operation operation, const Work& work) {
  FrontEnd& fs = front_end_of(req);
  fs.responder().answer(req, operation, [&] { return work(fs); });
}

/// The same for an operation that changes something. While another folder writes to the repository
/// in its object store, no change would reach the store. Changes then fail with EROFS, as in a
/// mount that was made read-only for the same reason. decisions/116. `parent`: the directory of a
/// changed name that may be that of a series or a version.
template <typename Work>
void answer_change(fuse_req_t req, Operation operation, const Work& work) {
  answer(req, operation, [&](FrontEnd& fs) -> Result<Reply> {
    if (fs.refuses_changes()) return Reply(Refusal{EROFS});
    return work(fs);
  });
}
template <typename Work>
void answer_change_in(fuse_req_t req, Operation operation, fuse_ino_t parent, const Work& work) {
  answer(req, operation, [&](FrontEnd& fs) -> Result<Reply> {
    if (fs.refuses_changes_in(parent)) return Reply(Refusal{EROFS});
    return work(fs);
  });
}

// Called once, before any other request. Has no reply.
void op_init(void* front_end, fuse_conn_info* connection) {
  static_cast<FrontEnd*>(front_end)->init(connection);
}

// Valid replies: EntryReply, also with node id 0 for a name that does not exist.
void op_lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  answer(req, Operation::kLookup, [&](FrontEnd& fs) { return fs.names().lookup(parent, name); });
}

// Valid replies: NoReply.
void op_forget(fuse_req_t req, fuse_ino_t ino, std::uint64_t) {
  answer(req, Operation::kForget, [&](FrontEnd& fs) -> Result<Reply> {
    fs.nodes().forget(ino);
    return Reply(NoReply{});
  });
}

// Valid replies: NoReply.
void op_forget_multi(fuse_req_t req, std::size_t count, fuse_forget_data* forgets) {
  answer(req, Operation::kForget, [&](FrontEnd& fs) -> Result<Reply> {
    for (std::size_t i = 0; i < count; ++i) fs.nodes().forget(forgets[i].ino);
    return Reply(NoReply{});
  });
}

// Valid replies: AttributeReply.
void op_getattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info*) {
  answer(req, Operation::kGetattr, [&](FrontEnd& fs) { return fs.attributes().getattr(ino); });
}

// Valid replies: AttributeReply.
void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat* values, int to_set, fuse_file_info*) {
  answer_change(req, Operation::kSetattr, [&](FrontEnd& fs) {
    return fs.attributes().setattr(Caller(req), ino, *values, to_set);
  });
}

// Valid replies: LinkReply.
void op_readlink(fuse_req_t req, fuse_ino_t ino) {
  answer(req, Operation::kReadlink, [&](FrontEnd& fs) { return fs.attributes().readlink(ino); });
}

// Valid replies: EntryReply.
void op_mknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t rdev) {
  answer_change(req, Operation::kMknod, [&](FrontEnd& fs) {
    return fs.names().make_file(Caller(req), parent,
                                {.name = name, .mode = mode, .rdev = rdev, .target = {}});
  });
}

// Valid replies: EntryReply.
void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  answer_change_in(req, Operation::kMkdir, parent, [&](FrontEnd& fs) {
    return fs.names().mkdir(Caller(req), parent,
                            {.name = name, .mode = mode, .rdev = 0, .target = {}});
  });
}

// Valid replies: Done.
void op_unlink(fuse_req_t req, fuse_ino_t parent, const char* name) {
  answer_change(req, Operation::kUnlink,
                [&](FrontEnd& fs) { return fs.names().unlink(Caller(req), parent, name); });
}

// Valid replies: Done.
void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char* name) {
  answer_change_in(req, Operation::kRmdir, parent,
                   [&](FrontEnd& fs) { return fs.names().rmdir(Caller(req), parent, name); });
}

// Valid replies: EntryReply.
void op_symlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name) {
  answer_change(req, Operation::kSymlink, [&](FrontEnd& fs) {
    return fs.names().make_file(
        Caller(req), parent, {.name = name, .mode = S_IFLNK | 0777, .rdev = 0, .target = target});
  });
}

// Valid replies: Done.
void op_rename(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
               const char* new_name, unsigned flags) {
  answer_change_in(req, Operation::kRename, parent, [&](FrontEnd& fs) {
    return fs.names().rename({parent, name}, {new_parent, new_name}, flags);
  });
}

// Valid replies: EntryReply.
void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char* name) {
  answer_change(req, Operation::kLink,
                [&](FrontEnd& fs) { return fs.names().link(ino, parent, name); });
}

// Valid replies: CreateReply.
void op_create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
               fuse_file_info* info) {
  answer_change(req, Operation::kCreate, [&](FrontEnd& fs) {
    return fs.files().create(Caller(req), parent, name, mode, *info);
  });
}

// Valid replies: OpenReply. ENOSYS: the kernel opens files without asking from now on.
void op_open(fuse_req_t req, fuse_ino_t ino, fuse_file_info* info) {
  const auto open = [&](FrontEnd& fs) { return fs.files().open(ino, *info); };
  if ((info->flags & O_ACCMODE) != O_RDONLY || (info->flags & O_TRUNC) != 0) {
    answer_change(req, Operation::kOpen, open);
  } else {
    answer(req, Operation::kOpen, open);
  }
}

// Valid replies: LentReply, BufferReply, GatheredReply; fewer bytes than asked for only at the end
// of the file.
void op_read(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t offset, fuse_file_info* info) {
  answer(req, Operation::kRead, [&](FrontEnd& fs) {
    return fs.reads().read(Caller(req), ino, {static_cast<std::uint64_t>(offset), size}, *info);
  });
}

// Valid replies: WriteReply.
void op_write(fuse_req_t req, fuse_ino_t ino, const char* data, std::size_t size, off_t offset,
              fuse_file_info* info) {
  // A write may wait for the object store.
  const base::InterruptionScope scope(
      [](void* request) { return fuse_req_interrupted(static_cast<fuse_req_t>(request)) != 0; },
      req);
  const auto write = [&](FrontEnd& fs) {
    return fs.files().write(Caller(req), ino, {data, size}, offset, *info);
  };
  // The kernel accepted the pages of a mapping before: to refuse them would lose them.
  if (info->writepage != 0) {
    answer(req, Operation::kWrite, write);
  } else {
    answer_change(req, Operation::kWrite, write);
  }
}

// Valid replies: Done. ENOSYS: the kernel sends no further flush.
void op_flush(fuse_req_t req, fuse_ino_t, fuse_file_info* info) {
  answer(req, Operation::kFlush, [&](FrontEnd& fs) { return fs.files().flush(*info); });
}

// Valid replies: Done.
void op_release(fuse_req_t req, fuse_ino_t, fuse_file_info* info) {
  answer(req, Operation::kRelease, [&](FrontEnd& fs) { return fs.files().release(*info); });
}

// Valid replies: Done.
void op_fsync(fuse_req_t req, fuse_ino_t, int, fuse_file_info* info) {
  answer(req, Operation::kFsync, [&](FrontEnd& fs) { return fs.files().fsync(*info); });
}

// Valid replies: OffsetReply.
void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, fuse_file_info* info) {
  answer(req, Operation::kLseek,
         [&](FrontEnd& fs) { return fs.reads().lseek(Caller(req), ino, offset, whence, *info); });
}

// Valid replies: OpenReply.
void op_opendir(fuse_req_t req, fuse_ino_t ino, fuse_file_info* info) {
  answer(req, Operation::kOpendir,
         [&](FrontEnd& fs) { return fs.directories().opendir(ino, *info); });
}

// Valid replies: BufferReply, empty at the end of the directory.
void op_readdir(fuse_req_t req, fuse_ino_t, std::size_t size, off_t offset, fuse_file_info* info) {
  answer(req, Operation::kReaddir, [&](FrontEnd& fs) {
    return fs.directories().readdir(req, {size, offset, false}, *info);
  });
}

// Valid replies: BufferReply, empty at the end of the directory. The kernel counts a lookup of each
// entry that has a node id.
void op_readdirplus(fuse_req_t req, fuse_ino_t, std::size_t size, off_t offset,
                    fuse_file_info* info) {
  answer(req, Operation::kReaddirplus, [&](FrontEnd& fs) {
    return fs.directories().readdir(req, {size, offset, true}, *info);
  });
}

// Valid replies: Done.
void op_releasedir(fuse_req_t req, fuse_ino_t, fuse_file_info* info) {
  answer(req, Operation::kReleasedir,
         [&](FrontEnd& fs) { return fs.directories().releasedir(*info); });
}

// Valid replies: Done.
void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int, fuse_file_info*) {
  answer(req, Operation::kFsyncdir, [&](FrontEnd& fs) { return fs.directories().fsyncdir(ino); });
}

// Valid replies: SpaceReply.
void op_statfs(fuse_req_t req, fuse_ino_t) {
  answer(req, Operation::kStatfs, [&](FrontEnd& fs) { return fs.statfs(); });
}

// Valid replies: Done.
void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char* name, const char* value,
                 std::size_t size, int flags) {
  answer_change(req, Operation::kSetxattr, [&](FrontEnd& fs) {
    return fs.xattrs().setxattr(Caller(req), ino, {name, {value, size}}, flags);
  });
}

// Valid replies: ValueSizeReply for size 0, otherwise ValueReply.
void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char* name, std::size_t size) {
  answer(req, Operation::kGetxattr,
         [&](FrontEnd& fs) { return fs.xattrs().getxattr(ino, name, size); });
}

// Valid replies: ValueSizeReply for size 0, otherwise ValueReply.
void op_listxattr(fuse_req_t req, fuse_ino_t ino, std::size_t size) {
  answer(req, Operation::kListxattr,
         [&](FrontEnd& fs) { return fs.xattrs().listxattr(Caller(req), ino, size); });
}

// Valid replies: Done.
void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char* name) {
  answer_change(req, Operation::kRemovexattr,
                [&](FrontEnd& fs) { return fs.xattrs().removexattr(ino, name); });
}

// Valid replies: Done. ENOSYS: the kernel sends no further fallocate.
void op_fallocate(fuse_req_t req, fuse_ino_t, int mode, off_t offset, off_t bytes,
                  fuse_file_info* info) {
  answer_change(req, Operation::kFallocate, [&](FrontEnd& fs) {
    return fs.files().fallocate(mode, {offset, bytes}, *info);
  });
}

// Valid replies: WriteReply. EXDEV and EOPNOTSUPP: the kernel copies the bytes itself.
void op_copy_file_range(fuse_req_t req, fuse_ino_t, off_t source_offset, fuse_file_info* source,
                        fuse_ino_t, off_t offset, fuse_file_info* info, std::size_t bytes, int) {
  answer_change(req, Operation::kCopyFileRange, [&](FrontEnd& fs) {
    return fs.files().copy_file_range({*source, source_offset}, {*info, offset}, bytes);
  });
}

// Valid replies: IoctlReply.
void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned request, void*, fuse_file_info*, unsigned,
              const void* in, std::size_t in_bytes, std::size_t out_bytes) {
  answer(req, Operation::kIoctl, [&](FrontEnd& fs) {
    return fs.xattrs().ioctl(ino, request, {static_cast<const char*>(in), in_bytes}, out_bytes);
  });
}

fuse_lowlevel_ops make_operations() {
  fuse_lowlevel_ops ops{};
  ops.init = op_init;
  ops.lookup = op_lookup;
  ops.forget = op_forget;
  ops.forget_multi = op_forget_multi;
  ops.getattr = op_getattr;
  ops.setattr = op_setattr;
  ops.readlink = op_readlink;
  ops.mknod = op_mknod;
  ops.mkdir = op_mkdir;
  ops.unlink = op_unlink;
  ops.rmdir = op_rmdir;
  ops.symlink = op_symlink;
  ops.rename = op_rename;
  ops.link = op_link;
  ops.create = op_create;
  ops.open = op_open;
  ops.read = op_read;
  ops.write = op_write;
  ops.flush = op_flush;
  ops.release = op_release;
  ops.fsync = op_fsync;
  ops.lseek = op_lseek;
  ops.opendir = op_opendir;
  ops.readdir = op_readdir;
  ops.readdirplus = op_readdirplus;
  ops.releasedir = op_releasedir;
  ops.fsyncdir = op_fsyncdir;
  ops.statfs = op_statfs;
  ops.setxattr = op_setxattr;
  ops.getxattr = op_getxattr;
  ops.listxattr = op_listxattr;
  ops.removexattr = op_removexattr;
  ops.fallocate = op_fallocate;
  ops.copy_file_range = op_copy_file_range;
  ops.ioctl = op_ioctl;
  return ops;
}

}  // namespace

const fuse_lowlevel_ops& FrontEnd::operations() {
  static const fuse_lowlevel_ops kOperations = make_operations();
  return kOperations;
}

}  // namespace varve::fs
