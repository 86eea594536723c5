// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/coding.h"

namespace varve::copy {

/// Largest message. The stream refuses a longer one before any of its bytes.
inline constexpr std::size_t kMessageBytesMax = std::size_t{16} << 20;
/// Largest memory of a message: the received bytes and the decoded structures together.
inline constexpr std::size_t kMessageMemoryMax = std::size_t{64} << 20;

/// Reads the fields of one message, and bounds the memory of the decoded structures: a list of
/// empty elements takes 32 times as much memory as bytes. A failed reader has no more bytes, so a
/// message beyond the limit is not decoded.
class MessageReader final : public base::ByteReader {
 public:
  using ByteReader::ByteReader;

  /// Reserves room for `count` elements, each with at least `element_bytes` bytes in the message.
  /// Fails the reader if the message is too short for the elements, or beyond the limit of memory.
  template <typename Element>
  void reserve(std::vector<Element>& list, std::size_t count, std::size_t element_bytes) {
    if (count > left() / element_bytes || !charge(count * sizeof(Element))) return fail();
    list.reserve(count);
  }
  /// Reads a text of at most `max` bytes into memory of its own.
  [[nodiscard]] std::string owned_text(std::size_t max) {
    const auto text = sized_text(max);
    if (text.size() >= kInlineBytes && !charge(text.size() + kHeapOverhead)) fail();
    return ok() ? std::string(text) : std::string();
  }

 private:
  /// Counts memory. Returns false beyond the limit.
  [[nodiscard]] bool charge(std::size_t bytes) {
    if (bytes > memory_left_) return false;
    memory_left_ -= bytes;
    return true;
  }

  static constexpr std::size_t kInlineBytes = 16;   // A shorter string is in the object itself.
  static constexpr std::size_t kHeapOverhead = 32;  // Of the allocator, and the terminator.
  /// A handler may hold the bytes of a batch's chunks (kBatchDataMax) beside the structures.
  static constexpr std::size_t kDecodedBytesMax = std::size_t{40} << 20;
  static_assert(kDecodedBytesMax + kMessageBytesMax < kMessageMemoryMax);

  std::size_t memory_left_ = kDecodedBytesMax;
};

}  // namespace varve::copy
