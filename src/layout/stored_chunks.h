// SPDX-License-Identifier: Apache-2.0
// Finds and reads the chunks of a store, independent of the placement policy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "format/container_record.h"
#include "format/frame_codec.h"
#include "layout/header_cache.h"
#include "layout/layout.h"
#include "layout/segment_ledger.h"
#include "meta/lmdb.h"
#include "store/container_writer.h"
#include "store/segment_files.h"
#include "store/segment_store.h"

namespace varve::store {
class FoundDamage;
}  // namespace varve::store

namespace varve::layout {

/// The chunks of a store. Thread-safe.
class StoredChunks final : public ChunkSource {
 public:
  /// Keeps open files in `open_files`, or privately if `open_files` is null. Notes damaged chunks
  /// in `damage`, which may be null. Lifetime: the arguments outlive the object.
  StoredChunks(const meta::Env& catalog, store::SegmentStore& store,
               const format::FrameCodec& codec, StoreId id, store::OpenFiles* open_files,
               store::FoundDamage* damage = nullptr)
      : catalog_(catalog),
        store_(store),
        codec_(codec),
        id_(id),
        damage_(damage),
        reader_(store, codec.keys(), open_files) {}

  [[nodiscard]] const format::FrameCodec& codec() const override { return codec_; }
  /// Finds an alias at the place of the target.
  [[nodiscard]] Result<LocationRun> locate(ChunkId id) override;
  [[nodiscard]] Result<StoredRun> stored_run(const base::IdRun& run) override;
  [[nodiscard]] Result<std::shared_ptr<const format::ContainerHeader>> header(
      ContainerNumber container) override;
  [[nodiscard]] Result<void> read_data(ContainerNumber container, std::uint32_t offset,
                                       std::span<std::byte> out) override;
  [[nodiscard]] Result<store::UnreadParts> read_around(ContainerNumber container,
                                                       std::uint32_t offset,
                                                       std::span<std::byte> out) override;
  [[nodiscard]] Result<std::span<const std::byte>> read_once(ContainerNumber container,
                                                             std::uint32_t offset,
                                                             std::size_t bytes,
                                                             std::span<std::byte> room) override;
  [[nodiscard]] bool answers_later() const override { return store_.answers_later(); }
  void read_many(const std::vector<DataRead>& reads, const DataCompletion& done) override;
  void will_read_header(ContainerNumber container) override;
  void will_read_all(ContainerNumber container) override;
  void will_read_chunks(ContainerNumber container, std::uint32_t index,
                        std::uint32_t count) override;
  bool drop(ContainerNumber container) override;
  void note_damage(const format::ContainerHeader& header, std::uint32_t frame,
                   const Error& error) override;
  void will_read_data(ContainerNumber container, std::uint32_t offset, std::size_t bytes) override;
  [[nodiscard]] Result<std::uint64_t> place_of(ContainerNumber container) override;

  /// Notes that reading the header of a container ended with `error`, and so all chunks of the
  /// container. Ignores errors that are no damage.
  void note_damage(ContainerNumber container, const Error& error);
  /// Logs that arranging leaves the damaged chunks of a container in place.
  void log_damage(ContainerNumber container, const Error& error);

  /// Adds a container that is written and not yet in the catalog, and finds its chunks from now on.
  void add_written(const store::WrittenContainer& written);
  /// Forgets written containers: they are in the catalog now, or dropped.
  void forget_written(const std::vector<store::WrittenContainer>& written);

  /// Returns the sum of format::chunk_digest() of `ids`: located chunks of this store. Reads only
  /// the tables of containers not written by this object, and of containers with only a part in
  /// `ids`. Forgets the stored digests of the births of `ids`.
  /// Errors: kCorrupt for chunks without a place, or in a container without a record; errors of the
  /// disk.
  [[nodiscard]] Result<std::uint64_t> digest(const base::IdRuns& ids);

  /// Frees files without a committed record, as free_files().
  [[nodiscard]] Result<void> free(const std::vector<FileCut>& cuts);

  /// Returns the place of a container, for messages.
  [[nodiscard]] std::string describe(ContainerNumber container);
  [[nodiscard]] store::SegmentReader& reader() { return reader_; }
  [[nodiscard]] StoreId id() const { return id_; }

 private:
  /// Maximum memory of the cached headers, in bytes. 12 MiB hold the headers of about 1.5 GiB of
  /// chunks of the usual size, so random reads of an image do not read a header each time.
  static constexpr std::size_t kHeaderBytesCached = 12U << 20;

  /// Returns the error of reading a container, or kStale if the container is gone.
  [[nodiscard]] Error explain(const format::ContainerRecord& was, Error error);
  [[nodiscard]] Result<format::ContainerRecord> record(ContainerNumber container);

  const meta::Env& catalog_;
  store::SegmentStore& store_;
  const format::FrameCodec& codec_;
  const StoreId id_;
  store::FoundDamage* const damage_;
  store::SegmentReader reader_;

  std::mutex mutex_;
  // Records of containers and chunks that are written but not yet in the catalog.
  std::map<std::uint64_t, LocationRun> new_locations_;
  std::unordered_map<ContainerNumber, format::ContainerRecord> new_containers_;
  // Digests of written containers with a single run of ids, by the first id.
  struct WrittenRun {
    std::uint32_t count = 0;
    std::uint64_t digest = 0;
  };
  std::map<std::uint64_t, WrittenRun> written_runs_;

  HeaderCache headers_{kHeaderBytesCached};  // The destructor waits for reads by reader_.
};

}  // namespace varve::layout
