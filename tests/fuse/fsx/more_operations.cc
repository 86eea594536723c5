// SPDX-License-Identifier: Apache-2.0
// Operations on names and holes, and fsync.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "driver.h"

namespace varve::fsx {

// Reported holes must read as zeros, and the ranges must cover the file.
bool Driver::op_seek() {
  Handle* handle = pick(true, false);
  if (handle == nullptr) return op_open();
  const Bytes& want = content(*handle).bytes();
  const auto size = static_cast<off_t>(want.size());
  note("seek #" + std::to_string(handle->file) + " ");
  off_t at = 0;
  while (at < size) {
    const off_t data = ::lseek(handle->fd, at, SEEK_DATA);
    if (data < 0 && errno != ENXIO) return !excused("SEEK_DATA", handle->file);
    const off_t end_of_hole = data < 0 ? size : data;
    if (end_of_hole < at || end_of_hole > size) stop("SEEK_DATA out of bounds", handle->file);
    for (off_t i = at; i < end_of_hole; ++i) {
      if (want[static_cast<std::size_t>(i)] == 0) continue;
      stop("SEEK_DATA from " + std::to_string(at) + " skips the byte at " + std::to_string(i),
           handle->file);
    }
    if (end_of_hole == size) break;
    at = ::lseek(handle->fd, end_of_hole, SEEK_HOLE);
    if (at < 0) return !excused("SEEK_HOLE", handle->file);
    if (at <= end_of_hole || at > size) {
      stop("SEEK_HOLE from " + std::to_string(end_of_hole) + " gives " + std::to_string(at) +
               ", size " + std::to_string(size),
           handle->file);
    }
  }
  if (::lseek(handle->fd, size, SEEK_DATA) >= 0) stop("SEEK_DATA at the end", handle->file);
  return errno == ENXIO || !excused("SEEK_DATA at the end", handle->file);
}

bool Driver::op_fsync() {
  Handle* handle = pick(false, true);
  if (handle == nullptr) return op_open();
  note("fsync #" + std::to_string(handle->file) + " ");
  const bool data_only = chance(0.3);
  if ((data_only ? ::fdatasync(handle->fd) : ::fsync(handle->fd)) != 0) {
    return !excused("fsync", handle->file);
  }
  content(*handle).is_durable();
  return true;
}

bool Driver::op_fsync_directory() {
  const int fd = ::open(top_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return !excused("open of the top directory");
  note("fsyncdir");
  const bool done = ::fsync(fd) == 0;
  ::close(fd);
  if (!done) return !excused("fsync of the top directory");
  tree_.names_are_durable();
  return true;
}

bool Driver::op_rename() {
  const std::string from = existing_name();
  const std::string to = random_name();
  const FileId id = tree_.find(from);
  const FileId target = tree_.find(to);
  if (id == 0) return op_open();
  static constexpr unsigned kFlags[] = {0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE};
  const unsigned flags = kFlags[below(std::size(kFlags))];
  note("rename" + std::to_string(flags) + " #" + std::to_string(id) + " " + from + " to " + to +
       " #" + std::to_string(target) + " ");
  int expected = 0;
  if (flags == RENAME_NOREPLACE && target != 0) expected = EEXIST;
  if (flags == RENAME_EXCHANGE && target == 0) expected = ENOENT;
  if (expected == 0 && flags == RENAME_EXCHANGE) tree_.exchange(from, to);
  if (expected == 0 && flags != RENAME_EXCHANGE) tree_.rename(from, to);
  const int failed =
      ::renameat2(AT_FDCWD, path(from).c_str(), AT_FDCWD, path(to).c_str(), flags) == 0 ? 0 : errno;
  if (failed == expected) return true;
  return !excused("rename " + from + " to " + to + ": " + std::strerror(failed) + ", not " +
                      std::strerror(expected),
                  id);
}

bool Driver::op_link() {
  const std::string from = existing_name();
  const std::string to = random_name();
  const FileId id = tree_.find(from);
  if (id == 0) return op_open();
  note("link #" + std::to_string(id) + " " + from + " to " + to);
  const int expected = tree_.find(to) != 0 ? EEXIST : 0;
  if (expected == 0) tree_.set_name(to, id);
  const int failed = ::link(path(from).c_str(), path(to).c_str()) == 0 ? 0 : errno;
  return failed == expected || !excused("link " + from + " to " + to, id);
}

bool Driver::op_unlink() {
  const std::string name = existing_name();
  const FileId id = tree_.find(name);
  if (id == 0) return op_open();
  note("unlink #" + std::to_string(id) + " " + name);
  tree_.unlink(name);
  return ::unlink(path(name).c_str()) == 0 || !excused("unlink " + name, id);
}

bool Driver::op_status() {
  if (handles_.empty()) return op_open();
  const Handle& handle = handles_[below(handles_.size())];
  const File& file = tree_.file(handle.file);
  struct stat status {};
  if (::fstat(handle.fd, &status) != 0) return !excused("fstat", handle.file);
  if (static_cast<std::uint64_t>(status.st_size) != file.content.size()) {
    stop("st_size " + std::to_string(status.st_size) + ", not " +
             std::to_string(file.content.size()),
         handle.file);
  }
  if (status.st_nlink != static_cast<nlink_t>(file.names)) {
    stop("st_nlink " + std::to_string(status.st_nlink) + ", not " + std::to_string(file.names),
         handle.file);
  }
  return true;
}

}  // namespace varve::fsx
