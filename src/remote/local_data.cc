// SPDX-License-Identifier: Apache-2.0
#include "remote/local_data.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace varve::remote {

namespace {

constexpr std::size_t kReaders = 4;

Error missing(const std::string& path) {
  return {ErrorCode::kNotFound, path + " is neither on the disk nor in the object store"};
}

// Translates a result of the store for the callers: a caller takes any error for damage, except an
// error saying that the store does not answer now. Refused credentials are no damage either.
Result<std::size_t> told(Result<std::size_t> got) {
  if (got || got.error().code() == ErrorCode::kCorrupt ||
      got.error().code() == ErrorCode::kNotFound) {
    return got;
  }
  return Error(ErrorCode::kUnavailable, got.error().message());
}

bool is_absent(const Error& error) { return error.code() == ErrorCode::kNotFound; }

}  // namespace

bool is_data_path(const std::string& path) {
  return path.find("/active/") != std::string::npos || path.find("/volumes/") != std::string::npos;
}

// A file being written, which therefore stays on the disk.
class LocalData::WrittenFile final : public io::File {
 public:
  WrittenFile(LocalData& owner, std::string path, std::unique_ptr<io::File> file,
              std::uint64_t bytes)
      : owner_(owner), path_(std::move(path)), file_(std::move(file)), old_bytes_(bytes) {}
  ~WrittenFile() override {
    file_.reset();
    owner_.written(path_);
  }

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    return file_->read_at(offset, out);
  }
  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (offset < old_bytes_) {
      VARVE_TRY(owner_.note_change(path_));
      old_bytes_ = 0;  // One note is enough.
    }
    return file_->write_at(offset, bytes);
  }
  Result<void> sync() override { return file_->sync(); }
  Result<std::uint64_t> size() override { return file_->size(); }
  Result<void> truncate(std::uint64_t bytes) override {
    if (bytes < old_bytes_) old_bytes_ = bytes;
    return file_->truncate(bytes);
  }
  Result<std::uint64_t> seek_data(std::uint64_t offset) override {
    return file_->seek_data(offset);
  }
  Result<std::uint64_t> seek_hole(std::uint64_t offset) override {
    return file_->seek_hole(offset);
  }
  std::uint64_t append_unit() override { return file_->append_unit(); }

 private:
  LocalData& owner_;
  const std::string path_;
  std::unique_ptr<io::File> file_;
  std::atomic<std::uint64_t> old_bytes_;  // Initial length; the store may have the bytes.
};

// A file being read, from the disk or the store. A file only in the store can be cut, too.
class LocalData::ReadFile final : public io::File {
 public:
  ReadFile(LocalData& owner, std::string path, std::shared_ptr<DataFile> file)
      : owner_(owner), path_(std::move(path)), file_(std::move(file)) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    return file_->read_at(offset, out);
  }
  Result<void> write_at(std::uint64_t, std::span<const std::byte>) override {
    return Error(ErrorCode::kIo, path_ + " is only in the object store, and cannot be changed");
  }
  Result<void> sync() override { return {}; }
  Result<std::uint64_t> size() override { return file_->size(); }
  Result<void> truncate(std::uint64_t bytes) override {
    const std::lock_guard lock(owner_.mutex_);
    const auto extents = owner_.covered(path_);
    if (!extents) return missing(path_);
    if (bytes > owner_.covered_bytes(path_)) {
      return Error(ErrorCode::kIo, path_ + " is only in the object store, and cannot be extended");
    }
    owner_.cuts_[path_] = {extents->front().object, bytes};
    return {};
  }
  Result<std::uint64_t> seek_data(std::uint64_t offset) override {
    VARVE_TRY_ASSIGN(const auto bytes, size());
    return offset < bytes ? Result<std::uint64_t>(offset) : Error(ErrorCode::kPastEnd, path_);
  }
  Result<std::uint64_t> seek_hole(std::uint64_t offset) override {
    VARVE_TRY_ASSIGN(const auto bytes, size());
    return offset < bytes ? Result<std::uint64_t>(bytes) : Error(ErrorCode::kPastEnd, path_);
  }
  void will_read(std::uint64_t offset, std::uint64_t bytes) override {
    file_->will_read(offset, bytes);
  }
  bool is_cached(std::uint64_t offset, std::uint64_t bytes) override {
    return file_->is_cached(offset, bytes);
  }

 private:
  LocalData& owner_;
  const std::string path_;
  const std::shared_ptr<DataFile> file_;
};

