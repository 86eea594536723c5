// SPDX-License-Identifier: Apache-2.0
#include "remote/writer_store.h"

#include <utility>
#include <vector>

#include "store/folder_store.h"
#include "store/segment_files.h"

namespace varve::remote {

namespace {

class OpenData final : public store::OpenSegment {
 public:
  OpenData(LocalData& data, std::shared_ptr<DataFile> file) : data_(data), file_(std::move(file)) {}
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    return file_->read_at(offset, out);
  }
  Result<std::uint64_t> size() override { return file_->size(); }
  void will_read(std::uint64_t offset, std::uint64_t bytes) override {
    file_->will_read(offset, bytes);
  }
  bool drop(std::uint64_t offset, std::uint64_t bytes) override {
    return file_->drop(offset, bytes);
  }
  bool is_cached(std::uint64_t offset, std::uint64_t bytes) override {
    return file_->is_cached(offset, bytes);
  }
  bool add_to(store::DistantBatch& batch, const store::RangeRead& range) override {
    if (file_->local() != nullptr) return false;
    auto extents = data_.distant(file_->path());
    if (!extents) return false;
    batch.reads.push_back({std::move(extents), range.offset, range.out, range.lent});
    return true;
  }

 private:
  LocalData& data_;
  const std::shared_ptr<DataFile> file_;
};

class WriterStore final : public store::FolderStore {
 public:
  WriterStore(io::FileSystem& files, LocalData& data, const std::string& root,
              std::string directory, bool answers_later)
      : FolderStore(files, std::move(directory)),
        data_(data),
        root_bytes_(root.size() + 1),
        answers_later_(answers_later) {}

  Result<std::shared_ptr<store::OpenSegment>> open(store::StoredFile file,
                                                   store::ReadMode mode) override {
    if (!is_data(store::kind_of(file))) return FolderStore::open(file, mode);
    VARVE_TRY_ASSIGN(auto opened,
                     data_.open_to_read(files(), below_root(path(file)), store::mode_of(mode)));
    return std::shared_ptr<store::OpenSegment>(
        std::make_shared<OpenData>(data_, std::move(opened)));
  }

  // Requests all evicted ranges at once, and reads the local ranges meanwhile.
  void read_many(std::vector<store::RangeRead> ranges, store::ReadCompletion done) override {
    store::DistantBatch batch;
    std::vector<std::size_t> positions;
    const auto shared = std::make_shared<const store::ReadCompletion>(std::move(done));
    const auto read_here = [&](std::size_t at) {
      data_.readers().run([shared, at, range = ranges[at]] {
        (*shared)(at, range.file->read_at(range.offset, range.out));
      });
    };
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (ranges[i].file->add_to(batch, ranges[i])) {
        positions.push_back(i);
      } else {
        read_here(i);
      }
    }
    if (batch.reads.empty()) return;
    data_.data().read_many(std::move(batch.reads), [positions = std::move(positions), shared](
                                                       std::size_t at, Result<std::size_t> got) {
      (*shared)(positions[at], std::move(got));
    });
  }
  [[nodiscard]] bool answers_later() const override { return answers_later_; }

  [[nodiscard]] std::uint64_t segment_bytes(std::uint64_t run_bytes) const override {
    return store::replicated_segment_bytes_for(run_bytes);
  }

  Result<std::unique_ptr<store::SegmentAppender>> create(SegmentNumber segment) override {
    VARVE_TRY(data_.begin(below_root(path(segment))));
    return FolderStore::create(segment);
  }

 protected:
  Result<std::unique_ptr<io::File>> open_file(store::StoredKind kind, const std::string& path,
                                              io::OpenMode mode) override {
    if (!is_data(kind)) return FolderStore::open_file(kind, path, mode);
    return data_.open(files(), below_root(path), mode);
  }
  Result<void> remove_file(store::StoredKind kind, const std::string& path) override {
    if (!is_data(kind)) return FolderStore::remove_file(kind, path);
    return data_.remove(files(), below_root(path));
  }
  Result<void> rename_file(store::StoredKind kind, const std::string& from,
                           const std::string& to) override {
    if (!is_data(kind)) return FolderStore::rename_file(kind, from, to);
    return data_.rename(files(), below_root(from), below_root(to));
  }
  Result<bool> has_file(store::StoredKind kind, const std::string& path) override {
    if (!is_data(kind)) return FolderStore::has_file(kind, path);
    return data_.exists(files(), below_root(path));
  }
  Result<std::uint64_t> file_bytes(store::StoredKind kind, const std::string& path) override {
    if (!is_data(kind)) return FolderStore::file_bytes(kind, path);
    return data_.bytes(files(), below_root(path));
  }
  Result<std::vector<std::string>> file_names(store::StoredKind kind) override {
    if (!is_data(kind)) return FolderStore::file_names(kind);
    return data_.list(files(), below_root(folder(kind)));
  }

 private:
  // Parity is only on the disk.
  static bool is_data(store::StoredKind kind) { return kind != store::StoredKind::kGroups; }
  [[nodiscard]] std::string below_root(const std::string& path) const {
    return path.substr(root_bytes_);
  }

  LocalData& data_;
  const std::size_t root_bytes_;  // Of the root's path, with the slash.
  const bool answers_later_;
};

}  // namespace

std::unique_ptr<store::SegmentStore> make_writer_store(io::FileSystem& files, LocalData& data,
                                                       const std::string& root,
                                                       std::string directory) {
  // Without a list of the folder, some files may be evicted.
  const auto any = data.any_evicted(directory.substr(std::min(root.size() + 1, directory.size())));
  return std::make_unique<WriterStore>(files, data, root, std::move(directory), !any || *any);
}

}  // namespace varve::remote
