// SPDX-License-Identifier: Apache-2.0
// Helpers of the requests of S3Bucket.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "bucket/s3_client.h"
#include "bucket/signer.h"
#include "varve/object_lock.h"
#include "varve/result.h"

namespace varve::bucket {

/// Metadata stored with an object: the checksum of the object's bytes, and the mark of the writing
/// call.
inline constexpr const char* kSha256Header = "x-amz-meta-varve-sha256";
inline constexpr const char* kMarkHeader = "x-amz-meta-varve-mark";

/// Returns a mark made from random bytes and from the text `call`, which identifies the call. After
/// a virtual machine was reset to a snapshot, the random bytes may repeat: a call with other
/// content still has another mark. Errors: kIo.
[[nodiscard]] Result<std::string> new_mark(std::string_view call);

/// Returns "COMPLIANCE" or "GOVERNANCE".
[[nodiscard]] std::string_view lock_mode_text(LockMode mode);
/// Returns the end of a lock that begins now, in the form of the protocol. `store_seconds` is the
/// current time by the store's clock, in seconds since 1970.
[[nodiscard]] std::string lock_end_text(const ObjectLock& lock, std::int64_t store_seconds);
/// Adds a checksum of a body to the headers: a store accepts no lock without a checksum. `sha256`
/// is the body's SHA-256 in hexadecimal digits.
void add_checksum(std::span<const std::span<const std::byte>> parts, std::string_view sha256,
                  Fields& headers);

/// Returns the error for an answer that breaks the protocol.
[[nodiscard]] Error wrong_answer(std::string_view what);

/// Returns the value of a header; empty without the header. Lifetime: as the answer.
[[nodiscard]] std::string_view header(const S3Answer& answer, std::string_view name);

/// Returns success if the request succeeded, and otherwise the request's error.
[[nodiscard]] Result<void> drop_answer(const Result<S3Answer>& answer);

/// Checks the root element of an answer's document. A store working for long begins the answer
/// before the end of the work, so status 200 may come with an error.
/// Errors: kUnavailable for an error of the store; kCorrupt for anything else.
[[nodiscard]] Result<void> check_document(const S3Answer& answer, std::string_view root);

}  // namespace varve::bucket
