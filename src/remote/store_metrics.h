// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>

#include "base/metrics.h"
#include "bucket/bucket.h"

namespace varve::remote {

/// The requests to the object store of a repository, by kind. Thread-safe.
class StoreMetrics {
 public:
  explicit StoreMetrics(base::Metrics& metrics) {
    for (std::size_t kind = 0; kind < bucket::kRequestKinds; ++kind) {
      const base::Metrics::Labels labels{
          {"request", std::string(name_of(static_cast<bucket::RequestKind>(kind)))}};
      requests_[kind] =
          &metrics.counter("varve_store_requests_total",
                           "Requests to the object store, repeated ones included.", labels);
      repeated_[kind] =
          &metrics.counter("varve_store_repeated_requests_total",
                           "Requests to the object store that repeat others.", labels);
      sent_[kind] = &metrics.counter("varve_store_sent_bytes_total",
                                     "Bytes that were sent to the object store.", labels);
      received_[kind] = &metrics.counter("varve_store_received_bytes_total",
                                         "Bytes that were received from the object store.", labels);
    }
  }

  /// Raises the metrics to the bucket's counts since the opening.
  void raise_to(const bucket::Traffic& traffic) {
    const std::lock_guard lock(mutex_);
    for (std::size_t kind = 0; kind < bucket::kRequestKinds; ++kind) {
      const auto& now = traffic[kind];
      auto& was = counted_[kind];
      requests_[kind]->add(now.requests - was.requests);
      repeated_[kind]->add(now.repeated - was.repeated);
      sent_[kind]->add(now.bytes_sent - was.bytes_sent);
      received_[kind]->add(now.bytes_received - was.bytes_received);
      was = now;
    }
  }

 private:
  using Counters = std::array<base::Counter*, bucket::kRequestKinds>;
  Counters requests_{};
  Counters repeated_{};
  Counters sent_{};
  Counters received_{};
  std::mutex mutex_;  // Guards the member below.
  bucket::Traffic counted_{};
};

}  // namespace varve::remote
