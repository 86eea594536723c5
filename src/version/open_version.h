// SPDX-License-Identifier: Apache-2.0
// An open version: the mutable tree written by a mount or `varve store`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/id_runs.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "store/space_guard.h"
#include "varve/backup.h"
#include "varve/browse.h"
#include "varve/mount.h"
#include "version/checkpointer.h"
#include "version/clone_base.h"
#include "version/clone_sources.h"
#include "version/content_streams.h"
#include "version/known_chunks.h"
#include "version/open_attributes.h"
#include "version/open_contents.h"
#include "version/open_names.h"
#include "version/open_state.h"
#include "version/removed_inodes.h"
#include "version/staged_ingest.h"
#include "version/staging_area.h"

namespace varve::version {

/// A writable version. Thread-safe.
///
/// OpenVersion owns the parts of an open version and forwards each call to one part. See OpenState
/// for the parts, the layers of the parts, and the lock order.
class OpenVersion final : public VersionWriter,
                          public RemovedFiles,
                          public store::SpaceUser,
                          public std::enable_shared_from_this<OpenVersion> {
 public:
  using Unsaved = Checkpointer::Unsaved;

  /// Opens the overlay and continues from the last checkpoint. Without an overlay, the version
  /// equals the base, or is empty with `root` as root directory, and has no files, no thread and no
  /// large memory until the first change.
  [[nodiscard]] static Result<std::shared_ptr<OpenVersion>> open(const OpenVersionParts& parts,
                                                                 const VersionInfo& info,
                                                                 const NewFile& root);
  ~OpenVersion() override;

  // ---- VersionWriter. ----

  [[nodiscard]] VersionInfo info() const override;
  [[nodiscard]] Result<OpenEntry> get(Ino ino) override { return attributes_.get(ino); }
  [[nodiscard]] Result<OpenEntry> lookup(Ino directory, std::string_view name) override {
    return names_.lookup(directory, name);
  }
  [[nodiscard]] Result<Ino> parent(Ino directory) override { return names_.parent(directory); }
  [[nodiscard]] Result<void> list(Ino directory, std::string_view after,
                                  const Visitor& visit) override {
    return names_.list(directory, after, visit);
  }
  [[nodiscard]] Result<OpenEntry> create(Ino directory, std::string_view name,
                                         const NewFile& file) override {
    return names_.create(directory, name, file);
  }
  [[nodiscard]] Result<OpenEntry> link(Ino target, Ino directory, std::string_view name) override {
    return names_.link(target, directory, name);
  }
  [[nodiscard]] Result<OpenEntry> clone(VersionReader& source, Rank rank, Ino directory,
                                        std::string_view name) override {
    return names_.clone(source, rank, directory, name);
  }
  [[nodiscard]] Result<void> unlink(Ino directory, std::string_view name) override {
    return names_.unlink(directory, name);
  }
  [[nodiscard]] Result<void> remove_directory(Ino directory, std::string_view name) override {
    return names_.remove_directory(directory, name);
  }
  [[nodiscard]] Result<void> rename(Ino from_directory, std::string_view from_name,
                                    Ino to_directory, std::string_view to_name,
                                    RenameMode mode) override {
    return names_.rename(from_directory, from_name, to_directory, to_name, mode);
  }
  [[nodiscard]] Result<OpenEntry> set_attributes(Ino ino, const AttributeChange& change) override {
    return attributes_.set_attributes(ino, change);
  }
  [[nodiscard]] Result<std::string> read_link(Ino ino) override {
    return attributes_.read_link(ino);
  }
  [[nodiscard]] Result<Xattrs> xattrs(Ino ino) override { return attributes_.xattrs(ino); }
  [[nodiscard]] Result<void> set_xattr(Ino ino, std::string_view name, std::string_view value,
                                       XattrMode mode) override {
    return attributes_.set_xattr(ino, name, value, mode);
  }
  [[nodiscard]] Result<void> remove_xattr(Ino ino, std::string_view name) override {
    return attributes_.remove_xattr(ino, name);
  }
  [[nodiscard]] Result<std::unique_ptr<OpenFile>> open(Ino ino, bool for_writing) override;
  void read_known(std::span<const WantedChunk> wanted, KnownChunks which,
                  std::span<bool> found) override {
    read_known_chunks(state_, wanted, which, found);
  }
  [[nodiscard]] Result<Xattrs> own_attributes() override { return attributes_.own_attributes(); }
  [[nodiscard]] Result<void> sync() override {
    return checkpointer_.checkpoint(Checkpointer::Extent::kAll);
  }
  [[nodiscard]] std::size_t writers() const override { return state_.writers; }
  [[nodiscard]] RemovedFiles* removed_files() override { return this; }

  // ---- RemovedFiles and SpaceUser. ----

  void keep_removed() override { removed_.keep(); }
  void forget(Ino ino) override { removed_.forget(ino); }
  [[nodiscard]] std::uint64_t unwritten_bytes() const override {
    return checkpointer_.unwritten_bytes();
  }
  [[nodiscard]] std::uint64_t sealing_bytes() const override {
    return checkpointer_.sealing_bytes();
  }
  void store_accepted() override { checkpointer_.store_accepted(); }

  // ---- For sealing. ----

  /// Refuses further changes (kReadOnly), then brings everything to rest in the overlay. On error
  /// the version accepts changes again. With kCutOff, files open for writing come to rest with the
  /// data written so far, and the files' handles fail from then on.
  /// Errors: kBusy for files open for writing, without kCutOff.
  [[nodiscard]] Result<void> freeze(SealWriters writers = SealWriters::kRefuse) {
    return checkpointer_.freeze(writers);
  }
  /// Refuses further changes, but stores nothing: the version is about to be dropped.
  /// Errors: kBusy as freeze().
  [[nodiscard]] Result<void> freeze_to_drop() { return checkpointer_.freeze_to_drop(); }
  /// Accepts changes again after freeze() or freeze_to_drop().
  void thaw() { checkpointer_.thaw(); }
  /// Ends background work; the version must not be used afterwards, only destroyed. The repository
  /// may end before the version is destroyed.
  void stop();
  /// Returns the overlay's environment. The version must be frozen. Errors: as Overlay::use().
  [[nodiscard]] Result<Overlay::Use> overlay() { return state_.overlay->use(); }

  // ---- For the repository. ----

  /// Returns all chunks referred to by the version's files, except the chunks of a base. Calls
  /// `retire` first, while no thread is between the lookup of a chunk and the new reference. So no
  /// file ever refers to a chunk removed from the index by `retire` and missing in the result.
  [[nodiscard]] Result<base::IdRuns> references(const std::function<void()>& retire);
  /// Returns the base; null unless the version started as a clone.
  [[nodiscard]] const CloneBase* base() const { return state_.parts.base.get(); }
  /// Gives the version another name.
  void rename_to(std::string name);
  [[nodiscard]] Result<bool> is_empty();
  /// Returns the time of the last write to the version, its metadata included. The time is at most
  /// a checkpoint's interval too late, and is known across restarts.
  [[nodiscard]] Timestamp changed_at() const;
  /// Returns the number of names in the version.
  [[nodiscard]] std::uint64_t entries() const;
  /// Returns the changes not yet durable, lost by a crash.
  [[nodiscard]] Unsaved unsaved() const { return checkpointer_.unsaved(); }
  /// Returns stored_entries() of the version in `directory`.
  [[nodiscard]] static std::optional<std::uint64_t> entries_in(io::FileSystem& files,
                                                               const std::string& directory,
                                                               const meta::EnvKeys& keys) {
    return stored_entries(files, directory, keys);
  }

 private:
  OpenVersion(const OpenVersionParts& parts, const VersionInfo& info);

  // Each part uses only the parts above.
  OpenState state_;
  RemovedInodes removed_;
  ContentStreams streams_;
  StagingArea staging_;
  OpenContents contents_;
  StagedIngest ingest_;
  CloneSources clones_;
  Checkpointer checkpointer_;
  OpenNames names_;
  OpenAttributes attributes_;
  std::atomic<bool> counted_{false};  // True while the space guard counts the version.
};

}  // namespace varve::version
