// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/coding.h"
#include "copy/change.h"
#include "copy/message_reader.h"
#include "varve/types.h"

namespace varve::copy {

void encode_time(base::ByteWriter& out, const Timestamp& time);
/// Fails the reader for nanoseconds of a second or more.
[[nodiscard]] Timestamp decode_time(base::ByteReader& in);

void encode_batch(base::ByteWriter& out, const ChangeBatch& batch);
/// Fails the reader for a batch beyond the limits of copy/change.h, and for names, attributes or
/// types that no file has.
[[nodiscard]] ChangeBatch decode_batch(MessageReader& in);

}  // namespace varve::copy