DataFile::DataFile(LocalData& owner, std::string path, std::shared_ptr<io::File> local)
    : owner_(owner), path_(std::move(path)), used_(owner.use()), local_(std::move(local)) {}

DataFile::~DataFile() {
  const std::lock_guard lock(owner_.mutex_);
  const auto [first, last] = owner_.readers_open_.equal_range(path_);
  for (auto at = first; at != last; ++at) {
    if (at->second != this) continue;
    owner_.readers_open_.erase(at);
    break;
  }
  owner_.closed(path_, used_);
}

std::shared_ptr<io::File> DataFile::local() {
  used_ = owner_.use();
  const std::lock_guard lock(mutex_);
  return local_;
}

void DataFile::evict() {
  const std::lock_guard lock(mutex_);
  local_.reset();
}

Result<std::size_t> DataFile::read_at(std::uint64_t offset, std::span<std::byte> out) {
  if (const auto file = local()) return file->read_at(offset, out);
  const auto extents = owner_.distant(path_);
  if (extents) {
    auto got = owner_.data_.read(extents, offset, out);
    if (got || !is_absent(got.error())) return told(std::move(got));
  }
  // A newer head may have the bytes in other objects, or the file may be on the disk again.
  VARVE_TRY(owner_.load());
  const auto now = owner_.distant(path_);
  if (now) return told(owner_.data_.read(now, offset, out));
  VARVE_TRY_ASSIGN(const auto again, owner_.files_.open(owner_.full(path_), io::OpenMode::kRead));
  return again->read_at(offset, out);
}

Result<std::uint64_t> DataFile::size() {
  if (const auto file = local()) return file->size();
  return owner_.bytes(owner_.files_, path_);
}

void DataFile::will_read(std::uint64_t offset, std::uint64_t bytes) {
  if (const auto file = local()) {
    file->will_read(offset, bytes);
  } else if (const auto extents = owner_.distant(path_)) {
    owner_.data_.will_read(extents, offset, bytes);
  }
}

bool DataFile::drop(std::uint64_t offset, std::uint64_t bytes) {
  if (local()) return false;
  const auto extents = owner_.distant(path_);
  if (!extents) return false;
  owner_.data_.drop(extents, offset, bytes);
  return true;
}

bool DataFile::is_cached(std::uint64_t offset, std::uint64_t bytes) {
  const auto file = local();
  return file && file->is_cached(offset, bytes);
}

Result<void> LocalData::load() {
  if (is_told_) return {};
  VARVE_TRY_ASSIGN(const auto objects, load_());
  use_objects(objects, nullptr);
  return {};
}

void LocalData::set_objects(const ObjectMap& objects, const std::set<std::string>* changed) {
  is_told_ = true;
  use_objects(objects, changed);
}

void LocalData::use_objects(const ObjectMap& objects, const std::set<std::string>* changed) {
  std::map<std::string, Extents> covered;
  const auto add = [&](const std::string& path, const std::vector<Extent>& extents) {
    if (extents.empty() || extents.front().mark != 0 || !is_data_path(path)) return;
    covered[path] = std::make_shared<const std::vector<Extent>>(extents);
  };
  if (changed == nullptr) {
    for (const auto& [path, extents] : objects) add(path, extents);
  } else {
    for (const auto& path : *changed) {
      const auto found = objects.find(path);
      if (found != objects.end()) add(path, found->second);
    }
  }
  const std::lock_guard lock(mutex_);
  if (changed == nullptr) {
    covered_ = std::move(covered);
  } else {
    for (const auto& path : *changed) covered_.erase(path);
    covered_.merge(covered);
  }
  // A head that still names a file's object was created before the file was cut or removed.
  std::erase_if(cuts_, [this](const auto& one) {
    const auto now = covered_.find(one.first);
    return now == covered_.end() || now->second->front().object != one.second.object;
  });
}

