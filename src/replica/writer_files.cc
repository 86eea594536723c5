// SPDX-License-Identifier: Apache-2.0
#include "replica/writer_files.h"

#include <optional>
#include <utility>
#include <vector>

#include "store/folder_store.h"
#include "store/segment_files.h"

namespace varve::replica {

namespace {

io::OpenMode mode_of(store::ReadMode mode) {
  switch (mode) {
    case store::ReadMode::kCached:
      return io::OpenMode::kRead;
    case store::ReadMode::kPlanned:
      return io::OpenMode::kReadPlanned;
    case store::ReadMode::kDirect:
      break;
  }
  return io::OpenMode::kReadDirect;
}

class WriterFiles final : public io::FileSystem {
 public:
  WriterFiles(std::unique_ptr<io::FileSystem> below, LocalData& data, std::string root,
              std::shared_ptr<const void> owner)
      : owner_(std::move(owner)), below_(std::move(below)), data_(data), root_(std::move(root)) {}

  Result<std::unique_ptr<io::File>> open(const std::string& path, io::OpenMode mode) override {
    const auto its = data_path(root_, path);
    return its ? data_.open(*its, mode) : below_->open(path, mode);
  }
  Result<base::UniqueFd> descriptor(const std::string& path, io::OpenMode mode) override {
    return below_->descriptor(path, mode);
  }
  Result<void> remove(const std::string& path) override {
    const auto its = data_path(root_, path);
    return its ? data_.remove(*its) : below_->remove(path);
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    const auto its = data_path(root_, from);
    const auto target = data_path(root_, to);
    if (!its || !target) return below_->rename(from, to);
    return data_.rename(*its, *target);
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    const auto its = data_path(root_, path);
    return its ? data_.list(*its) : below_->list(path);
  }
  Result<bool> exists(const std::string& path) override {
    const auto its = data_path(root_, path);
    return its && !names_folder(*its) ? data_.exists(*its) : below_->exists(path);
  }
  Result<std::uint64_t> tree_bytes(const std::string& path) override {
    const auto its = data_path(root_, path);
    if (!its) return below_->tree_bytes(path);
    return names_folder(*its) ? data_.folder_bytes(*its) : data_.bytes(*its);
  }

  Result<void> make_directory(const std::string& path) override {
    return below_->make_directory(path);
  }
  Result<void> sync_directory(const std::string& path) override {
    return below_->sync_directory(path);
  }
  std::uint64_t stored_bytes(const std::string& path, std::uint64_t bytes) override {
    return below_->stored_bytes(path, bytes);
  }
  std::optional<std::string> root_path() override { return below_->root_path(); }
  Result<SpaceInfo> space(const std::string& path) override { return below_->space(path); }
  Result<std::unique_ptr<io::FileLock>> lock(const std::string& path) override {
    return below_->lock(path);
  }
  Result<std::unique_ptr<io::FileLock>> lock_shared(const std::string& path) override {
    return below_->lock_shared(path);
  }

 private:
  const std::shared_ptr<const void> owner_;
  const std::unique_ptr<io::FileSystem> below_;
  LocalData& data_;
  const std::string root_;
};

class OpenData final : public store::OpenSegment {
 public:
  explicit OpenData(std::shared_ptr<DataFile> file) : file_(std::move(file)) {}
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
  [[nodiscard]] const std::shared_ptr<DataFile>& file() const { return file_; }

 private:
  const std::shared_ptr<DataFile> file_;
};

class WriterStore final : public store::SegmentStore {
 public:
  WriterStore(io::FileSystem& files, LocalData& data, std::string root, std::string directory,
              bool answers_later)
      : data_(data),
        root_(std::move(root)),
        answers_later_(answers_later),
        folder_(files, std::move(directory)) {}

