// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/ids.h"
#include "format/container.h"

namespace varve::layout {

/// Keeps the most recently used headers of containers, and tracks reads in flight. Thread-safe.
class HeaderCache {
 public:
  using Header = std::shared_ptr<const format::ContainerHeader>;

  explicit HeaderCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  HeaderCache(const HeaderCache&) = delete;
  HeaderCache& operator=(const HeaderCache&) = delete;
  /// Waits for the announced reads.
  ~HeaderCache();

  /// Returns the header, or nullptr. Waits while an announced read of the header is in flight.
  [[nodiscard]] Header find(ContainerNumber container);
  void add(ContainerNumber container, const Header& header);

  /// Notes that the caller reads the header now and will call end_read(). Returns false if the
  /// header is cached, or another caller reads the header.
  [[nodiscard]] bool begin_read(ContainerNumber container);
  /// Ends a read. `header` is nullptr if the read failed.
  void end_read(ContainerNumber container, const Header& header);

 private:
  void add_locked(ContainerNumber container, const Header& header);

  using Headers = std::list<std::pair<ContainerNumber, Header>>;
  const std::size_t bytes_max_;
  std::mutex mutex_;
  std::condition_variable read_;
  std::unordered_set<ContainerNumber> reading_;
  Headers headers_;  // Most recently used first.
  std::size_t bytes_ = 0;
  std::unordered_map<ContainerNumber, Headers::iterator> place_of_;
};

}  // namespace varve::layout