Extents LocalData::covered(const std::string& path) const {
  const auto found = covered_.find(path);
  if (found == covered_.end()) return nullptr;
  const auto cut = cuts_.find(path);
  return cut != cuts_.end() && !cut->second.bytes ? nullptr : found->second;
}

std::uint64_t LocalData::covered_bytes(const std::string& path) const {
  const auto extents = covered(path);
  if (!extents) return 0;
  const auto bytes = bytes_of(*extents);
  const auto cut = cuts_.find(path);
  return cut == cuts_.end() ? bytes : std::min(bytes, *cut->second.bytes);
}

Extents LocalData::distant(const std::string& path) {
  const std::lock_guard lock(mutex_);
  auto extents = covered(path);
  if (!extents || covered_bytes(path) == bytes_of(*extents)) return extents;
  // The file was cut after the head, and ends earlier.
  std::vector<Extent> front;
  auto left = covered_bytes(path);
  for (auto extent : *extents) {
    if (left == 0) break;
    extent.bytes = std::min(extent.bytes, left);
    left -= extent.bytes;
    front.push_back(std::move(extent));
  }
  return std::make_shared<const std::vector<Extent>>(std::move(front));
}

Result<Extents> LocalData::covered_after_loading(const std::string& path) {
  auto found = distant(path);
  if (found || is_told_) return found;
  VARVE_TRY(load());
  return distant(path);
}

Result<std::shared_ptr<DataFile>> LocalData::open_to_read(io::FileSystem& disk,
                                                          const std::string& path,
                                                          io::OpenMode mode) {
  for (bool again = false;; again = true) {
    {
      // The lock keeps an eviction from removing the file before the file is registered as open.
      const std::lock_guard lock(mutex_);
      auto opened = disk.open(full(path), mode);
      if (opened) {
        auto file =
            std::make_shared<DataFile>(*this, path, std::shared_ptr<io::File>(std::move(*opened)));
        readers_open_.emplace(path, file.get());
        return file;
      }
      const bool is_missing = is_absent(opened.error());
      if (!is_missing || again) return std::move(opened).error();
    }
    VARVE_TRY_ASSIGN(const auto extents, covered_after_loading(path));
    if (extents) return std::make_shared<DataFile>(*this, path, nullptr);
  }
}

Result<std::unique_ptr<io::File>> LocalData::open(io::FileSystem& disk, const std::string& path,
                                                  io::OpenMode mode) {
  if (io::only_reads(mode)) {
    VARVE_TRY_ASSIGN(auto file, open_to_read(disk, path, mode));
    return std::unique_ptr<io::File>(std::make_unique<ReadFile>(*this, path, std::move(file)));
  }
  {
    const std::lock_guard lock(mutex_);
    VARVE_TRY_ASSIGN(const bool is_local, disk.exists(full(path)));
    if (is_local || !covered(path) || mode == io::OpenMode::kCreateNew) {
      VARVE_TRY_ASSIGN(auto file, disk.open(full(path), mode));
      VARVE_TRY_ASSIGN(const auto bytes, file->size());
      ++writers_[path];
      return std::unique_ptr<io::File>(
          std::make_unique<WrittenFile>(*this, path, std::move(file), bytes));
    }
  }
  // Otherwise, opening would create an empty file that hides the evicted file.
  return std::unique_ptr<io::File>(
      std::make_unique<ReadFile>(*this, path, std::make_shared<DataFile>(*this, path, nullptr)));
}