  Result<void> prepare() override { return folder_.prepare(); }
  Result<std::shared_ptr<store::OpenSegment>> open(store::StoredFile file,
                                                   store::ReadMode mode) override {
    const auto its = data_path(root_, folder_.path(file));
    if (!its) return folder_.open(file, mode);  // Parity.
    VARVE_TRY_ASSIGN(auto opened, data_.open_to_read(*its, mode_of(mode)));
    return std::shared_ptr<store::OpenSegment>(std::make_shared<OpenData>(std::move(opened)));
  }

  // Requests all evicted ranges at once, and reads the local ranges meanwhile.
  void read_many(std::vector<store::RangeRead> ranges, store::ReadCompletion done) override {
    std::vector<DistantRead> reads;
    std::vector<std::size_t> positions;
    const auto shared = std::make_shared<const store::ReadCompletion>(std::move(done));
    const auto read_here = [&](std::size_t at) {
      data_.readers().run([shared, at, range = ranges[at]] {
        (*shared)(at, range.file->read_at(range.offset, range.out));
      });
    };
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      auto* const open = dynamic_cast<OpenData*>(ranges[i].file.get());
      const bool is_local = open == nullptr || open->file()->local() != nullptr;
      auto extents = is_local ? nullptr : data_.distant(open->file()->path());
      if (!extents) {
        read_here(i);
        continue;
      }
      reads.push_back({std::move(extents), ranges[i].offset, ranges[i].out, ranges[i].lent});
      positions.push_back(i);
    }
    if (reads.empty()) return;
    data_.data().read_many(std::move(reads), [positions = std::move(positions), shared](
                                                 std::size_t at, Result<std::size_t> got) {
      (*shared)(positions[at], std::move(got));
    });
  }
  [[nodiscard]] bool answers_later() const override { return answers_later_; }

  [[nodiscard]] std::uint64_t segment_bytes(std::uint64_t run_bytes) const override {
    return store::replicated_segment_bytes_for(run_bytes);
  }

  Result<std::unique_ptr<store::SegmentAppender>> create(SegmentNumber segment) override {
    if (const auto its = data_path(root_, folder_.path(segment))) VARVE_TRY(data_.begin(*its));
    return folder_.create(segment);
  }
  Result<void> sync(store::StoredFile file) override { return folder_.sync(file); }
  Result<void> sync_names(store::StoredKind kind) override { return folder_.sync_names(kind); }
  Result<void> write_again(SegmentNumber segment, std::uint64_t offset,
                           std::span<const std::byte> bytes) override {
    return folder_.write_again(segment, offset, bytes);
  }
  Result<void> put(store::StoredFile file,
                   std::span<const std::span<const std::byte>> parts) override {
    return folder_.put(file, parts);
  }
  Result<void> correct(store::StoredFile file,
                       const std::vector<store::Correction>& corrections) override {
    return folder_.correct(file, corrections);
  }
  Result<void> cut(store::StoredFile file, std::uint64_t bytes) override {
    return folder_.cut(file, bytes);
  }
  Result<void> remove(store::StoredFile file) override { return folder_.remove(file); }
  Result<void> remove_unfinished(store::StoredKind kind) override {
    return folder_.remove_unfinished(kind);
  }
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
  LocalData& data_;
  const std::string root_;
  const bool answers_later_;
  store::FolderStore folder_;
};

}  // namespace

std::unique_ptr<io::FileSystem> make_writer_files(std::unique_ptr<io::FileSystem> below,
                                                  LocalData& data, std::string root,
                                                  std::shared_ptr<const void> owner) {
  return std::make_unique<WriterFiles>(std::move(below), data, std::move(root), std::move(owner));
}

Result<std::unique_ptr<store::SegmentStore>> make_writer_store(io::FileSystem& files,
                                                               LocalData& data, std::string root,
                                                               std::string directory) {
  const auto folder = directory.substr(std::min(root.size() + 1, directory.size()));
  VARVE_TRY_ASSIGN(const bool any, data.any_evicted(folder));
  return std::unique_ptr<store::SegmentStore>(
      std::make_unique<WriterStore>(files, data, std::move(root), std::move(directory), any));
}

}  // namespace varve::replica
