// SPDX-License-Identifier: Apache-2.0
// A file system that answers every request from memory and keeps no data. It measures the cost of
// FUSE and the client alone, as a reference for ingest.
//
// usage: null-fs [--big BYTES] [--xattrs] MOUNTPOINT
// It stays in the foreground until it is unmounted. With --xattrs it answers the requests for
// extended attributes, all of which are absent. Otherwise the kernel stops sending them.
//
// It works like Varve: the low-level API, one loop thread, writes of 1 MiB, FOPEN_DIRECT_IO on
// write-only opens, and no flush of files that are only read. It copies each written request once,
// into a ring, because any file system that keeps data must do at least that. Names and attributes
// are kept and never change by themselves, so the kernel may cache them, absent names too.
#define FUSE_USE_VERSION 312
#include <fcntl.h>
#include <fmt/core.h>
#include <fuse_lowlevel.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace varve::bench {
namespace {

constexpr unsigned kMaxWriteBytes = 1U << 20;
constexpr std::size_t kRingBytes = 64U << 20;
constexpr std::size_t kPatternBytes = 4U << 20;
constexpr double kCacheSeconds = 3600;

struct Inode {
  struct stat attributes {};
  std::map<std::string, fuse_ino_t> entries;  // Entries of a directory.
  std::string target;                         // Target of a symbolic link.
};

class NullFs {
 public:
  NullFs() : inodes_(FUSE_ROOT_ID + 1), ring_(kRingBytes), pattern_(kPatternBytes) {
    for (std::size_t i = 0; i < pattern_.size(); ++i) pattern_[i] = static_cast<char>(i * 7);
    auto& root = inodes_[FUSE_ROOT_ID].attributes;
    root.st_ino = FUSE_ROOT_ID;
    root.st_mode = S_IFDIR | 0755;
    root.st_nlink = 2;
  }

  fuse_ino_t add(fuse_ino_t parent, const char* name, mode_t mode, const fuse_ctx* who) {
    const fuse_ino_t number = inodes_.size();
    auto& st = inodes_.emplace_back().attributes;
    st.st_ino = number;
    st.st_mode = mode;
    st.st_nlink = S_ISDIR(mode) ? 2 : 1;
    st.st_blksize = 4096;
    if (who != nullptr) {
      st.st_uid = who->uid;
      st.st_gid = who->gid;
    }
    clock_gettime(CLOCK_REALTIME, &st.st_mtim);
    st.st_atim = st.st_ctim = st.st_mtim;
    inodes_[parent].entries[name] = number;
    return number;
  }

  fuse_entry_param entry(fuse_ino_t number) {
    fuse_entry_param e{};
    e.ino = number;
    e.entry_timeout = e.attr_timeout = kCacheSeconds;
    if (number != 0)
      // 0 is a negative entry, which the kernel remembers.
      e.attr = inodes_[number].attributes;
    return e;
  }

  fuse_ino_t find(fuse_ino_t parent, const char* name) {
    const auto& entries = inodes_[parent].entries;
    const auto it = entries.find(name);
    return it == entries.end() ? 0 : it->second;
  }

  void store(fuse_ino_t number, const char* data, std::size_t size, off_t offset) {
    if (ring_at_ + size > ring_.size()) ring_at_ = 0;
    std::memcpy(ring_.data() + ring_at_, data, size);
    ring_at_ += size;
    set_size(number,
             std::max(inodes_[number].attributes.st_size, offset + static_cast<off_t>(size)));
  }

  void set_size(fuse_ino_t number, off_t size) {
    auto& st = inodes_[number].attributes;
    st.st_size = size;
    st.st_blocks = (size + 511) / 512;
  }

  Inode& inode(fuse_ino_t number) { return inodes_[number]; }
  [[nodiscard]] bool answers_xattrs() const { return answers_xattrs_; }
  void answer_xattrs() { answers_xattrs_ = true; }
  [[nodiscard]] const std::vector<char>& pattern() const { return pattern_; }

