// SPDX-License-Identifier: Apache-2.0
#include "copy/message_stream.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/system_error.h"
#include "copy/message_reader.h"

namespace varve::copy {
namespace {

constexpr std::string_view kGreeting = "varve-copy 4\n";
constexpr std::string_view kGreetingWord = "varve-copy ";
constexpr std::size_t kGreetingBytesMax = 200;
constexpr std::size_t kHeaderBytes = 12;
constexpr std::size_t kBytesRead = 1U << 20;

Error gone() {
  return {ErrorCode::kUnavailable,
          "the other end of the copy is gone; the same command continues the copy"};
}

}  // namespace

Result<std::size_t> MessageStream::read_all(std::span<char> out) {
  std::size_t got = 0;
  while (got < out.size()) {
    const ssize_t n = ::read(in_, out.data() + got, out.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == ECONNRESET) return gone();
    if (n < 0) return base::io_error("reading from the other end of the copy", errno);
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return got;
}

Result<void> MessageStream::write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(out_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) return gone();
    if (n < 0) return base::io_error("writing to the other end of the copy", errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> MessageStream::greet() {
  // An end that is gone already may have left a text.
  const auto written = write_all(kGreeting);
  if (!written && written.error().code() != ErrorCode::kUnavailable) return written;
  std::string line;
  while (line.size() < kGreetingBytesMax && !line.ends_with('\n')) {
    char next = 0;
    VARVE_TRY_ASSIGN(const std::size_t got, read_all({&next, 1}));
    if (got == 0) break;
    line.push_back(next);
  }
  if (line == kGreeting) return {};
  if (line.empty()) {
    return Error(ErrorCode::kUnavailable, "the other end of the copy ended without an answer");
  }
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  if (line.starts_with(kGreetingWord)) {
    return Error(
        ErrorCode::kUnsupported,
        "the other end has another release of Varve, whose copies are not compatible: " + line);
  }
  return Error(
      ErrorCode::kUnavailable,
      "the other end is no `varve serve-copy`, or its shell prints text first: \"" + line + "\"");
}

Result<void> MessageStream::send(std::string_view message) {
  if (message.size() > kMessageBytesMax) {
    return Error(ErrorCode::kTooLarge,
                 fmt::format("a message of {} bytes is too long for a copy", message.size()));
  }
  std::string header;
  base::ByteWriter out(header);
  out.u32(static_cast<std::uint32_t>(message.size()));
  out.u64(base::checksum64(base::as_bytes(message)));
  VARVE_TRY(write_all(header));
  return write_all(message);
}

Result<std::optional<std::string>> MessageStream::receive() {
  std::array<char, kHeaderBytes> header{};
  VARVE_TRY_ASSIGN(const std::size_t got, read_all(header));
  if (got == 0) return std::optional<std::string>();
  if (got != header.size()) return gone();
  base::ByteReader in(std::string_view(header.data(), header.size()));
  const std::uint32_t bytes = in.u32();
  const std::uint64_t checksum = in.u64();
  if (bytes > kMessageBytesMax) {
    return Error(ErrorCode::kCorrupt, "the other end of the copy sent a message that is too long");
  }
  std::string message;
  while (message.size() < bytes) {
    const std::size_t begin = message.size();
    message.resize(begin + std::min<std::size_t>(bytes - begin, kBytesRead));
    VARVE_TRY_ASSIGN(const std::size_t read,
                     read_all(std::span(message.data() + begin, message.size() - begin)));
    if (begin + read != message.size()) return gone();
  }
  if (base::checksum64(base::as_bytes(message)) != checksum) {
    return Error(ErrorCode::kCorrupt, "the other end of the copy sent a damaged message");
  }
  return std::optional(std::move(message));
}

}  // namespace varve::copy
