// SPDX-License-Identifier: Apache-2.0
#include "remote/commit_log.h"

#include <array>
#include <span>
#include <utility>

#include "base/coding.h"
#include "remote/head.h"

namespace varve::remote {

CommitLog::CommitLog(bucket::Bucket& bucket, std::string repository_id)
    : bucket_(bucket), repository_id_(std::move(repository_id)) {}

// The store may let two writers create a commit. So create() reads a commit after the creation, and
// again before creating the next commit (docs/decisions/160).
Result<std::optional<Commit>> CommitLog::create(const Commit& previous, const Commit& commit) {
  if (previous.number != 0) {
    VARVE_TRY_ASSIGN(auto other, instead_of(previous));
    if (other) return other;
  }
  const auto number = commit.number;
  const std::array<std::span<const std::byte>, 1> bytes{base::as_bytes(commit.text)};
  const auto put =
      bucket_.put(name(number), bytes, {.condition = bucket::PutCondition::kIfAbsent});  // O45
  if (!put && put.error().code() != ErrorCode::kExists) return put.error();
  auto present = read(number);
  if (!present && present.error().code() == ErrorCode::kNotFound) {
    return Error(ErrorCode::kUnavailable,
                 describe(number) + " cannot be read, although the store has it");
  }
  if (!present) return std::move(present).error();
  if (*present != commit.text) return std::optional(Commit{number, *std::move(present)});
  return later_than(number);
}

Result<std::optional<Commit>> CommitLog::instead_of(const Commit& known) {
  auto present = read(known.number);
  if (!present && present.error().code() == ErrorCode::kNotFound) {
    VARVE_TRY_ASSIGN(auto later, later_than(known.number));
    if (later) return later;
  }
  if (!present) return std::move(present).error();
  if (*present != known.text) return std::optional(Commit{known.number, *std::move(present)});
  return std::optional<Commit>();
}

Result<std::optional<Commit>> CommitLog::other_than(const Commit& known) {
  if (known.number != 0) {
    VARVE_TRY_ASSIGN(auto other, instead_of(known));
    if (other) return other;
  }
  auto next = read(known.number + 1);
  if (next) return std::optional(Commit{known.number + 1, *std::move(next)});
  if (next.error().code() != ErrorCode::kNotFound) return std::move(next).error();
  return std::optional<Commit>();
}

Result<std::string> CommitLog::read(std::uint64_t number) {
  VARVE_TRY_ASSIGN(const auto bytes, bucket_.get_all(name(number), kHeadBytesMax));
  return std::string(base::as_text(bytes));
}

// Another process may remove the commit between the list and the read, and then there are later
// ones.
Result<std::optional<Commit>> CommitLog::later_than(std::uint64_t number) {
  constexpr int kTriesMax = 64;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    VARVE_TRY_ASSIGN(const auto newest, this->newest(number));
    if (!newest) return std::optional<Commit>();
    auto text = read(*newest);
    if (text) return std::optional(Commit{*newest, *std::move(text)});
    if (text.error().code() != ErrorCode::kNotFound) return std::move(text).error();
    number = *newest;
  }
  return Error(ErrorCode::kCorrupt, describe() + " lists heads again and again that are not there");
}

Result<std::optional<std::uint64_t>> CommitLog::newest(std::uint64_t after) {
  std::optional<std::uint64_t> newest;
  VARVE_TRY(list(after, [&](std::uint64_t number, Timestamp) { newest = number; }));
  return newest;
}

// Of one number, no two texts are ever confirmed, so a present copy has the same text. A store
// with locks may refuse to overwrite the copy.
Result<void> CommitLog::write_copy(std::uint64_t number, std::string_view text) {
  const std::array<std::span<const std::byte>, 1> bytes{base::as_bytes(text)};
  auto put = bucket_.put(copy_name(name(number)), bytes,
                         {.condition = bucket::PutCondition::kIfAbsent});  // O64
  return !put && put.error().code() == ErrorCode::kExists ? Result<void>() : put;
}

Result<std::string> CommitLog::read_copy(std::uint64_t number) {
  VARVE_TRY_ASSIGN(const auto bytes, bucket_.get_all(copy_name(name(number)), kHeadBytesMax));
  return std::string(base::as_text(bytes));
}

Result<void> CommitLog::list_with_copies(
    std::uint64_t after, const std::function<void(std::uint64_t number, bool is_copy)>& found) {
  return bucket::list_all(
      bucket_, head_prefix(repository_id_), after == 0 ? std::string() : name(after),
      [&](const bucket::ObjectInfo& object) -> Result<void> {
        const auto copied = copied_name(object.name);
        const auto number = head_number(repository_id_, copied ? *copied : object.name);
        if (number) found(*number, copied.has_value());
        return {};
      });
}

Result<void> CommitLog::list(std::uint64_t after, const Found& found) {
  return bucket::list_all(bucket_, head_prefix(repository_id_),
                          after == 0 ? std::string() : name(after),
                          [&](const bucket::ObjectInfo& object) -> Result<void> {
                            const auto number = head_number(repository_id_, object.name);
                            if (number) found(*number, object.modified);
                            return {};
                          });
}

std::string CommitLog::name(std::uint64_t number) const {
  return head_name(repository_id_, number);
}

std::string CommitLog::describe(std::uint64_t number) const {
  const auto store = bucket_.describe();
  return number == 0 ? store : store + "/" + name(number);
}

}  // namespace varve::remote
