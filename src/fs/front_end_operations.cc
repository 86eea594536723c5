// SPDX-License-Identifier: Apache-2.0
// The C functions that libfuse calls. Each passes its request to the FrontEnd. An exception must
// not pass through libfuse's C frames, so a stray exception becomes EIO here.
#include <fmt/core.h>

#include <cerrno>

#include "base/log.h"
#include "fs/front_end.h"

namespace varve::fs {
namespace {

template <typename Call>
void guard(fuse_req_t req, Call&& call) {
  try {
    call(*static_cast<FrontEnd*>(fuse_req_userdata(req)));
  } catch (const std::exception& stray) {
    base::log(base::LogLevel::kError, fmt::format("unexpected exception: {}", stray.what()));
    fuse_reply_err(req, EIO);
  }
}

void op_init(void* front_end, fuse_conn_info* connection) {
  static_cast<FrontEnd*>(front_end)->init(connection);
}
void op_lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  guard(req, [&](FrontEnd& fs) { fs.lookup(req, parent, name); });
}
void op_forget(fuse_req_t req, fuse_ino_t ino, std::uint64_t) {
  static_cast<FrontEnd*>(fuse_req_userdata(req))->forget(ino);
  fuse_reply_none(req);
}
void op_forget_multi(fuse_req_t req, std::size_t count, fuse_forget_data* forgets) {
  auto& front_end = *static_cast<FrontEnd*>(fuse_req_userdata(req));
  for (std::size_t i = 0; i < count; ++i) front_end.forget(forgets[i].ino);
  fuse_reply_none(req);
}
void op_getattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info*) {
  guard(req, [&](FrontEnd& fs) { fs.getattr(req, ino); });
}
void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat* values, int to_set, fuse_file_info*) {
  guard(req, [&](FrontEnd& fs) { fs.setattr(req, ino, *values, to_set); });
}
void op_readlink(fuse_req_t req, fuse_ino_t ino) {
  guard(req, [&](FrontEnd& fs) { fs.readlink(req, ino); });
}
void op_mknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t rdev) {
  guard(req, [&](FrontEnd& fs) { fs.mknod(req, parent, name, mode, rdev); });
}
void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  guard(req, [&](FrontEnd& fs) { fs.mkdir(req, parent, name, mode); });
}
void op_unlink(fuse_req_t req, fuse_ino_t parent, const char* name) {
  guard(req, [&](FrontEnd& fs) { fs.unlink(req, parent, name); });
}
void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char* name) {
  guard(req, [&](FrontEnd& fs) { fs.rmdir(req, parent, name); });
}
void op_symlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name) {
  guard(req, [&](FrontEnd& fs) { fs.symlink(req, target, parent, name); });
}
void op_rename(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
               const char* new_name, unsigned flags) {
  guard(req, [&](FrontEnd& fs) { fs.rename(req, parent, name, new_parent, new_name, flags); });
}
void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char* name) {
  guard(req, [&](FrontEnd& fs) { fs.link(req, ino, parent, name); });
}
void op_create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
               fuse_file_info* info) {
  guard(req, [&](FrontEnd& fs) { fs.create(req, parent, name, mode, *info); });
}
void op_open(fuse_req_t req, fuse_ino_t ino, fuse_file_info* info) {
  guard(req, [&](FrontEnd& fs) { fs.open(req, ino, *info); });
}
void op_read(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t offset, fuse_file_info* info) {
  guard(req, [&](FrontEnd& fs) { fs.read(req, ino, size, offset, *info); });
}
void op_write(fuse_req_t req, fuse_ino_t ino, const char* data, std::size_t size, off_t offset,
              fuse_file_info* info) {
  guard(req, [&](FrontEnd& fs) { fs.write(req, ino, {data, size}, offset, *info); });
}
void op_flush(fuse_req_t req, fuse_ino_t, fuse_file_info* info) {
  guard(req, [&](FrontEnd& fs) { fs.flush(req, *info); });
}
void op_release(fuse_req_t req, fuse_ino_t, fuse_file_info* info) {
  guard(req, [&](FrontEnd& fs) { fs.release(req, *info); });
}
void op_fsync(fuse_req_t req, fuse_ino_t, int, fuse_file_info* info) {
  guard(req, [&](FrontEnd& fs) { fs.fsync(req, *info); });
}
void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, fuse_file_info* info) {
  guard(req, [&](FrontEnd& fs) { fs.lseek(req, ino, offset, whence, *info); });
}
void op_opendir(fuse_req_t req, fuse_ino_t ino, fuse_file_info* info) {
  guard(req, [&](FrontEnd& fs) { fs.opendir(req, ino, *info); });
}
void op_readdir(fuse_req_t req, fuse_ino_t, std::size_t size, off_t offset, fuse_file_info* info) {
  guard(req, [&](FrontEnd& fs) { fs.readdir(req, size, offset, *info, false); });
}
void op_readdirplus(fuse_req_t req, fuse_ino_t, std::size_t size, off_t offset,
                    fuse_file_info* info) {
  guard(req, [&](FrontEnd& fs) { fs.readdir(req, size, offset, *info, true); });
}
void op_releasedir(fuse_req_t req, fuse_ino_t, fuse_file_info* info) {
  guard(req, [&](FrontEnd& fs) { fs.releasedir(req, *info); });
}
void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int, fuse_file_info*) {
  guard(req, [&](FrontEnd& fs) { fs.fsyncdir(req, ino); });
}
void op_statfs(fuse_req_t req, fuse_ino_t) {
  guard(req, [&](FrontEnd& fs) { fs.statfs(req); });
}
void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char* name, const char* value,
                 std::size_t size, int flags) {
  guard(req, [&](FrontEnd& fs) { fs.setxattr(req, ino, name, {value, size}, flags); });
}
void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char* name, std::size_t size) {
  guard(req, [&](FrontEnd& fs) { fs.getxattr(req, ino, name, size); });
}
void op_listxattr(fuse_req_t req, fuse_ino_t ino, std::size_t size) {
  guard(req, [&](FrontEnd& fs) { fs.listxattr(req, ino, size); });
}
void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char* name) {
  guard(req, [&](FrontEnd& fs) { fs.removexattr(req, ino, name); });
}
void op_fallocate(fuse_req_t req, fuse_ino_t, int mode, off_t offset, off_t bytes,
                  fuse_file_info* info) {
  guard(req, [&](FrontEnd& fs) { fs.fallocate(req, mode, offset, bytes, *info); });
}
void op_copy_file_range(fuse_req_t req, fuse_ino_t, off_t source_offset, fuse_file_info* source,
                        fuse_ino_t, off_t offset, fuse_file_info* info, std::size_t bytes, int) {
  guard(req, [&](FrontEnd& fs) {
    fs.copy_file_range(req, source_offset, *source, offset, *info, bytes);
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
  return ops;
}

}  // namespace

const fuse_lowlevel_ops& FrontEnd::operations() {
  static const fuse_lowlevel_ops kOperations = make_operations();
  return kOperations;
}

}  // namespace varve::fs
