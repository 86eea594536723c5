// SPDX-License-Identifier: Apache-2.0
// A segment store in a series' local folder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_system.h"
#include "store/segment_store.h"
#include "varve/result.h"

namespace varve::store {

/// The folder of parity below the series' folder.
inline constexpr const char* kParityFolder = "parity";

/// Keeps segments in active/, volumes in volumes/ and parity in parity/ below the series' folder.
/// read_many() reads in the calling thread, in the given order. A derived store may keep the files
/// elsewhere, too.
class FolderStore : public SegmentStore {
 public:
  /// `directory` is the series' own folder.
  /// Lifetime: `files` must outlive the store.
  FolderStore(io::FileSystem& files, std::string directory)
      : files_(files), directory_(std::move(directory)) {}

  [[nodiscard]] Result<void> prepare() override;
  [[nodiscard]] Result<std::shared_ptr<OpenSegment>> open(StoredFile file, ReadMode mode) override;
  void read_many(std::vector<RangeRead> ranges, ReadCompletion done) override;
  [[nodiscard]] Result<std::unique_ptr<SegmentAppender>> create(SegmentNumber segment) override;
  [[nodiscard]] Result<void> sync(StoredFile file) override;
  [[nodiscard]] Result<void> sync_names(StoredKind kind) override;
  [[nodiscard]] Result<void> write_again(SegmentNumber segment, std::uint64_t offset,
                                         std::span<const std::byte> bytes) override;
  [[nodiscard]] Result<void> put(StoredFile file,
                                 std::span<const std::span<const std::byte>> parts) override;
  [[nodiscard]] Result<void> correct(StoredFile file,
                                     const std::vector<Correction>& corrections) override;
  [[nodiscard]] Result<void> cut(StoredFile file, std::uint64_t bytes) override;
  [[nodiscard]] Result<void> remove(StoredFile file) override;
  [[nodiscard]] Result<void> remove_unfinished(StoredKind kind) override;
  [[nodiscard]] Result<std::vector<StoredFile>> list(StoredKind kind) override;
  [[nodiscard]] Result<std::uint64_t> size(StoredFile file) override;
  [[nodiscard]] Result<SpaceInfo> space() override;
  [[nodiscard]] std::string describe() const override { return directory_; }
  [[nodiscard]] std::string describe(StoredFile file) const override { return path(file); }

  /// Returns the path of a file.
  [[nodiscard]] std::string path(StoredFile file) const;

 protected:
  [[nodiscard]] io::FileSystem& files() const { return files_; }
  [[nodiscard]] std::string folder(StoredKind kind) const;
  // All accesses to files of a kind, and to temporary files beside them. They work like the
  // functions of io::FileSystem.
  [[nodiscard]] virtual Result<std::unique_ptr<io::File>> open_file(StoredKind kind,
                                                                    const std::string& path,
                                                                    io::OpenMode mode);
  [[nodiscard]] virtual Result<void> remove_file(StoredKind kind, const std::string& path);
  [[nodiscard]] virtual Result<void> rename_file(StoredKind kind, const std::string& from,
                                                 const std::string& to);
  [[nodiscard]] virtual Result<bool> has_file(StoredKind kind, const std::string& path);
  [[nodiscard]] virtual Result<std::uint64_t> file_bytes(StoredKind kind, const std::string& path);
  /// Returns the names in the folder of a kind.
  [[nodiscard]] virtual Result<std::vector<std::string>> file_names(StoredKind kind);

 private:
  [[nodiscard]] Result<void> swap_in(StoredFile file, const std::string& temporary);
  [[nodiscard]] Result<void> correct_by_swap(StoredFile file,
                                             const std::vector<Correction>& corrections);
  [[nodiscard]] Result<void> correct_in_place(StoredFile file,
                                              const std::vector<Correction>& corrections);

  io::FileSystem& files_;
  const std::string directory_;
};

/// Returns the mode in which a file of a store is opened for reading.
[[nodiscard]] io::OpenMode mode_of(ReadMode mode);

/// Opens the segment store in the folder `directory` of a series or of the pool. `files`: the file
/// system of the repository's folder on the disk.
/// Lifetime: `files` outlives the store.
using StoreOpener = std::function<std::unique_ptr<SegmentStore>(io::FileSystem& files,
                                                                const std::string& directory)>;
/// Returns the store from `open`; a FolderStore if `open` is empty: all data is on the disk.
[[nodiscard]] std::unique_ptr<SegmentStore> open_store(const StoreOpener& open,
                                                       io::FileSystem& files,
                                                       const std::string& directory);

}  // namespace varve::store
