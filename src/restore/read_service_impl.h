// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>

#include "base/thread_pool.h"
#include "restore/buffer_pool.h"
#include "restore/memory_meter.h"
#include "restore/random_reader.h"
#include "restore/read_service.h"
#include "restore/session.h"
#include "restore/session_manager.h"

namespace varve::restore {

/// Builds and owns the parts of the read path.
///
/// Memory: at most max(cache_bytes, 16 MiB) for the areas, chunk caches and tables of all sessions
/// and the 16 frames of random access. In addition:
/// - a slice and a frame (640 KiB) for each thread that reads at random,
/// - six spare areas (at most 4 MiB each),
/// - at most five areas (at most 4 MiB each) per session that are lent and no longer kept by the
///   session.
class ReadServiceImpl final : public ReadService {
 public:
  ReadServiceImpl(const ReadOptions& options, base::Metrics& registry);

  [[nodiscard]] Result<std::unique_ptr<ReadHandle>> open(ReadableFile file) override;
  void will_read_after(const ReadableFile& file) override;
  void set_costs(const ReadCosts& costs) override { slice_reader_.set_costs(costs); }
  [[nodiscard]] const ReadMetrics& metrics() const override { return metrics_; }
  [[nodiscard]] const MemoryMeter& memory() const { return meter_; }

 private:
  [[nodiscard]] SessionContext session_context(const std::string& engine);

  const ReadMetrics metrics_;
  MemoryMeter meter_;
  SliceReader slice_reader_;
  BufferPool areas_;
  BufferPool slices_;
  BufferPool frames_;  // Frames of random access.
  RandomReader random_;
  // Both pools help the prefetchers to assemble, and so are declared before the prefetchers and
  // outlive them. Reads in advance have their own pool: in the queue of `readers_`, they would
  // delay the area that a reader waits for.
  base::ThreadPool ahead_readers_;
  base::ThreadPool readers_;
  // The destructor waits for assemblies under way. No new assembly begins, because the manager is
  // destroyed first and drops all sessions.
  base::ThreadPool prefetchers_;
  SessionManager sessions_;

  std::mutex mutex_;                  // Guards the member below.
  std::weak_ptr<Session> announced_;  // The session of the last will_read_after().
};

}  // namespace varve::restore