 private:
  // Never shrinks, so that a number stays valid without reference counts.
  std::deque<Inode> inodes_;
  std::vector<char> ring_;
  std::size_t ring_at_ = 0;
  std::vector<char> pattern_;
  bool answers_xattrs_ = false;
};

NullFs& fs_of(fuse_req_t req) { return *static_cast<NullFs*>(fuse_req_userdata(req)); }

void reply_entry(fuse_req_t req, fuse_ino_t number) {
  const auto e = fs_of(req).entry(number);
  fuse_reply_entry(req, &e);
}

void on_init(void*, fuse_conn_info* connection) {
  connection->max_write = kMaxWriteBytes;
  connection->want &=
      ~static_cast<unsigned>(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
                             FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_READDIRPLUS_AUTO);
}

void on_lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  reply_entry(req, fs_of(req).find(parent, name));
}

void on_getattr(fuse_req_t req, fuse_ino_t number, fuse_file_info*) {
  fuse_reply_attr(req, &fs_of(req).inode(number).attributes, kCacheSeconds);
}

void on_setattr(fuse_req_t req, fuse_ino_t number, struct stat* given, int which, fuse_file_info*) {
  auto& st = fs_of(req).inode(number).attributes;
  if ((which & FUSE_SET_ATTR_SIZE) != 0) fs_of(req).set_size(number, given->st_size);
  if ((which & FUSE_SET_ATTR_MODE) != 0) st.st_mode = given->st_mode;
  if ((which & FUSE_SET_ATTR_UID) != 0) st.st_uid = given->st_uid;
  if ((which & FUSE_SET_ATTR_GID) != 0) st.st_gid = given->st_gid;
  if ((which & FUSE_SET_ATTR_ATIME) != 0) st.st_atim = given->st_atim;
  if ((which & FUSE_SET_ATTR_MTIME) != 0) st.st_mtim = given->st_mtim;
  if ((which & FUSE_SET_ATTR_ATIME_NOW) != 0) clock_gettime(CLOCK_REALTIME, &st.st_atim);
  if ((which & FUSE_SET_ATTR_MTIME_NOW) != 0) clock_gettime(CLOCK_REALTIME, &st.st_mtim);
  fuse_reply_attr(req, &st, kCacheSeconds);
}

void on_mkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  reply_entry(req, fs_of(req).add(parent, name, S_IFDIR | (mode & 07777), fuse_req_ctx(req)));
}

void on_mknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  const auto number = fs_of(req).add(parent, name, mode, fuse_req_ctx(req));
  fs_of(req).inode(number).attributes.st_rdev = device;
  reply_entry(req, number);
}

void on_symlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name) {
  const auto number = fs_of(req).add(parent, name, S_IFLNK | 0777, fuse_req_ctx(req));
  fs_of(req).inode(number).target = target;
  fs_of(req).set_size(number, static_cast<off_t>(std::strlen(target)));
  reply_entry(req, number);
}

void on_readlink(fuse_req_t req, fuse_ino_t number) {
  fuse_reply_readlink(req, fs_of(req).inode(number).target.c_str());
}

void on_link(fuse_req_t req, fuse_ino_t number, fuse_ino_t parent, const char* name) {
  fs_of(req).inode(parent).entries[name] = number;
  ++fs_of(req).inode(number).attributes.st_nlink;
  reply_entry(req, number);
}

void on_unlink(fuse_req_t req, fuse_ino_t parent, const char* name) {
  const auto number = fs_of(req).find(parent, name);
  if (number != 0) --fs_of(req).inode(number).attributes.st_nlink;
  fuse_reply_err(req, fs_of(req).inode(parent).entries.erase(name) == 1 ? 0 : ENOENT);
}

void on_rmdir(fuse_req_t req, fuse_ino_t parent, const char* name) {
  const auto number = fs_of(req).find(parent, name);
  if (number == 0) {
    fuse_reply_err(req, ENOENT);
  } else if (!fs_of(req).inode(number).entries.empty()) {
    fuse_reply_err(req, ENOTEMPTY);
  } else {
    fs_of(req).inode(parent).entries.erase(name);
    fuse_reply_err(req, 0);
  }
}

