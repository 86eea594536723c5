// SPDX-License-Identifier: Apache-2.0
// The file is a line of text: "varve-sequence 1 NUMBER". docs/decisions/085 gives the rules.
#include "io/client_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>

#include "base/coding.h"
#include "base/log.h"
#include "base/system_error.h"
#include "io/memory_folder.h"
#include "io/posix_file_system.h"

namespace varve::io {

namespace {

constexpr std::string_view kMemoryPrefix = "varve-sequence 1 ";
constexpr std::size_t kMemoryBytesMax = 64;

std::optional<std::uint64_t> parse(std::string_view text) {
  if (!text.starts_with(kMemoryPrefix) || !text.ends_with('\n')) return std::nullopt;
  text.remove_prefix(kMemoryPrefix.size());
  text.remove_suffix(1);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Error set_back(const std::string& root, std::uint64_t present, std::uint64_t known) {
  return {ErrorCode::kCorrupt,
          fmt::format(
              "{} is older than this machine remembers: its sequence number is {}, and was {}. "
              "An older state of it was put back, or its newest changes are lost. If you did that "
              "yourself, give --accept-older once (mount: -o accept_older). Otherwise do not trust "
              "its storage: newer versions may be missing",
              root, present, known)};
}

}  // namespace

ClientMemory::ClientMemory(std::string folder, std::string id)
    : folder_(std::move(folder)), id_(std::move(id)) {}

Result<std::optional<std::uint64_t>> ClientMemory::read() const {
  if (folder_.empty()) return std::optional<std::uint64_t>();
  const std::string path = this->path();
  auto text = [&]() -> Result<std::string> {
    VARVE_TRY_ASSIGN(const auto files, open_root(folder_, {}));
    return files->read_file(path, kMemoryBytesMax);
  }();
  if (!text && is_unusable_memory(text.error())) {
    if (text.error().code() == ErrorCode::kNotPermitted) {
      base::log(base::LogLevel::kWarning,
                "a repository that was set back would not be seen: " + text.error().message());
    }
    return std::optional<std::uint64_t>();
  }
  const auto number = text ? parse(*text) : std::nullopt;
  if (number) return number;
  const auto purpose =
      fmt::format("{}, where this machine remembers the repository's sequence number", path);
  if (!text && base::lacks_resources(text.error())) {
    return std::move(text).error().with_context(purpose);
  }
  if (!text && text.error().code() == ErrorCode::kIo) {
    return Error(ErrorCode::kIo,
                 fmt::format("{}, cannot be read: {}. Set XDG_STATE_HOME to a folder of your own",
                             purpose, text.error().message()));
  }
  return Error(
      ErrorCode::kInvalid,
      fmt::format("{}, {}. Give --accept-older once (mount: -o accept_older) to write it again",
                  purpose, text ? "is damaged" : "cannot be read: " + text.error().message()));
}

void ClientMemory::remember(std::uint64_t sequence) {
  if (folder_.empty()) return;
  const std::lock_guard lock(mutex_);
  if (sequence <= std::max(written_, wanted_)) return;
  wanted_ = sequence;
  if (std::exchange(is_writing_, true)) return;
  if (!writer_) writer_ = std::make_unique<base::ThreadPool>(1, "varve-memory");
  writer_->run([this] { write_wanted(); });
}

void ClientMemory::write_wanted() {
  std::unique_lock lock(mutex_);
  while (wanted_ > written_) {
    const auto sequence = wanted_;
    lock.unlock();
    const auto present = write(sequence, false);
    lock.lock();
    if (present) {
      written_ = *present;
    } else {
      log_failure(present.error());
      wanted_ = written_;  // The next number is tried again.
    }
  }
  is_writing_ = false;
  idle_.notify_all();
}

/// The caller holds the mutex.
void ClientMemory::log_failure(const Error& error) {
  const bool says_so = !is_unusable_memory(error) && !std::exchange(has_failed_, true);
  const auto level = says_so ? base::LogLevel::kWarning : base::LogLevel::kDebug;
  base::log(level, "the repository's sequence number is not remembered: " + error.message());
}

void ClientMemory::settle() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return !is_writing_; });
}

Result<void> ClientMemory::accept(std::uint64_t sequence) {
  if (folder_.empty()) return {};
  settle();
  VARVE_TRY(write(sequence, true));
  const std::lock_guard lock(mutex_);
  written_ = wanted_ = sequence;
  return {};
}

Result<std::uint64_t> ClientMemory::write(std::uint64_t sequence, bool lower) const {
  VARVE_TRY_ASSIGN(const auto memory, lock_memory(folder_));
  if (!lower) {
    VARVE_TRY_ASSIGN(const auto present, read());
    if (present && *present >= sequence) return *present;
  }
  const std::string text = fmt::format("{}{}\n", kMemoryPrefix, sequence);
  VARVE_TRY(memory.files->write_file_atomically(folder_, id_, base::as_bytes(text)));
  return sequence;
}

Result<void> refuse_older(const ClientMemory& memory, const std::string& root,
                          const std::function<Result<std::uint64_t>()>& present) {
  VARVE_TRY_ASSIGN(const auto known, memory.read());
  VARVE_TRY_ASSIGN(const auto now, present());
  return known && *known > now ? set_back(root, now, *known) : Result<void>();
}

}  // namespace varve::io