Result<void> LocalData::begin(const std::string& path) {
  if (begun_) begun_();
  const std::lock_guard lock(mutex_);
  const auto found = covered_.find(path);
  if (found == covered_.end()) return {};
  VARVE_TRY(note_change(path));
  cuts_[path] = {found->second->front().object, std::nullopt};
  return {};
}

Result<void> LocalData::note_change(const std::string& path) {
  if (notes_ == nullptr) return {};
  return notes_->add(LocalNote::kChanged, path);
}

Result<void> LocalData::remove(io::FileSystem& disk, const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto extents = covered(path);
  auto removed = disk.remove(full(path));
  if (!extents) return removed;
  if (!removed && !is_absent(removed.error())) return removed;
  cuts_[path] = {extents->front().object, std::nullopt};
  return {};
}

// A file replacing another file has other bytes than the store.
Result<void> LocalData::rename(io::FileSystem& disk, const std::string& from,
                               const std::string& to) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY(note_change(to));
  return disk.rename(full(from), full(to));
}

Result<std::vector<std::string>> LocalData::list(io::FileSystem& disk, const std::string& folder) {
  // An eviction between the lists leaves a name in both lists or in the second list.
  auto listed = disk.list(full(folder));
  if (!listed && !is_absent(listed.error())) return listed;
  std::set<std::string> names;
  if (listed) names.insert(listed->begin(), listed->end());
  VARVE_TRY(load());
  const std::lock_guard lock(mutex_);
  const auto prefix = folder + "/";
  for (auto at = covered_.lower_bound(prefix);
       at != covered_.end() && at->first.starts_with(prefix); ++at) {
    if (covered(at->first)) names.insert(at->first.substr(prefix.size()));
  }
  if (!listed && names.empty()) return std::move(listed).error();
  return std::vector<std::string>(names.begin(), names.end());
}

Result<bool> LocalData::exists(io::FileSystem& disk, const std::string& path) {
  VARVE_TRY_ASSIGN(const bool is_local, disk.exists(full(path)));
  if (is_local) return true;
  VARVE_TRY_ASSIGN(const auto extents, covered_after_loading(path));
  return extents != nullptr;
}

Result<bool> LocalData::is_evicted(const std::string& path) {
  VARVE_TRY_ASSIGN(const bool is_local, files_.exists(full(path)));
  return !is_local && distant(path) != nullptr;
}

Result<std::uint64_t> LocalData::bytes(io::FileSystem& disk, const std::string& path) {
  for (bool again = false;; again = true) {
    auto local = disk.tree_bytes(full(path));
    if (local || !is_absent(local.error()) || again) return local;
    VARVE_TRY_ASSIGN(const auto extents, covered_after_loading(path));
    if (extents) return bytes_of(*extents);
  }
}

Result<bool> LocalData::any_evicted(const std::string& folder) {
  for (const auto* const kind : {"/active", "/volumes"}) {
    const auto listed = files_.list(full(folder + kind));
    if (!listed && !is_absent(listed.error())) return listed.error();
    std::set<std::string> names;
    if (listed) names.insert(listed->begin(), listed->end());
    const std::lock_guard lock(mutex_);
    const auto prefix = folder + kind + "/";
    for (auto at = covered_.lower_bound(prefix);
         at != covered_.end() && at->first.starts_with(prefix); ++at) {
      if (covered(at->first) && !names.contains(at->first.substr(prefix.size()))) return true;
    }
  }
  return false;
}

void LocalData::closed(const std::string& path, std::uint64_t used) {
  auto& last = used_[path];
  last = std::max(last, used);
}

void LocalData::written(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto found = writers_.find(path);
  if (found != writers_.end() && --found->second == 0) writers_.erase(found);
  used_[path] = use();
}

base::ThreadPool& LocalData::readers() {
  const std::lock_guard lock(mutex_);
  if (!pool_) pool_ = std::make_unique<base::ThreadPool>(kReaders, "varve-local");
  return *pool_;
}

}  // namespace varve::remote
