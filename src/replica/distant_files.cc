// SPDX-License-Identifier: Apache-2.0
#include "replica/distant_files.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "replica/local_data.h"
#include "store/folder_store.h"

namespace varve::replica {

namespace {

Error read_only(const std::string& path) {
  return {ErrorCode::kReadOnly, path + " is in an object store, which this folder only reads"};
}

class DistantFile final : public io::File {
 public:
  DistantFile(DistantData& data, Extents extents, std::string path)
      : data_(data), extents_(std::move(extents)), path_(std::move(path)) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    return data_.read(extents_, offset, out);
  }
  Result<void> write_at(std::uint64_t, std::span<const std::byte>) override {
    return read_only(path_);
  }
  Result<void> sync() override { return {}; }
  Result<std::uint64_t> size() override { return bytes_of(*extents_); }
  Result<void> truncate(std::uint64_t) override { return read_only(path_); }
  void will_read(std::uint64_t offset, std::uint64_t bytes) override {
    data_.will_read(extents_, offset, bytes);
  }
  Result<std::uint64_t> seek_data(std::uint64_t offset) override {
    if (offset < bytes_of(*extents_)) return offset;
    return Error(ErrorCode::kPastEnd, path_);
  }
  Result<std::uint64_t> seek_hole(std::uint64_t offset) override {
    if (offset < bytes_of(*extents_)) return bytes_of(*extents_);
    return Error(ErrorCode::kPastEnd, path_);
  }

 private:
  DistantData& data_;
  const Extents extents_;
  const std::string path_;
};

class DistantFiles final : public io::FileSystem {
 public:
  DistantFiles(std::unique_ptr<io::FileSystem> below, DistantData& data, std::string root)
      : below_(std::move(below)), data_(data), root_(std::move(root)) {}

  Result<std::unique_ptr<io::File>> open(const std::string& path, io::OpenMode mode) override {
    const auto distant = data_path(root_, path);
    if (!distant) return below_->open(path, mode);
    if (!io::only_reads(mode)) return read_only(path);
    VARVE_TRY_ASSIGN(auto extents, data_.find(*distant));
    return std::unique_ptr<io::File>(
        std::make_unique<DistantFile>(data_, std::move(extents), path));
  }
  Result<base::UniqueFd> descriptor(const std::string& path, io::OpenMode mode) override {
    if (!data_path(root_, path)) return below_->descriptor(path, mode);
    return Error(ErrorCode::kUnsupported, path + " is in an object store");
  }
  Result<void> remove(const std::string& path) override {
    return data_path(root_, path) ? Result<void>(read_only(path)) : below_->remove(path);
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    if (data_path(root_, from)) return read_only(from);
    if (data_path(root_, to)) return read_only(to);
    return below_->rename(from, to);
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    const auto distant = data_path(root_, path);
    return distant ? data_.list(*distant) : below_->list(path);
  }
  Result<bool> exists(const std::string& path) override {
    const auto distant = data_path(root_, path);
    if (!distant) return below_->exists(path);
    if (names_folder(*distant)) return true;
    const auto found = data_.find(*distant);
    if (!found && found.error().code() != ErrorCode::kNotFound) return found.error();
    return found.has_value();
  }
  Result<std::uint64_t> tree_bytes(const std::string& path) override {
    const auto distant = data_path(root_, path);
    if (!distant) return below_->tree_bytes(path);
    if (names_folder(*distant)) return data_.tree_bytes(*distant);
    VARVE_TRY_ASSIGN(const auto extents, data_.find(*distant));
    return bytes_of(*extents);
  }

  Result<void> make_directory(const std::string& path) override {
    return data_path(root_, path) ? Result<void>() : below_->make_directory(path);
  }
  Result<void> sync_directory(const std::string& path) override {
    return data_path(root_, path) ? Result<void>() : below_->sync_directory(path);
  }
  std::uint64_t stored_bytes(const std::string& path, std::uint64_t bytes) override {
    return below_->stored_bytes(path, bytes);
  }
  std::optional<std::string> root_path() override { return below_->root_path(); }
  Result<SpaceInfo> space(const std::string& path) override {
    return below_->space(data_path(root_, path) ? root_ : path);
  }
  Result<std::unique_ptr<io::FileLock>> lock(const std::string& path) override {
    return below_->lock(path);
  }
  Result<std::unique_ptr<io::FileLock>> lock_shared(const std::string& path) override {
    return below_->lock_shared(path);
  }

