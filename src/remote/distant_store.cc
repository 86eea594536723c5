// SPDX-License-Identifier: Apache-2.0
#include "remote/distant_store.h"

#include <algorithm>
#include <utility>

#include "store/folder_store.h"

namespace varve::remote {

namespace {

Error read_only(const std::string& path) {
  return {ErrorCode::kReadOnly, path + " is in an object store, which this folder only reads"};
}

class OpenDistant final : public store::OpenSegment {
 public:
  OpenDistant(DistantData& data, std::string path, Extents extents)
      : data_(data), path_(std::move(path)), extents_(std::move(extents)) {}
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    return data_.read(extents(offset + out.size()), offset, out);
  }
  Result<std::uint64_t> size() override { return bytes_of(*extents(0)); }
  void will_read(std::uint64_t offset, std::uint64_t bytes) override {
    data_.will_read(extents(offset + bytes), offset, bytes);
  }
  bool drop(std::uint64_t offset, std::uint64_t bytes) override {
    data_.drop(extents(offset + bytes), offset, bytes);
    return true;
  }
  bool add_to(store::DistantBatch& batch, const store::RangeRead& range) override {
    const auto end = range.offset + range.out.size();
    batch.reads.push_back({extents(end), range.offset, range.out, range.lent});
    return true;
  }

 private:
  /// Returns the extents to read the bytes before `end` from. A newer head may have a longer file,
  /// or none: the objects of the older head stay for a day.
  [[nodiscard]] Extents extents(std::uint64_t end) const {
    auto now = data_.known(path_);
    if (!now || (bytes_of(*now) < end && bytes_of(*now) < bytes_of(*extents_))) return extents_;
    return now;
  }

  DistantData& data_;
  const std::string path_;
  const Extents extents_;  // Those of the opening.
};

class DistantStore final : public store::FolderStore {
 public:
  DistantStore(io::FileSystem& files, DistantData& data, const std::string& root,
               std::string directory)
      : FolderStore(files, std::move(directory)), data_(data), root_bytes_(root.size() + 1) {}

  Result<void> prepare() override { return read_only(describe()); }
  Result<std::shared_ptr<store::OpenSegment>> open(store::StoredFile file,
                                                   store::ReadMode /*mode*/) override {
    const auto distant = below_root(path(file));
    VARVE_TRY_ASSIGN(auto extents, data_.find(distant));
    return std::shared_ptr<store::OpenSegment>(
        std::make_shared<OpenDistant>(data_, distant, std::move(extents)));
  }
  void read_many(std::vector<store::RangeRead> ranges, store::ReadCompletion done) override {
    store::DistantBatch batch;
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (ranges[i].file->add_to(batch, ranges[i])) {
        positions.push_back(i);
      } else {
        done(i, ranges[i].file->read_at(ranges[i].offset, ranges[i].out));
      }
    }
    data_.read_many(
        std::move(batch.reads),
        [positions = std::move(positions), done = std::move(done)](
            std::size_t at, Result<std::size_t> got) { done(positions[at], std::move(got)); });
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

 protected:
  Result<std::uint64_t> file_bytes(store::StoredKind /*kind*/, const std::string& path) override {
    VARVE_TRY_ASSIGN(const auto extents, data_.find(below_root(path)));
    return bytes_of(*extents);
  }
  Result<std::vector<std::string>> file_names(store::StoredKind kind) override {
    return data_.list(below_root(folder(kind)));
  }

 private:
  [[nodiscard]] std::string below_root(const std::string& path) const {
    return path.substr(root_bytes_);
  }

  DistantData& data_;
  const std::size_t root_bytes_;  // Of the root's path, with the slash.
};

}  // namespace

std::unique_ptr<store::SegmentStore> make_distant_store(io::FileSystem& files, DistantData& data,
                                                        const std::string& root,
                                                        std::string directory) {
  return std::make_unique<DistantStore>(files, data, root, std::move(directory));
}

}  // namespace varve::remote
