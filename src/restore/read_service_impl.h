// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "base/thread_pool.h"
#include "restore/buffer_pool.h"
#include "restore/memory_meter.h"
#include "restore/random_reader.h"
#include "restore/read_service.h"
#include "restore/session_manager.h"

namespace varve::restore {

/// Builds and owns the parts of the read path.
///
/// Memory: the areas, chunk caches and tables of all sessions and the 16 frames of random
/// access stay within max(cache_bytes, 16 MiB), apart from a slice and a frame (640 KiB) in
/// the hands of each thread that reads at random, three spare areas, and at most five of each
/// session that it has left and that are lent (4 MiB each at most).
class ReadServiceImpl final : public ReadService {
 public:
  explicit ReadServiceImpl(const ReadOptions& options);

  [[nodiscard]] Result<std::unique_ptr<ReadHandle>> open(ReadableFile file) override;
  void set_costs(const ReadCosts& costs) override { slice_reader_.set_costs(costs); }
  [[nodiscard]] ReadCounters counters() const override;
  [[nodiscard]] const MemoryMeter& memory() const { return meter_; }

 private:
  [[nodiscard]] SessionContext session_context(const std::string& engine);

  MemoryMeter meter_;
  SliceReader slice_reader_;
  BufferPool areas_;
  BufferPool slices_;
  BufferPool frames_;  // Of random access.
  RandomReader random_;
  std::atomic<std::uint64_t> bytes_delivered_ = 0;
  // Outlive the prefetchers, whose assemblies they help with. Two pools, since reads ahead in the
  // queue of the others would keep them from the area that is waited for.
  base::ThreadPool ahead_readers_;
  base::ThreadPool readers_;
  // Its destructor waits for assemblies under way. The manager, which goes first, has
  // dropped all sessions by then, so that no new ones begin.
  base::ThreadPool prefetchers_;
  SessionManager sessions_;
};

}  // namespace varve::restore
