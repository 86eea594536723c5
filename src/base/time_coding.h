// SPDX-License-Identifier: Apache-2.0
// The encoding of times in records: svarint seconds since 1970, varint nanoseconds.
#pragma once

#include <cstdint>

#include "base/coding.h"
#include "varve/types.h"

namespace varve::base {

inline void put_time(ByteWriter& writer, const Timestamp& time) {
  writer.svarint(time.seconds);
  writer.varint(time.nanoseconds);
}

/// Reads a time. Makes the reader fail for 10^9 nanoseconds or more.
inline Timestamp get_time(ByteReader& reader) {
  Timestamp time;
  time.seconds = reader.svarint();
  const std::uint64_t nanoseconds = reader.varint();
  if (nanoseconds >= 1000000000) reader.fail();
  time.nanoseconds = static_cast<std::uint32_t>(nanoseconds);
  return time;
}

}  // namespace varve::base
