// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "base/clock.h"
#include "copy/message.h"
#include "copy/message_stream.h"
#include "copy/target.h"
#include "varve/copy.h"

namespace varve::copy {

/// Answers the requests of one source. Not thread-safe.
class CopyServer {
 public:
  /// Lifetime: the arguments outlive the object.
  CopyServer(const OpenTarget& open, const SourceRights& rights, MessageStream& stream)
      : open_(open), rights_(rights), stream_(stream) {}

  /// Does serve_copy(), after the greeting.
  [[nodiscard]] Result<void> run();

 private:
  [[nodiscard]] Result<void> answer_all();
  /// Returns nullopt at the end of the stream.
  [[nodiscard]] Result<std::optional<Request>> next_request();
  /// Returns the answer; nullopt for a request without one.
  [[nodiscard]] std::optional<Answer> answer(Request& request);
  [[nodiscard]] Answer hello(const HelloRequest& request);

  const OpenTarget& open_;
  const SourceRights& rights_;
  MessageStream& stream_;
  const base::SystemClock clock_;
  std::unique_ptr<Target> target_;
  bool is_receiving_ = false;
  std::optional<Error> failed_fill_;  // The answer to the next request.
};

}  // namespace varve::copy
