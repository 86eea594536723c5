// SPDX-License-Identifier: Apache-2.0
// A sealed version: the tree from the catalog, the files through the restore engine.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "catalog/dir_tree.h"
#include "catalog/link_table.h"
#include "catalog/object_store.h"
#include "catalog/series_catalog.h"
#include "layout/layout.h"
#include "restore/read_service.h"
#include "restore/recipe_index.h"
#include "varve/browse.h"

namespace varve::version {

/// Counts the open files of a sealed version in all readers of the version. Thread-safe.
class OpenFiles {
 public:
  /// Counts one more open file. Returns false once the version is being deleted.
  [[nodiscard]] bool enter();
  void leave() { --count_; }
  [[nodiscard]] bool any() const { return count_ > 0; }
  /// Makes enter() refuse from now on. Returns false, without effect, while files are open.
  [[nodiscard]] bool close();
  /// Makes enter() and every read of an open file fail from now on.
  void cut_off() { count_ += kClosed; }
  /// Reverts a close() or a cut_off().
  void reopen() { count_ -= kClosed; }
  /// Returns true between cut_off() (or close()) and reopen().
  [[nodiscard]] bool closed() const { return count_ < 0; }

 private:
  static constexpr std::int64_t kClosed = INT64_MIN / 2;
  std::atomic<std::int64_t> count_{0};
};

/// The parts used by a sealed version for reads. Lifetime: all parts must outlive the version.
struct SealedVersionParts {
  catalog::ObjectReader* objects = nullptr;
  layout::ChunkSource* source = nullptr;
  restore::ReadService* read_service = nullptr;
  std::shared_ptr<OpenFiles> open_files;  ///< Null: open files are not counted.
  /// Called for each opened file; may be null. Thread-safe.
  std::function<void(const format::Recipe&)> on_open{};
  /// Returns the version's table of hard links, or nullopt if none is stored. May be null.
  std::function<Result<std::optional<catalog::LinkTable>>()> links{};
};

/// Reads a sealed version. Thread-safe.
class SealedVersion final : public VersionReader,
                            public std::enable_shared_from_this<SealedVersion> {
 public:
  SealedVersion(const SealedVersionParts& parts, VersionInfo info, format::DirEntry root);

  [[nodiscard]] const VersionInfo& info() const override { return info_; }
  [[nodiscard]] Result<SealedEntry> get(Rank rank) override;
  [[nodiscard]] Result<SealedEntry> lookup(Rank directory, std::string_view name) override;
  [[nodiscard]] Result<Rank> parent(Rank rank) override;
  [[nodiscard]] Result<void> list(Rank directory, std::uint64_t after,
                                  const Visitor& visit) override;
  [[nodiscard]] Result<std::string> read_link(Rank rank) override;
  [[nodiscard]] Result<Xattrs> xattrs(Rank rank) override;
  [[nodiscard]] Result<bool> may_have_xattrs(const std::function<bool()>& goes_on) override;
  [[nodiscard]] Result<std::shared_ptr<FileReader>> open(Rank rank) override;
  [[nodiscard]] Result<void> locate_data(Rank rank, std::uint64_t offset,
                                         const PieceVisitor& visit) override;
  void read_pieces(std::span<const StoredPiece> pieces, const PieceTaker& take) override;
  void will_read_all() override;

  [[nodiscard]] Result<bool> is_same(Rank rank, VersionReader& other, Rank other_rank) override;
  [[nodiscard]] Result<void> list_changes(Rank rank, VersionReader* before, Rank before_rank,
                                          const RangeVisitor& visit) override;
  [[nodiscard]] Result<void> list_chunks(Rank rank, std::uint64_t offset, std::uint64_t bytes,
                                         const ChunkVisitor& visit) override;
  [[nodiscard]] Result<std::vector<LinkedName>> linked_names() override;

  /// A stored entry, with a regular file's recipe (else null).
  struct Stored {
    format::DirEntry entry;
    std::shared_ptr<const format::Recipe> recipe;
  };
  [[nodiscard]] Result<Stored> stored(Rank rank);

 private:
  /// A file whose chunks are listed. A copy lists the chunks range by range.
  struct ListedFile {
    ListedFile(Rank its_rank, std::shared_ptr<const format::Recipe> its_recipe)
        : rank(its_rank), recipe(std::move(its_recipe)) {}
    const Rank rank;
    restore::RecipeIndex recipe;
  };
  [[nodiscard]] Result<std::shared_ptr<ListedFile>> listed(Rank rank);
  [[nodiscard]] restore::ReadableFile readable(Rank rank);
  [[nodiscard]] SealedEntry entry_of(const catalog::TreeEntry& found) const;

  const SealedVersionParts parts_;
  const VersionInfo info_;
  const format::DirEntry root_;
  const catalog::DirTree tree_;
  std::mutex listed_mutex_;             // Guards the member below. Innermost.
  std::shared_ptr<ListedFile> listed_;  // The last listed file.
};

/// A regular file of a sealed version. Thread-safe; keeps the version alive.
class SealedFile final : public FileReader {
 public:
  /// The caller has called enter() on `open_files`; the destructor calls leave(). Null: the file is
  /// not counted.
  SealedFile(std::shared_ptr<SealedVersion> version, std::shared_ptr<OpenFiles> open_files,
             std::shared_ptr<const format::Recipe> recipe,
             std::unique_ptr<restore::ReadHandle> handle);
  SealedFile(const SealedFile&) = delete;
  SealedFile& operator=(const SealedFile&) = delete;
  ~SealedFile() override;

  [[nodiscard]] const SealedVersion& version() const { return *version_; }
  [[nodiscard]] const std::shared_ptr<const format::Recipe>& recipe() const { return recipe_; }

  [[nodiscard]] Result<ReadBytes> read_as(const ReadRequest& request) override;
  [[nodiscard]] Result<std::uint64_t> seek_data(std::uint64_t offset) override;
  [[nodiscard]] Result<std::uint64_t> seek_hole(std::uint64_t offset) override;
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  /// Returns the number of runs visited by seeks, for tests of the cost of a seek.
  [[nodiscard]] std::uint64_t runs_visited() const { return index_.runs_visited(); }

 private:
  /// Returns true once the version was deleted in spite of the open file.
  [[nodiscard]] bool cut_off() const { return open_files_ && open_files_->closed(); }

  const std::shared_ptr<SealedVersion> version_;
  const std::shared_ptr<OpenFiles> open_files_;
  const std::shared_ptr<const format::Recipe> recipe_;
  const std::uint64_t size_;
  restore::RecipeIndex index_;
  const std::unique_ptr<restore::ReadHandle> handle_;
};

/// Returns the recipe of a regular file's entry.
[[nodiscard]] Result<std::shared_ptr<const format::Recipe>> recipe_of(
    catalog::ObjectReader& objects, const format::DirEntry& entry);

}  // namespace varve::version
