// SPDX-License-Identifier: Apache-2.0
#include "io/memory_file_system.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string_view>
#include <utility>

namespace varve::io {

namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::uint64_t kFileBytesMax = 1ULL << 62;

// The bytes of one file: written pages; missing pages are holes. Thread-safe.
class Content {
 public:
  std::size_t read(std::uint64_t offset, std::span<std::byte> out) const {
    const std::shared_lock lock(mutex_);
    if (offset >= size_) return 0;
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), size_ - offset));
    for (std::size_t done = 0; done < n;) {
      const std::size_t inside = (offset + done) % kPageBytes;
      const std::size_t part = std::min(n - done, kPageBytes - inside);
      const auto page = pages_.find((offset + done) / kPageBytes);
      const auto to = out.subspan(done, part);
      if (page == pages_.end()) {
        std::fill(to.begin(), to.end(), std::byte{0});
      } else {
        std::copy_n(page->second.begin() + static_cast<std::ptrdiff_t>(inside), part, to.begin());
      }
      done += part;
    }
    return n;
  }

  void write(std::uint64_t offset, std::span<const std::byte> data) {
    const std::unique_lock lock(mutex_);
    for (std::size_t done = 0; done < data.size();) {
      const std::size_t inside = (offset + done) % kPageBytes;
      const std::size_t part = std::min(data.size() - done, kPageBytes - inside);
      auto& page = pages_[(offset + done) / kPageBytes];
      std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(done), part,
                  page.begin() + static_cast<std::ptrdiff_t>(inside));
      done += part;
    }
    if (!data.empty()) size_ = std::max(size_, offset + data.size());
  }

  void truncate(std::uint64_t bytes) {
    const std::unique_lock lock(mutex_);
    pages_.erase(pages_.lower_bound((bytes + kPageBytes - 1) / kPageBytes), pages_.end());
    const auto last = pages_.find(bytes / kPageBytes);
    if (last != pages_.end()) {
      std::fill(last->second.begin() + static_cast<std::ptrdiff_t>(bytes % kPageBytes),
                last->second.end(), std::byte{0});
    }
    size_ = bytes;
  }

  std::uint64_t size() const {
    const std::shared_lock lock(mutex_);
    return size_;
  }

  // Returns the first offset, from `offset` on, inside written pages if `data`, and otherwise
  // outside. Errors: kPastEnd if there is none.
  Result<std::uint64_t> seek(std::uint64_t offset, bool data) const {
    const std::shared_lock lock(mutex_);
    const Error none(ErrorCode::kPastEnd,
                     "the file has neither data nor a hole from that offset on");
    if (offset >= size_) return none;
    auto page = pages_.lower_bound(offset / kPageBytes);
    if (data) {
      if (page == pages_.end()) return none;
      return std::max(offset, page->first * kPageBytes);
    }
    std::uint64_t at = offset / kPageBytes;
    if (page == pages_.end() || page->first != at) return offset;
    for (; page != pages_.end() && page->first == at; ++page) ++at;
    return std::min(at * kPageBytes, size_);
  }

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, std::array<std::byte, kPageBytes>> pages_;
  std::uint64_t size_ = 0;
};