void on_rename(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
               const char* new_name, unsigned flags) {
  const auto number = fs_of(req).find(parent, name);
  if (number == 0 || (flags & ~1U) != 0) {  // 1 is RENAME_NOREPLACE.
    fuse_reply_err(req, number == 0 ? ENOENT : EINVAL);
  } else if (flags != 0 && fs_of(req).find(new_parent, new_name) != 0) {
    fuse_reply_err(req, EEXIST);
  } else {
    fs_of(req).inode(parent).entries.erase(name);
    fs_of(req).inode(new_parent).entries[new_name] = number;
    fuse_reply_err(req, 0);
  }
}

void set_direct(fuse_file_info* file) {
  file->direct_io = (file->flags & O_ACCMODE) == O_WRONLY ? 1 : 0;
}

void on_create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
               fuse_file_info* file) {
  const auto number = fs_of(req).add(parent, name, S_IFREG | (mode & 07777), fuse_req_ctx(req));
  set_direct(file);
  const auto e = fs_of(req).entry(number);
  fuse_reply_create(req, &e, file);
}

void on_open(fuse_req_t req, fuse_ino_t, fuse_file_info* file) {
  set_direct(file);
  file->keep_cache = 1;
  file->noflush = (file->flags & O_ACCMODE) == O_RDONLY ? 1 : 0;
  fuse_reply_open(req, file);
}

void on_write(fuse_req_t req, fuse_ino_t number, const char* data, std::size_t size, off_t offset,
              fuse_file_info*) {
  fs_of(req).store(number, data, size, offset);
  fuse_reply_write(req, size);
}

void on_read(fuse_req_t req, fuse_ino_t number, std::size_t size, off_t offset, fuse_file_info*) {
  const off_t end = fs_of(req).inode(number).attributes.st_size;
  const auto left = static_cast<std::size_t>(std::max<off_t>(0, end - offset));
  const auto& pattern = fs_of(req).pattern();
  fuse_reply_buf(req, pattern.data(), std::min({size, left, pattern.size()}));
}

void on_done(fuse_req_t req, fuse_ino_t, fuse_file_info*) { fuse_reply_err(req, 0); }

void on_fsync(fuse_req_t req, fuse_ino_t, int, fuse_file_info*) { fuse_reply_err(req, 0); }

void reply_directory(fuse_req_t req, fuse_ino_t number, std::size_t size, off_t offset, bool plus) {
  // The position is the child's number plus one. New names get ascending numbers, and a removal
  // moves no other entry.
  std::vector<std::pair<fuse_ino_t, const std::string*>> children;
  for (const auto& [name, child] : fs_of(req).inode(number).entries) {
    if (static_cast<off_t>(child) >= offset) children.emplace_back(child, &name);
  }
  std::sort(children.begin(), children.end());
  std::vector<char> out(size);
  std::size_t used = 0;
  for (const auto& [child, name] : children) {
    const auto e = fs_of(req).entry(child);
    const auto next = static_cast<off_t>(child) + 1;
    char* const at = out.data() + used;
    const std::size_t needed =
        plus ? fuse_add_direntry_plus(req, at, size - used, name->c_str(), &e, next)
             : fuse_add_direntry(req, at, size - used, name->c_str(), &e.attr, next);
    if (needed > size - used) break;
    used += needed;
  }
  fuse_reply_buf(req, out.data(), used);
}

void on_readdir(fuse_req_t req, fuse_ino_t number, std::size_t size, off_t offset,
                fuse_file_info*) {
  reply_directory(req, number, size, offset, false);
}

void on_readdirplus(fuse_req_t req, fuse_ino_t number, std::size_t size, off_t offset,
                    fuse_file_info*) {
  reply_directory(req, number, size, offset, true);
}

void on_opendir(fuse_req_t req, fuse_ino_t, fuse_file_info* file) {
  file->keep_cache = 1;
  file->cache_readdir = 1;
  fuse_reply_open(req, file);
}

/// Sends `answer`, or ENOSYS if extended attributes are not answered.
void reply_xattr(fuse_req_t req, int answer) {
  fuse_reply_err(req, fs_of(req).answers_xattrs() ? answer : ENOSYS);
}

void on_setxattr(fuse_req_t req, fuse_ino_t, const char*, const char*, std::size_t, int) {
  reply_xattr(req, 0);
}

