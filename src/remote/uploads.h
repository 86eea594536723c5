// SPDX-License-Identifier: Apache-2.0
// Concurrent requests to an object store, with a memory limit.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "varve/result.h"

namespace varve::remote {

struct UploadLimits {
  /// Requests in progress at once. With 1, the calling thread carries out each request itself.
  std::size_t requests = 16;
  /// Bytes of all objects in progress. A single larger object may be in progress alone.
  std::uint64_t bytes = std::uint64_t{128} << 20;
};

/// Runs requests in internal threads. Only one thread calls the object; the requests must be
/// thread-safe. The destructor waits for the requests in progress.
class Uploads {
 public:
  using Request = std::function<Result<void>()>;

  explicit Uploads(const UploadLimits& limits) : limits_(limits) {}
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;
  ~Uploads();

  /// Waits until the limits admit another request of `bytes` bytes. Call make_room() before
  /// allocating the bytes. Errors: the first error of a request or of an `acknowledged`.
  [[nodiscard]] Result<void> make_room(std::uint64_t bytes);
  /// Begins a request that occupies `bytes` bytes of memory until its end. After the request's
  /// success, a later call of make_room() or finish() calls `acknowledged` in the calling thread.
  /// Errors: as make_room().
  [[nodiscard]] Result<void> begin(std::uint64_t bytes, Request request, Request acknowledged);
  /// Waits for all requests. Errors: as make_room().
  [[nodiscard]] Result<void> finish();

 private:
  struct Ended {
    Result<void> result;
    Request acknowledged;
  };
  void settle(std::vector<Ended> ended);
  void wait_until(const std::function<bool()>& ready);
  [[nodiscard]] Result<void> outcome() const;

  const UploadLimits limits_;
  std::optional<Error> error_;  // The first error. Only the calling thread uses the member.

  std::mutex mutex_;  // Guards the members below.
  std::condition_variable changed_;
  std::size_t requests_ = 0;  // Requests in progress.
  std::uint64_t bytes_ = 0;
  std::vector<Ended> ended_;

  std::unique_ptr<base::ThreadPool> threads_;  // Started by the first request; destroyed first.
};

}  // namespace varve::remote
