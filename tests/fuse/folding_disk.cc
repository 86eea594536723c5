// SPDX-License-Identifier: Apache-2.0
// A FUSE file system over a folder that does not tell upper and lower case apart, as FAT and
// casefold of ext4 do: folding_disk FOLDER DIR [OPTIONS]. An entry keeps the case of its first
// name.
#define FUSE_USE_VERSION 31
#include <dirent.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>

namespace {

std::string top;

/// Returns the name of an entry of the folder in any case; the name itself if there is none.
std::string entry_like(const std::string& folder, const std::string& name) {
  std::string found = name;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(folder.c_str()), ::closedir);
  while (const dirent* entry = listing ? ::readdir(listing.get()) : nullptr) {
    if (::strcasecmp(entry->d_name, name.c_str()) == 0) found = entry->d_name;
  }
  return found;
}

/// Returns the path in the folder below.
std::string below(const char* path) {
  std::string there = top;
  std::string rest = path;
  while (!rest.empty()) {
    const std::size_t end = rest.find('/', 1);
    there += "/" + entry_like(there, rest.substr(1, end == std::string::npos ? end : end - 1));
    rest = end == std::string::npos ? "" : rest.substr(end);
  }
  return there;
}

int answer(int result) { return result == -1 ? -errno : result; }

void* start(fuse_conn_info* /*connection*/, fuse_config* config) {
  config->use_ino = 1;
  config->entry_timeout = 0;
  config->attr_timeout = 0;
  config->negative_timeout = 0;
  return nullptr;
}
int get_attributes(const char* path, struct stat* status, fuse_file_info* /*file*/) {
  return answer(::lstat(below(path).c_str(), status));
}
int read_link(const char* path, char* target, size_t bytes) {
  const ssize_t got = ::readlink(below(path).c_str(), target, bytes - 1);
  if (got < 0) return -errno;
  target[got] = '\0';
  return 0;
}
int make_node(const char* path, mode_t mode, dev_t device) {
  return answer(::mknod(below(path).c_str(), mode, device));
}
int make_directory(const char* path, mode_t mode) {
  return answer(::mkdir(below(path).c_str(), mode));
}
int remove_file(const char* path) { return answer(::unlink(below(path).c_str())); }
int remove_directory(const char* path) { return answer(::rmdir(below(path).c_str())); }
int make_symlink(const char* target, const char* path) {
  return answer(::symlink(target, below(path).c_str()));
}
int rename_entry(const char* from, const char* to, unsigned flags) {
  return answer(::renameat2(AT_FDCWD, below(from).c_str(), AT_FDCWD, below(to).c_str(), flags));
}
int make_link(const char* from, const char* to) {
  return answer(::link(below(from).c_str(), below(to).c_str()));
}
int change_mode(const char* path, mode_t mode, fuse_file_info* /*file*/) {
  return answer(::chmod(below(path).c_str(), mode));
}
int change_owner(const char* path, uid_t user, gid_t group, fuse_file_info* /*file*/) {
  return answer(::lchown(below(path).c_str(), user, group));
}
int set_size(const char* path, off_t bytes, fuse_file_info* /*file*/) {
  return answer(::truncate(below(path).c_str(), bytes));
}
int set_times(const char* path, const timespec times[2], fuse_file_info* /*file*/) {
  return answer(::utimensat(AT_FDCWD, below(path).c_str(), times, AT_SYMLINK_NOFOLLOW));
}
int open_file(const char* path, fuse_file_info* file) {
  const int fd = ::open(below(path).c_str(), file->flags & ~O_NOFOLLOW);
  file->fh = static_cast<std::uint64_t>(fd);
  return fd < 0 ? -errno : 0;
}
int create_file(const char* path, mode_t mode, fuse_file_info* file) {
  const int fd = ::open(below(path).c_str(), file->flags | O_CREAT, mode);
  file->fh = static_cast<std::uint64_t>(fd);
  return fd < 0 ? -errno : 0;
}
int read_file(const char* /*path*/, char* data, size_t bytes, off_t at, fuse_file_info* file) {
  return answer(static_cast<int>(::pread(static_cast<int>(file->fh), data, bytes, at)));
}
int write_file(const char* /*path*/, const char* data, size_t bytes, off_t at,
               fuse_file_info* file) {
  return answer(static_cast<int>(::pwrite(static_cast<int>(file->fh), data, bytes, at)));
}
int close_file(const char* /*path*/, fuse_file_info* file) {
  return answer(::close(static_cast<int>(file->fh)));
}
int list(const char* path, void* buffer, fuse_fill_dir_t fill, off_t /*at*/,
         fuse_file_info* /*file*/, fuse_readdir_flags /*flags*/) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(below(path).c_str()), ::closedir);
  if (!listing) return -errno;
  while (const dirent* entry = ::readdir(listing.get())) {
    fill(buffer, entry->d_name, nullptr, 0, static_cast<fuse_fill_dir_flags>(0));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::unique_ptr<char, void (*)(void*)> folder(
      argc < 3 ? nullptr : ::realpath(argv[1], nullptr), ::free);
  if (!folder) {
    std::fputs("usage: folding_disk FOLDER DIR [OPTIONS]\n", stderr);
    return 2;
  }
  top = folder.get();
  fuse_operations calls{};
  calls.init = start;
  calls.getattr = get_attributes;
  calls.readlink = read_link;
  calls.mknod = make_node;
  calls.mkdir = make_directory;
  calls.unlink = remove_file;
  calls.rmdir = remove_directory;
  calls.symlink = make_symlink;
  calls.rename = rename_entry;
  calls.link = make_link;
  calls.chmod = change_mode;
  calls.chown = change_owner;
  calls.truncate = set_size;
  calls.utimens = set_times;
  calls.open = open_file;
  calls.create = create_file;
  calls.read = read_file;
  calls.write = write_file;
  calls.release = close_file;
  calls.readdir = list;
  argv[1] = argv[0];
  return fuse_main(argc - 1, argv + 1, &calls, nullptr);
}