 private:
  const std::unique_ptr<io::FileSystem> below_;
  DistantData& data_;
  const std::string root_;
};

class OpenDistant final : public store::OpenSegment {
 public:
  OpenDistant(DistantData& data, std::string path, Extents extents)
      : data_(data), path_(std::move(path)), extents_(std::move(extents)) {}
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    return data_.read(extents(offset + out.size()), offset, out);
  }
  Result<std::uint64_t> size() override { return bytes_of(*extents(0)); }
  /// Returns the extents to read the bytes before `end` from. A newer head may have a longer file,
  /// or none: the objects of the older head stay for a day.
  [[nodiscard]] Extents extents(std::uint64_t end) const {
    auto now = data_.known(path_);
    if (!now || (bytes_of(*now) < end && bytes_of(*now) < bytes_of(*extents_))) return extents_;
    return now;
  }
  void will_read(std::uint64_t offset, std::uint64_t bytes) override {
    data_.will_read(extents(offset + bytes), offset, bytes);
  }
  bool drop(std::uint64_t offset, std::uint64_t bytes) override {
    data_.drop(extents(offset + bytes), offset, bytes);
    return true;
  }

 private:
  DistantData& data_;
  const std::string path_;
  const Extents extents_;  // Those of the opening.
};

class DistantStore final : public store::SegmentStore {
 public:
  DistantStore(io::FileSystem& files, DistantData& data, const std::string& root,
               std::string directory)
      : data_(data), root_(root), folder_(files, std::move(directory)) {}

  Result<void> prepare() override { return read_only(describe()); }
  Result<std::shared_ptr<store::OpenSegment>> open(store::StoredFile file,
                                                   store::ReadMode mode) override {
    const auto distant = data_path(root_, folder_.path(file));
    if (!distant) return folder_.open(file, mode);  // Parity is on the local disk.
    VARVE_TRY_ASSIGN(auto extents, data_.find(*distant));
    return std::shared_ptr<store::OpenSegment>(
        std::make_shared<OpenDistant>(data_, *distant, std::move(extents)));
  }
  void read_many(std::vector<store::RangeRead> ranges, store::ReadCompletion done) override {
    std::vector<DistantRead> reads;
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      auto* const distant = dynamic_cast<OpenDistant*>(ranges[i].file.get());
      if (distant == nullptr) {
        done(i, ranges[i].file->read_at(ranges[i].offset, ranges[i].out));
        continue;
      }
      const auto end = ranges[i].offset + ranges[i].out.size();
      reads.push_back({distant->extents(end), ranges[i].offset, ranges[i].out, ranges[i].lent});
      positions.push_back(i);
    }
    data_.read_many(std::move(reads), [positions = std::move(positions), done = std::move(done)](
                                          std::size_t at, Result<std::size_t> got) {
      done(positions[at], std::move(got));
    });
  }
  [[nodiscard]] bool answers_later() const override { return true; }

  Result<std::unique_ptr<store::SegmentAppender>> create(SegmentNumber) override {
    return read_only(describe());
  }
  Result<void> sync(store::StoredFile) override { return {}; }
  Result<void> sync_names(store::StoredKind) override { return {}; }
  Result<void> write_again(SegmentNumber, std::uint64_t, std::span<const std::byte>) override {
    return read_only(describe());
  }
  Result<void> put(store::StoredFile, std::span<const std::span<const std::byte>>) override {
    return read_only(describe());
  }
  Result<void> correct(store::StoredFile, const std::vector<store::Correction>&) override {
    return read_only(describe());
  }
  Result<void> cut(store::StoredFile, std::uint64_t) override { return read_only(describe()); }
  Result<void> remove(store::StoredFile) override { return read_only(describe()); }
  Result<void> remove_unfinished(store::StoredKind) override { return {}; }
  Result<std::vector<store::StoredFile>> list(store::StoredKind kind) override {
    return folder_.list(kind);
  }
  Result<std::uint64_t> size(store::StoredFile file) override { return folder_.size(file); }
  Result<SpaceInfo> space() override { return folder_.space(); }
  [[nodiscard]] std::string describe() const override { return folder_.describe(); }
  [[nodiscard]] std::string describe(store::StoredFile file) const override {
    return folder_.describe(file);
  }

 private:
  DistantData& data_;
  const std::string root_;
  store::FolderStore folder_;
};

}  // namespace

std::unique_ptr<io::FileSystem> make_distant_files(std::unique_ptr<io::FileSystem> below,
                                                   DistantData& data, std::string root) {
  return std::make_unique<DistantFiles>(std::move(below), data, std::move(root));
}

std::unique_ptr<store::SegmentStore> make_distant_store(io::FileSystem& files, DistantData& data,
                                                        const std::string& root,
                                                        std::string directory) {
  return std::make_unique<DistantStore>(files, data, root, std::move(directory));
}

}  // namespace varve::replica