class MemoryFile final : public File {
 public:
  MemoryFile(std::shared_ptr<Content> content, std::string path, OpenMode mode)
      : content_(std::move(content)), path_(std::move(path)), mode_(mode) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    VARVE_TRY(check_alignment(offset, out));
    return content_->read(offset, out);
  }
  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> data) override {
    VARVE_TRY(check_writable());
    VARVE_TRY(check_alignment(offset, data));
    if (offset > kFileBytesMax || data.size() > kFileBytesMax - offset) {
      return error_from_errno(EFBIG, "cannot write " + path_);
    }
    content_->write(offset, data);
    return {};
  }
  Result<void> sync() override { return {}; }
  Result<std::uint64_t> size() override { return content_->size(); }
  Result<void> truncate(std::uint64_t bytes) override {
    VARVE_TRY(check_writable());
    if (bytes > kFileBytesMax) return error_from_errno(EFBIG, "cannot truncate " + path_);
    content_->truncate(bytes);
    return {};
  }
  Result<std::uint64_t> seek_data(std::uint64_t offset) override {
    return content_->seek(offset, true);
  }
  Result<std::uint64_t> seek_hole(std::uint64_t offset) override {
    return content_->seek(offset, false);
  }

 private:
  Result<void> check_writable() const {
    if (only_reads(mode_)) {
      return error_from_errno(EBADF, "cannot write " + path_);
    }
    return {};
  }
  Result<void> check_alignment(std::uint64_t offset, std::span<const std::byte> memory) const {
    const bool direct = mode_ == OpenMode::kReadDirect || mode_ == OpenMode::kWriteDirect;
    if (direct && !(is_aligned(offset) && is_aligned(memory.size()) &&
                    is_aligned(reinterpret_cast<std::uintptr_t>(memory.data())))) {
      return Error(ErrorCode::kInvalid, path_ + ": direct access must be aligned to 4096 bytes");
    }
    return {};
  }

  const std::shared_ptr<Content> content_;
  const std::string path_;
  const OpenMode mode_;
};

// The file system and its locks share the table, so a lock may outlive the file system.
struct LockTable {
  std::mutex mutex;
  std::set<std::string> held;
};

class MemoryLock final : public FileLock {
 public:
  MemoryLock(std::shared_ptr<LockTable> table, std::string key)
      : table_(std::move(table)), key_(std::move(key)) {}
  ~MemoryLock() override {
    const std::lock_guard lock(table_->mutex);
    table_->held.erase(key_);
  }
  MemoryLock(const MemoryLock&) = delete;
  MemoryLock& operator=(const MemoryLock&) = delete;

 private:
  const std::shared_ptr<LockTable> table_;
  const std::string key_;
};

// Returns `path` without empty and "." parts; the root is "".
std::string normal(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") {
      if (!out.empty()) out += '/';
      out += part;
    }
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return out;
}

std::string parent_of(const std::string& key) {
  const std::size_t slash = key.rfind('/');
  return slash == std::string::npos ? std::string() : key.substr(0, slash);
}

bool is_below(const std::string& key, const std::string& directory) {
  if (directory.empty()) return !key.empty();
  return key.size() > directory.size() && key.starts_with(directory) &&
         key[directory.size()] == '/';
}

