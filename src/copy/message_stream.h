// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "varve/result.h"

namespace varve::copy {

/// Sends and receives messages over two descriptors, for example the pipes of an ssh. Each end
/// first sends a line with the number of the protocol. Then each message consists of a length
/// (u32), the checksum of the bytes (u64) and the bytes. Not thread-safe. The process must ignore
/// SIGPIPE.
class MessageStream {
 public:
  /// Lifetime: the descriptors stay open while the object lives.
  MessageStream(int in, int out) : in_(in), out_(out) {}

  /// Exchanges the first lines.
  /// Errors: kUnavailable if the other end sends another text; kUnsupported for another protocol.
  [[nodiscard]] Result<void> greet();
  /// Sends a message.
  /// Errors: kUnavailable if the other end is gone; kTooLarge.
  [[nodiscard]] Result<void> send(std::string_view message);
  /// Waits for the next message. Returns nullopt if the other end closed the stream between two
  /// messages.
  /// Errors: kUnavailable if the stream ends inside a message; kCorrupt for a damaged message.
  [[nodiscard]] Result<std::optional<std::string>> receive();

 private:
  /// Reads as many bytes as `out` has, or fewer at the end of the stream.
  [[nodiscard]] Result<std::size_t> read_all(std::span<char> out);
  [[nodiscard]] Result<void> write_all(std::string_view bytes);

  const int in_;
  const int out_;
};

}  // namespace varve::copy
