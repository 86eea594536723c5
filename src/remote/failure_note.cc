// SPDX-License-Identifier: Apache-2.0
#include "remote/failure_note.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "base/coding.h"
#include "base/log.h"

namespace varve::remote {

namespace {

constexpr std::string_view kFailureKey = "failure";  // In the state.
constexpr std::size_t kMessageBytesMax = 4096;

}  // namespace

void note_failure(ReplicaState& state, const Error& error, const Timestamp& now) {
  std::string text;
  base::ByteWriter writer(text);
  writer.u64(static_cast<std::uint64_t>(now.seconds));
  writer.u32(now.nanoseconds);
  writer.u32(static_cast<std::uint32_t>(error.code()));
  writer.sized_text(error.message().substr(0, kMessageBytesMax));
  const auto noted = state.set_text(kFailureKey, text);
  if (!noted) base::log(base::LogLevel::kInfo, noted.error().message());
}

Result<void> forget_failure(ReplicaState& state) {
  VARVE_TRY_ASSIGN(const auto text, state.text(kFailureKey));
  return text && !text->empty() ? state.set_text(kFailureKey, {}) : Result<void>();
}

Result<std::optional<ReplicationFailure>> noted_failure(const ReplicaState& state) {
  VARVE_TRY_ASSIGN(const auto text, state.text(kFailureKey));
  base::ByteReader reader(text ? std::string_view(*text) : std::string_view());
  ReplicationFailure failure;
  failure.at.seconds = static_cast<std::int64_t>(reader.u64());
  failure.at.nanoseconds = reader.u32();
  const auto code = reader.u32();
  failure.message = reader.sized_text(kMessageBytesMax);
  if (!reader.done()) return std::optional<ReplicationFailure>();
  // The code of a newer release is unknown here.
  const bool is_known = code <= static_cast<std::uint32_t>(ErrorCode::kIncomplete);
  failure.code = is_known ? static_cast<ErrorCode>(code) : ErrorCode::kIo;
  return std::optional(std::move(failure));
}

}  // namespace varve::remote
