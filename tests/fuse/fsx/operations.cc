// SPDX-License-Identifier: Apache-2.0
// Each function executes one operation, first in the model, so that the file system may die in the
// middle.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "driver.h"

namespace varve::fsx {

namespace {
constexpr std::uint64_t kFileBytesMax = 1'500'000;
constexpr std::size_t kHandlesMax = 14;
constexpr std::uint64_t kPageBytes = 4096;

std::string text(std::uint64_t value) { return std::to_string(value); }
std::string mark(FileId id) { return " #" + text(id) + " "; }
}  // namespace

// ---- Choices. ----

std::string Driver::random_name() {
  return std::string(kFolders[below(3)]) + static_cast<char>('a' + below(6));
}

std::string Driver::existing_name() {
  if (tree_.names().empty()) return random_name();
  return std::next(tree_.names().begin(), static_cast<std::ptrdiff_t>(below(tree_.names().size())))
      ->first;
}

std::uint64_t Driver::random_bytes() {
  switch (below(8)) {
    case 0:
      return 1 + below(16);
    case 1:
      return kPageBytes;
    case 2:
      return kPageBytes * (1 + below(8));
    case 3:
    case 4:
      return 1 + below(70'000);
    case 5:
      return chance(0.2) ? 1 + below(600'000) : 1 + below(200);
    default:
      return 1 + below(9000);
  }
}

std::uint64_t Driver::random_offset(std::uint64_t size) {
  switch (below(6)) {
    case 0:
      return size;
    case 1:
      return size + below(chance(0.1) ? 200'000 : 9000);
    case 2:
      return below(size + 1) / kPageBytes * kPageBytes;
    case 3:
      return 0;
    default:
      return below(size + 1);
  }
}

// Returns compressible bytes, random bytes, zeros, or a stretch that recurs in many places.
Bytes Driver::random_data(std::uint64_t bytes) {
  Bytes data(bytes);
  const auto kind = below(10);
  if (kind == 0) return data;
  std::mt19937_64 source(kind < 3 ? 7 : random_());
  const std::uint64_t period = kind < 6 ? bytes : 1 + below(500);
  for (std::uint64_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = source();
    std::memcpy(data.data() + i, &word, std::min<std::uint64_t>(8, bytes - i));
  }
  for (std::uint64_t i = period; i < bytes; ++i) data[i] = data[i - period];
  return data;
}

Handle* Driver::pick(bool readable, bool writable) {
  std::vector<Handle*> fit;
  for (auto& handle : handles_) {
    if ((!readable || handle.readable) && (!writable || handle.writable)) fit.push_back(&handle);
  }
  return fit.empty() ? nullptr : fit[below(fit.size())];
}

// ---- Open and close. ----

bool Driver::open_file(const std::string& name, int flags) {
  FileId id = tree_.find(name);
  if (id == 0) {
    if ((flags & O_CREAT) == 0) {
      if (::open(path(name).c_str(), flags | O_CLOEXEC) >= 0) stop(name + " is there");
      if (errno != ENOENT) return !excused("open of a missing file");
      return true;
    }
    id = tree_.create(name);
    note("create" + mark(id) + name);
  } else if ((flags & O_TRUNC) != 0) {
    tree_.file(id).content.resize(0);
  }
  note("open" + mark(id) + name + " flags " + text(static_cast<std::uint64_t>(flags)));
  const int fd = ::open(path(name).c_str(), flags | O_CLOEXEC, 0644);
  if (fd < 0) return !excused("open " + name, id);
  File& file = tree_.file(id);
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    ::close(fd);
    return !excused("fstat " + name, id);
  }
  if (file.st_ino == 0) file.st_ino = status.st_ino;
  if (file.st_ino != status.st_ino) stop(name + " is another file", id);
  ++file.handles;
  const int access = flags & O_ACCMODE;
  handles_.push_back({fd, id, access != O_WRONLY, access != O_RDONLY, (flags & O_APPEND) != 0});
  return true;
}

bool Driver::op_open() {
  if (handles_.size() >= kHandlesMax) return op_close();
  static constexpr int kFlags[] = {O_WRONLY | O_CREAT,
                                   O_WRONLY | O_CREAT,
                                   O_RDWR | O_CREAT,
                                   O_RDWR | O_CREAT,
                                   O_WRONLY | O_CREAT | O_TRUNC,
                                   O_RDWR | O_TRUNC,
                                   O_WRONLY | O_CREAT | O_APPEND,
                                   O_RDWR | O_APPEND,
                                   O_RDWR | O_CREAT | O_DIRECT,
                                   O_RDONLY,
                                   O_RDONLY};
  int flags = kFlags[below(std::size(kFlags))];
  if ((flags & O_TRUNC) != 0 && chance(0.5)) flags &= ~O_TRUNC;
  return open_file((flags & O_CREAT) != 0 ? random_name() : existing_name(), flags);
}

void Driver::close_handle(std::size_t index) {
  const Handle handle = handles_[index];
  handles_.erase(handles_.begin() + static_cast<std::ptrdiff_t>(index));
  note("close" + mark(handle.file));
  if (::close(handle.fd) != 0 && !mount_.is_killed()) {
    stop(std::string("close: ") + std::strerror(errno), handle.file);
  }
  --tree_.file(handle.file).handles;
  tree_.reap(handle.file);
}

bool Driver::op_close() {
  if (!handles_.empty()) close_handle(below(handles_.size()));
  return true;
}

// ---- Reading and writing. ----

bool Driver::op_write() {
  Handle* handle = pick(false, true);
  if (handle == nullptr) return op_open();
  FileModel& model = content(*handle);
  const std::uint64_t offset = handle->append ? model.size() : random_offset(model.size());
  if (offset > kFileBytesMax) return op_truncate();
  const Bytes data = random_data(random_bytes());
  note("write" + mark(handle->file) + text(offset) + "+" + text(data.size()));
  model.write(offset, data);
  const auto done = ::pwrite(handle->fd, data.data(), data.size(), static_cast<off_t>(offset));
  if (done == static_cast<ssize_t>(data.size())) return true;
  return !excused("write of " + text(data.size()) + " took " + std::to_string(done), handle->file);
}

bool Driver::compare(int fd, FileId id, std::uint64_t offset, std::uint64_t bytes) {
  const Bytes& want = tree_.file(id).content.bytes();
  Bytes got(bytes);
  const auto done = ::pread(fd, got.data(), bytes, static_cast<off_t>(offset));
  if (done < 0) return !excused("read", id);
  const std::uint64_t end = std::min<std::uint64_t>(offset + bytes, want.size());
  const std::uint64_t expected = offset < end ? end - offset : 0;
  if (static_cast<std::uint64_t>(done) != expected) {
    return !excused("read at " + text(offset) + " gave " + std::to_string(done) + " of " +
                        text(expected) + " bytes",
                    id);
  }
  for (std::uint64_t i = 0; i < expected; ++i) {
    if (got[i] == want[offset + i]) continue;
    stop("read at " + text(offset) + "+" + text(bytes) + ": byte " + text(offset + i) + " is " +
             text(got[i]) + ", not " + text(want[offset + i]),
         id);
  }
  return true;
}

bool Driver::op_read() {
  Handle* handle = pick(true, false);
  if (handle == nullptr) return op_open();
  const std::uint64_t offset = random_offset(content(*handle).size());
  const std::uint64_t bytes = random_bytes();
  note("read" + mark(handle->file) + text(offset) + "+" + text(bytes));
  return compare(handle->fd, handle->file, offset, bytes);
}

bool Driver::op_read_all() {
  Handle* handle = pick(true, false);
  if (handle == nullptr) return op_open();
  note("readall" + mark(handle->file));
  return compare(handle->fd, handle->file, 0, content(*handle).size() + 10);
}

bool Driver::op_truncate() {
  const bool by_handle = chance(0.6);
  Handle* handle = by_handle ? pick(false, true) : nullptr;
  const std::string name = existing_name();
  const FileId id = handle != nullptr ? handle->file : tree_.find(name);
  if (id == 0) return op_open();
  FileModel& model = tree_.file(id).content;
  const std::uint64_t size =
      chance(0.2) ? 0 : std::min(random_offset(model.size()), kFileBytesMax + 1000);
  note("truncate" + mark(id) + text(model.size()) + " to " + text(size));
  model.resize(size);
  const int failed = handle != nullptr ? ::ftruncate(handle->fd, static_cast<off_t>(size))
                                       : ::truncate(path(name).c_str(), static_cast<off_t>(size));
  return failed == 0 || !excused("truncate", id);
}

bool Driver::op_allocate() {
  static constexpr struct {
    const char* name;
    int mode;
  } kModes[] = {{"fallocate", 0},
                {"fallocate-keep", FALLOC_FL_KEEP_SIZE},
                {"punch", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE},
                {"punch", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE},
                {"zero-range", FALLOC_FL_ZERO_RANGE},
                {"zero-range-keep", FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE}};
  const auto& chosen = kModes[below(std::size(kModes))];
  Handle* handle = pick(false, true);
  if (handle == nullptr || unsupported_.contains(chosen.name)) return op_write();
  FileModel& model = content(*handle);
  const std::uint64_t offset = random_offset(model.size());
  const std::uint64_t bytes = random_bytes();
  if (offset + bytes > kFileBytesMax) return op_truncate();
  const FileModel before = model;
  note(chosen.name + mark(handle->file) + text(offset) + "+" + text(bytes));
  if ((chosen.mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0) {
    model.zero(offset, bytes);
  }
  if ((chosen.mode & FALLOC_FL_KEEP_SIZE) == 0) {
    model.resize(std::max(model.size(), offset + bytes));
  }
  if (::fallocate(handle->fd, chosen.mode, static_cast<off_t>(offset), static_cast<off_t>(bytes)) ==
      0) {
    return true;
  }
  if (errno == EOPNOTSUPP) {
    model = before;
    unsupported_[chosen.name] = EOPNOTSUPP;
    return true;
  }
  return !excused(chosen.name, handle->file);
}

bool Driver::op_map() {
  Handle* handle = pick(true, true);
  if (handle == nullptr || content(*handle).size() == 0) return op_write();
  const std::lock_guard lock(mapping_);
  if (mount_.is_killed()) return false;
  FileModel& model = content(*handle);
  const std::uint64_t at = below(model.size());
  const std::uint64_t begin = at / kPageBytes * kPageBytes;
  const Bytes data = random_data(std::min(random_bytes(), model.size() - at));
  const std::uint64_t mapped = at + data.size() - begin;
  const bool with_msync = chance(0.5);
  note("mmap" + mark(handle->file) + text(at) + "+" + text(data.size()) +
       (with_msync ? " msync" : ""));
  void* memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, handle->fd,
                        static_cast<off_t>(begin));
  if (memory == MAP_FAILED) return !excused("mmap", handle->file);
  auto* place = static_cast<std::uint8_t*>(memory) + (at - begin);
  const Bytes& want = model.bytes();
  if (!std::equal(place, place + data.size(), want.begin() + static_cast<std::ptrdiff_t>(at))) {
    stop("the mapping shows other bytes", handle->file);
  }
  model.write(at, data);
  std::memcpy(place, data.data(), data.size());
  if (with_msync && ::msync(memory, mapped, MS_SYNC) != 0) stop("msync", handle->file);
  ::munmap(memory, mapped);
  return true;
}

bool Driver::copy(int from, std::uint64_t from_offset, Handle& to, std::uint64_t offset,
                  std::uint64_t bytes, const Bytes& data) {
  content(to).write(offset, std::span(data).subspan(from_offset, bytes));
  auto source = static_cast<off_t>(from_offset);
  auto target = static_cast<off_t>(offset);
  while (bytes != 0) {
    const auto done = ::copy_file_range(from, &source, to.fd, &target, bytes, 0);
    if (done <= 0) return !excused("copy_file_range gave " + std::to_string(done), to.file);
    bytes -= static_cast<std::uint64_t>(done);
  }
  return true;
}

bool Driver::op_copy_range() {
  Handle* from = pick(true, false);
  Handle* to = pick(false, true);
  if (from == nullptr || to == nullptr || to->append) return op_open();
  const std::uint64_t size = content(*from).size();
  if (size == 0) return op_write();
  const std::uint64_t begin = chance(0.3) ? 0 : below(size);
  const std::uint64_t bytes = chance(0.3) ? size - begin : std::min(random_bytes(), size - begin);
  const std::uint64_t offset = chance(0.2) ? begin : random_offset(content(*to).size());
  const bool overlap = from->file == to->file && begin < offset + bytes && offset < begin + bytes;
  if (overlap || offset + bytes > kFileBytesMax) return op_truncate();
  note("copy" + mark(from->file) + text(begin) + "+" + text(bytes) + " to" + mark(to->file) +
       text(offset));
  const Bytes data = content(*from).bytes();
  return copy(from->fd, begin, *to, offset, bytes, data);
}

bool Driver::op_copy_from_sealed() {
  Handle* to = pick(false, true);
  if (to == nullptr || to->append || sealed_.empty() || sealed_.back().files.empty()) {
    return op_write();
  }
  const auto& files = sealed_.back().files;
  const auto& [name, bytes] =
      *std::next(files.begin(), static_cast<std::ptrdiff_t>(below(files.size())));
  if (bytes->empty()) return op_write();
  const std::uint64_t begin = chance(0.4) ? 0 : below(bytes->size());
  const std::uint64_t count =
      chance(0.4) ? bytes->size() - begin : std::min(random_bytes(), bytes->size() - begin);
  const std::uint64_t offset = chance(0.4) ? begin : random_offset(content(*to).size());
  if (offset + count > kFileBytesMax) return op_truncate();
  note("copy-sealed " + name + " " + text(begin) + "+" + text(count) + " to" + mark(to->file) +
       text(offset));
  const std::string from = mount_.point() + "/s/" + sealed_.back().name + "/" + name;
  const int fd = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return !excused("open " + from);
  const bool alive = copy(fd, begin, *to, offset, count, *bytes);
  ::close(fd);
  return alive;
}

}  // namespace varve::fsx
