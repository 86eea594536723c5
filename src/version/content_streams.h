// SPDX-License-Identifier: Apache-2.0
// Sequentially written content of an open version's files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/recipe.h"
#include "ingest/ingest_pipeline.h"
#include "varve/result.h"
#include "version/open_inode.h"
#include "version/open_state.h"

namespace varve::version {

/// Moves files between the states "at rest" and "streaming" (see OpenInode): starts streams of the
/// ingest pipeline, appends to the streams, and takes the finished recipes. For every function, the
/// caller holds OpenState::mutex. An inode passed to a function must not be staged.
///
/// A finished stream keeps the inode in the state "streaming" until all chunks of the stream have a
/// place. absorb() then takes the recipe.
class ContentStreams {
 public:
  /// Lifetime: `state` must outlive the object.
  explicit ContentStreams(OpenState& state) : state_(state) {}
  ContentStreams(const ContentStreams&) = delete;
  ContentStreams& operator=(const ContentStreams&) = delete;

  /// Loads `inode.recipe`: the recipe of a file of the base may not be in memory. Must be called
  /// before any use of the recipe.
  [[nodiscard]] Result<void> load_recipe(OpenInode& inode);
  /// Appends `data` at `offset`, at or beyond the file's end. Does not change `inode.size` for the
  /// data itself.
  [[nodiscard]] Result<void> append(OpenInode& inode, std::uint64_t offset,
                                    std::span<const std::byte> data);
  /// Grows the file to `bytes`: with zeros to the end of a block with data, then with a hole.
  [[nodiscard]] Result<void> grow(OpenInode& inode, std::uint64_t bytes);
  /// Cuts the file's content at `bytes`. The stream goes on from there.
  [[nodiscard]] Result<void> shrink(OpenInode& inode, std::uint64_t bytes);
  /// Ends the stream, if the inode has a stream. Does not wait for the stream's chunks.
  [[nodiscard]] Result<void> finish(OpenInode& inode);
  /// Takes the recipe of a finished stream if the recipe is complete.
  void absorb(OpenInode& inode);
  /// Waits until all chunks of the stream have a place. Returns the recipe, and the uncut bytes
  /// after the recipe's end.
  [[nodiscard]] Result<ingest::Content> settle(OpenInode& inode);
  /// Makes the recipe the inode's content.
  void rest(OpenInode& inode, format::Recipe recipe);
  /// Brings the content to rest and loads the recipe. Waits for the pipeline.
  [[nodiscard]] Result<void> come_to_rest(OpenInode& inode);
  /// Drops the stream, if the inode has a stream, with the bytes not yet placed.
  void discard(OpenInode& inode);

  // ---- For checkpoints and recovery. ----

  /// Starts streams for the tails in the overlay of the last checkpoint.
  [[nodiscard]] Result<void> recover_tails();
  /// Cuts the tails left by recovery: with kNow all tails, else as many as the disk can take.
  enum class Urgency : std::uint8_t { kNow, kIfAdmitted };
  [[nodiscard]] Result<void> finish_tails(Urgency urgency);
  [[nodiscard]] bool has_tails() const { return !waiting_tails_.empty(); }
  /// Takes the complete recipes of all finished streams. Finishes a stream again if the spilled
  /// tail could not be read back.
  [[nodiscard]] Result<void> absorb_finished();

 private:
  [[nodiscard]] Result<void> start(OpenInode& inode);
  void run(OpenInode& inode, ingest::Content content);
  [[nodiscard]] Result<void> append_zeros(OpenInode& inode, std::uint64_t end);
  [[nodiscard]] Result<void> grow_stream(OpenInode& inode, std::uint64_t bytes);
  [[nodiscard]] Result<void> grow_to_data(OpenInode& inode, std::uint64_t offset);

  OpenState& state_;
  std::vector<Ino> finishing_;      // Files whose finished streams may wait for chunks.
  std::vector<Ino> waiting_tails_;  // Files without a writer whose streams hold tails.
};

}  // namespace varve::version
