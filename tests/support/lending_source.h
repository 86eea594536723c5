// SPDX-License-Identifier: Apache-2.0
// A source that answers later and lends what it has read, as a distant store does.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "layout/layout.h"

namespace varve::test {

/// Passes all calls on to another source. Lends the bytes of each second batch, and reads the
/// others to the room. Overwrites lent bytes once nothing holds them. Thread-safe.
class LendingSource final : public layout::ChunkSource {
 public:
  /// Lifetime: `source` outlives the object.
  explicit LendingSource(layout::ChunkSource& source) : source_(source) {}

  const format::FrameCodec& codec() const override { return source_.codec(); }
  Result<layout::LocationRun> locate(ChunkId id) override { return source_.locate(id); }
  Result<layout::StoredRun> stored_run(const base::IdRun& run) override {
    return source_.stored_run(run);
  }
  Result<std::shared_ptr<const format::ContainerHeader>> header(
      ContainerNumber container) override {
    return source_.header(container);
  }
  Result<void> read_data(ContainerNumber container, std::uint32_t offset,
                         std::span<std::byte> out) override {
    return source_.read_data(container, offset, out);
  }
  Result<std::uint64_t> place_of(ContainerNumber container) override {
    return source_.place_of(container);
  }
  bool answers_later() const override { return true; }
  void read_many(const std::vector<layout::DataRead>& reads,
                 const layout::DataCompletion& done) override {
    const bool lends = ++batches_ % 2 == 1;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const auto& read = reads[i];
      if (!lends || read.lent == nullptr) {
        done(i, source_.read_once(read.container, read.offset, read.bytes, read.room));
        continue;
      }
      const std::shared_ptr<std::vector<std::byte>> memory(new std::vector<std::byte>(read.bytes),
                                                           [](std::vector<std::byte>* bytes) {
                                                             for (auto& byte : *bytes) byte = ~byte;
                                                             delete bytes;
                                                           });
      if (auto got = source_.read_data(read.container, read.offset, *memory); !got) {
        done(i, got.error());
        continue;
      }
      ++lent;
      *read.lent = {*memory, memory};
      done(i, std::span<const std::byte>(*memory));
    }
  }

  std::atomic<std::uint64_t> lent{0};  ///< Reads of which the bytes were lent.

 private:
  layout::ChunkSource& source_;
  std::atomic<std::uint64_t> batches_{0};
};

}  // namespace varve::test
