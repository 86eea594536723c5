// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace varve::base {
class DescriptorBudget;
class RecurringTasks;
class ThreadPool;
}  // namespace varve::base

namespace varve::ingest {
class Chunker;
}  // namespace varve::ingest

namespace varve::meta {
class EnvCache;
}  // namespace varve::meta

namespace varve::series {

/// The objects with which the versions of all series are written: the threads, the budgets and the
/// hooks of the open versions.
/// Lifetime: all objects outlive the series. If the repository is read-only, the pools, the tasks
/// and the overlays are null.
struct WritingParts {
  const ingest::Chunker* chunker = nullptr;
  base::ThreadPool* compressors = nullptr;
  base::ThreadPool* fingerprint_pool = nullptr;
  base::RecurringTasks* checkpoint_tasks = nullptr;
  base::DescriptorBudget* descriptors = nullptr;
  std::shared_ptr<meta::EnvCache> overlays{};
  /// As in version::OpenVersionParts.
  std::uint64_t checkpoint_bytes = 0;
  std::function<void()> on_checkpoint{};
};

}  // namespace varve::series
