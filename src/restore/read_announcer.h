// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "layout/layout.h"
#include "restore/look_ahead_window.h"

namespace varve::restore {

/// Tells the source which containers the window comes to next, so that the disk reads them
/// while what comes before is verified and copied. One area is read at a time, whose last
/// requests leave the disk idle; and what the kernel reads ahead by itself knows neither the
/// order nor the gaps. Used by one thread at a time.
class ReadAnnouncer {
 public:
  explicit ReadAnnouncer(layout::ChunkSource* source) : source_(source) { recent_.fill(~0U); }

  /// Announces the containers of the chunks from window position `from` on, as far as
  /// `bytes_ahead` reach and they are not announced yet. `average_bytes` is a chunk's.
  void announce(const LookAheadWindow& chunks, std::uint64_t from, std::uint64_t bytes_ahead,
                std::uint64_t average_bytes);

 private:
  [[nodiscard]] bool note(std::uint32_t container);

  layout::ChunkSource* const source_;
  std::uint64_t announced_ = 0;  // Window position up to which all is announced.
  // The last ones, so that a container of many runs is announced once.
  std::array<std::uint32_t, 16> recent_;
  std::size_t next_ = 0;
};

}  // namespace varve::restore
