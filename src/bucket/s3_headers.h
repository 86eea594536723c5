// SPDX-License-Identifier: Apache-2.0
// Helpers of the requests of S3Bucket.
#pragma once

#include <string>
#include <string_view>

#include "bucket/s3_client.h"
#include "varve/result.h"

namespace varve::bucket {

/// The store keeps these two with an object: the checksum of its bytes, and the mark of the call
/// that wrote it.
inline constexpr const char* kSha256Header = "x-amz-meta-varve-sha256";
inline constexpr const char* kMarkHeader = "x-amz-meta-varve-mark";

/// Returns a random mark. Errors: kIo.
[[nodiscard]] Result<std::string> new_mark();

/// Returns the error of an answer that breaks the protocol.
[[nodiscard]] Error wrong_answer(std::string_view what);

/// Returns the value of a header; empty if there is none. Lifetime: as the answer.
[[nodiscard]] std::string_view header(const S3Answer& answer, std::string_view name);

/// Returns success if the request succeeded, and otherwise its error.
[[nodiscard]] Result<void> drop_answer(const Result<S3Answer>& answer);

/// Checks that the document of an answer has this root element. A store that takes long begins to
/// answer before it ends, so status 200 may come with an error. Errors: kUnavailable for an error
/// of the store; kCorrupt for anything else.
[[nodiscard]] Result<void> check_document(const S3Answer& answer, std::string_view root);

}  // namespace varve::bucket