class MemoryFileSystem final : public FileSystem {
 public:
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    const std::lock_guard lock(mutex_);
    const std::string key = normal(path);
    const auto refuse = [&](int e) { return error_from_errno(e, "cannot open " + path); };
    auto node = nodes_.find(key);
    if (node == nodes_.end()) {
      if (only_reads(mode)) return refuse(ENOENT);
      if (const int e = check_parent(key); e != 0) return refuse(e);
      node = nodes_.emplace(key, std::make_shared<Content>()).first;
    } else if (mode == OpenMode::kCreateNew) {
      return refuse(EEXIST);
    } else if (!node->second) {
      return refuse(EISDIR);
    }
    return std::unique_ptr<File>(std::make_unique<MemoryFile>(node->second, path, mode));
  }

  Result<void> make_directory(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const std::string key = normal(path);
    const auto node = nodes_.find(key);
    int e = 0;
    if (node != nodes_.end()) {
      e = node->second ? EEXIST : 0;
    } else {
      e = check_parent(key);
      if (e == 0) nodes_.emplace(key, nullptr);
    }
    if (e != 0) return error_from_errno(e, "cannot create the directory " + path);
    return {};
  }

  Result<void> remove(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const std::string key = normal(path);
    const auto node = nodes_.find(key);
    int e = 0;
    if (node == nodes_.end()) {
      e = ENOENT;
    } else if (key.empty()) {
      e = EBUSY;
    } else if (has_children(key)) {
      e = ENOTEMPTY;
    }
    if (e != 0) return error_from_errno(e, "cannot remove " + path);
    nodes_.erase(node);
    return {};
  }

  Result<void> rename(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(mutex_);
    const std::string source = normal(from);
    const std::string target = normal(to);
    if (const int e = check_rename(source, target); e != 0) {
      return error_from_errno(e, "cannot rename " + from + " to " + to);
    }
    if (source == target) return {};
    nodes_.erase(target);
    std::map<std::string, std::shared_ptr<Content>> moved;
    for (auto node = nodes_.begin(); node != nodes_.end();) {
      if (node->first == source || is_below(node->first, source)) {
        moved.emplace(target + node->first.substr(source.size()), node->second);
        node = nodes_.erase(node);
      } else {
        ++node;
      }
    }
    nodes_.merge(moved);
    return {};
  }

  Result<void> sync_directory(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const auto node = nodes_.find(normal(path));
    if (node == nodes_.end() || node->second) {
      return error_from_errno(node == nodes_.end() ? ENOENT : ENOTDIR,
                              "cannot sync the directory " + path);
    }
    return {};
  }

  Result<std::vector<std::string>> list(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const std::string key = normal(path);
    const auto node = nodes_.find(key);
    if (node == nodes_.end() || node->second) {
      return error_from_errno(node == nodes_.end() ? ENOENT : ENOTDIR, "cannot list " + path);
    }
    std::vector<std::string> names;
    for (const auto& [name, content] : nodes_) {
      if (!name.empty() && parent_of(name) == key) {
        names.push_back(key.empty() ? name : name.substr(key.size() + 1));
      }
    }
    return names;
  }

  Result<bool> exists(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return nodes_.contains(normal(path));
  }

  Result<std::uint64_t> tree_bytes(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const std::string key = normal(path);
    if (!nodes_.contains(key)) return error_from_errno(ENOENT, "cannot examine " + path);
    std::uint64_t sum = 0;
    for (const auto& [name, content] : nodes_) {
      if (content && (name == key || is_below(name, key))) sum += content->size();
    }
    return sum;
  }

  Result<SpaceInfo> space(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    if (!nodes_.contains(normal(path))) {
      return error_from_errno(ENOENT, "cannot read the free space of " + path);
    }
    SpaceInfo info;
    info.block_bytes = kPageBytes;
    info.blocks = info.blocks_free = info.blocks_available = 1ULL << 28;  // 1 TiB
    info.files = info.files_free = 1ULL << 20;
    return info;
  }

  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    VARVE_TRY_ASSIGN(auto file, open(path, OpenMode::kReadWrite));
    const std::string key = normal(path);
    const std::lock_guard guard(locks_->mutex);
    if (!locks_->held.insert(key).second) {
      return Error(ErrorCode::kLocked, path + " is locked by another process");
    }
    return std::unique_ptr<FileLock>(std::make_unique<MemoryLock>(locks_, key));
  }

 private:
  // Returns 0, or the errno of creating `key` in its directory.
  [[nodiscard]] int check_parent(const std::string& key) const {
    const auto parent = nodes_.find(parent_of(key));
    if (parent == nodes_.end()) return ENOENT;
    return parent->second ? ENOTDIR : 0;
  }

  [[nodiscard]] bool has_children(const std::string& key) const {
    return std::any_of(nodes_.begin(), nodes_.end(),
                       [&](const auto& node) { return is_below(node.first, key); });
  }

  [[nodiscard]] int check_rename(const std::string& source, const std::string& target) const {
    const auto from = nodes_.find(source);
    if (from == nodes_.end()) return ENOENT;
    if (const int e = check_parent(target); e != 0) return e;
    if (source.empty() || is_below(target, source)) return EINVAL;
    const auto to = nodes_.find(target);
    if (to == nodes_.end() || source == target) return 0;
    if (from->second) return to->second ? 0 : EISDIR;
    if (to->second) return ENOTDIR;
    return has_children(target) ? ENOTEMPTY : 0;
  }

  std::mutex mutex_;
  // Nodes by normal path; a directory has no content. Under mutex_, only locks of contents are
  // taken.
  std::map<std::string, std::shared_ptr<Content>> nodes_{{std::string(), nullptr}};
  const std::shared_ptr<LockTable> locks_ = std::make_shared<LockTable>();
};

}  // namespace

std::unique_ptr<FileSystem> make_memory_file_system() {
  return std::make_unique<MemoryFileSystem>();
}

}  // namespace varve::io