void on_getxattr(fuse_req_t req, fuse_ino_t, const char*, std::size_t) {
  reply_xattr(req, ENODATA);
}

void on_listxattr(fuse_req_t req, fuse_ino_t, std::size_t size) {
  if (!fs_of(req).answers_xattrs()) {
    fuse_reply_err(req, ENOSYS);
  } else if (size == 0) {
    fuse_reply_xattr(req, 0);
  } else {
    fuse_reply_buf(req, nullptr, 0);
  }
}

void on_removexattr(fuse_req_t req, fuse_ino_t, const char*) { reply_xattr(req, ENODATA); }

void on_statfs(fuse_req_t req, fuse_ino_t) {
  struct statvfs st {};
  st.f_bsize = st.f_frsize = 4096;
  st.f_blocks = st.f_bfree = st.f_bavail = 1ULL << 30;
  st.f_files = st.f_ffree = st.f_favail = 1ULL << 30;
  st.f_namemax = 255;
  fuse_reply_statfs(req, &st);
}

fuse_lowlevel_ops make_operations() {
  fuse_lowlevel_ops ops{};
  ops.init = on_init;
  ops.lookup = on_lookup;
  ops.getattr = on_getattr;
  ops.setattr = on_setattr;
  ops.mkdir = on_mkdir;
  ops.mknod = on_mknod;
  ops.symlink = on_symlink;
  ops.readlink = on_readlink;
  ops.link = on_link;
  ops.unlink = on_unlink;
  ops.rmdir = on_rmdir;
  ops.rename = on_rename;
  ops.create = on_create;
  ops.open = on_open;
  ops.write = on_write;
  ops.read = on_read;
  ops.flush = on_done;
  ops.release = on_done;
  ops.fsync = on_fsync;
  ops.opendir = on_opendir;
  ops.readdir = on_readdir;
  ops.readdirplus = on_readdirplus;
  ops.setxattr = on_setxattr;
  ops.getxattr = on_getxattr;
  ops.listxattr = on_listxattr;
  ops.removexattr = on_removexattr;
  ops.statfs = on_statfs;
  return ops;
}

struct Options {
  const char* mount_point = nullptr;
  off_t big_bytes = 0;
  bool xattrs = false;
};

/// Returns the options of the command line, without a mount point if it is wrong.
Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--big" && i + 1 < argc) {
      options.big_bytes = std::strtoll(argv[++i], nullptr, 10);
    } else if (argument == "--xattrs") {
      options.xattrs = true;
    } else if (i + 1 == argc && argument[0] != '-') {
      options.mount_point = argv[i];
    } else {
      break;
    }
  }
  return options;
}

int serve(const Options& options) {
  NullFs fs;
  if (options.xattrs) fs.answer_xattrs();
  if (options.big_bytes > 0) {
    fs.set_size(fs.add(FUSE_ROOT_ID, "big", S_IFREG | 0644, nullptr), options.big_bytes);
  }
  std::string name = "null-fs";
  std::string option = "-ofsname=null-fs,default_permissions";
  char* arguments[] = {name.data(), option.data(), nullptr};
  fuse_args args = FUSE_ARGS_INIT(2, arguments);
  const auto ops = make_operations();
  fuse_session* const session = fuse_session_new(&args, &ops, sizeof ops, &fs);
  if (session == nullptr) return 1;
  int result = 1;
  if (fuse_set_signal_handlers(session) == 0) {
    if (fuse_session_mount(session, options.mount_point) == 0) {
      result = fuse_session_loop(session) == 0 ? 0 : 1;
      fuse_session_unmount(session);
    }
    fuse_remove_signal_handlers(session);
  }
  fuse_session_destroy(session);
  fuse_opt_free_args(&args);
  return result;
}

}  // namespace
}  // namespace varve::bench

int main(int argc, char** argv) {
  const varve::bench::Options options = varve::bench::parse(argc, argv);
  if (options.mount_point == nullptr) {
    fmt::print(stderr, "usage: null-fs [--big BYTES] [--xattrs] MOUNTPOINT\n");
    return 1;
  }
  return varve::bench::serve(options);
}
