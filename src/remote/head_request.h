// SPDX-License-Identifier: Apache-2.0
// The request for the newest head during the opening of an attached folder. docs/decisions/115.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "bucket/bucket.h"
#include "crypto/key_ring.h"
#include "varve/result.h"

namespace varve::remote {

/// A newer head than the folder has.
struct NewerHead {
  std::string known{};   ///< The text of the folder's head.
  std::string newest{};  ///< The text of the newest head.
};

/// The folder that waits for the newest head.
/// Lifetime: the bucket outlives HeadRequest::stop().
struct HeadQuestion {
  bucket::Bucket* bucket = nullptr;
  std::string root{};
  std::string repository_id{};
  std::string known{};  ///< The text of the folder's head.
};

/// Asks the store for the newest head in a thread, while the folder opens with its present head.
class HeadRequest {
 public:
  explicit HeadRequest(HeadQuestion question);
  HeadRequest(const HeadRequest&) = delete;
  HeadRequest& operator=(const HeadRequest&) = delete;
  ~HeadRequest() { stop(); }

  /// Waits for the answer. Returns nullopt if the folder has the newest head, or if the store does
  /// not answer. Errors: as for ReadingFolder::open(). Call once.
  [[nodiscard]] Result<std::optional<NewerHead>> answer(const crypto::KeyRing* keys);
  /// Ends all requests of the bucket, because the folder is not used further.
  void end_requests() { question_.bucket->stop(); }
  /// Ends the request, and all requests of the bucket, unless the answer was taken.
  void stop();

 private:
  const HeadQuestion question_;
  std::optional<Result<std::string>> newest_;  // Set by the thread.
  std::jthread thread_;
};

/// How the opening of an attached folder learns the newest head.
struct HeadLearning {
  /// True to open the folder with its present head, if the folder has a head, and to ask meanwhile.
  bool in_parallel = false;
  std::shared_ptr<HeadRequest> request{};  ///< Set by the opening if asked meanwhile.
  std::optional<NewerHead> newer{};        ///< The answer of an earlier request.
};

}  // namespace varve::remote
