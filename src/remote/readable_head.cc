// SPDX-License-Identifier: Apache-2.0
#include "remote/readable_head.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "remote/catalog_reads.h"
#include "remote/changes.h"
#include "remote/head.h"
#include "remote/head_objects.h"

namespace varve::remote {

namespace {

// Limit of heads that a search reads: as many as a store keeps.
constexpr std::size_t kHeadsSearched = 1000;
// Limit of unreadable heads in a row. A store that damages more heads has no state worth a search.
constexpr std::size_t kUnreadableMax = 16;

Result<std::uint64_t> number_of(const std::string& head) {
  if (head.empty()) return std::uint64_t{0};
  VARVE_TRY_ASSIGN(const auto decoded, decode_head(head));
  return decoded.number;
}

Error lacks(const CommitLog& log, std::uint64_t known) {
  if (known != 0) {
    return {ErrorCode::kCorrupt,
            fmt::format("{} lacks the head {}, which was there before: an older state of the store "
                        "was put back, or its newest objects were removed. `varve repair` in this "
                        "folder, or in the one that writes, puts the head back",
                        log.describe(), known)};
  }
  return {ErrorCode::kNoRepository,
          log.describe() + " has a repository, but nothing was replicated to it yet"};
}

}  // namespace

Result<std::string> read_head_or_copy(CommitLog& log, std::uint64_t number) {
  auto head = read_head(log, number);
  if (head || head.error().code() != ErrorCode::kNotFound) return head;
  auto copy = read_head_copy(log, number);
  if (!copy) return is_loss(copy.error()) ? head : copy;
  base::log(base::LogLevel::kWarning,
            log.describe(number) +
                " is missing; its copy was read. `varve repair` in the folder "
                "that writes puts the head back");
  return copy;
}

namespace {

// Returns the numbers of the newest heads and copies from `first` on, descending.
Result<std::deque<std::uint64_t>> newest_numbers(CommitLog& log, std::uint64_t first) {
  std::deque<std::uint64_t> numbers;
  VARVE_TRY(log.list_with_copies(first == 0 ? 0 : first - 1, [&](std::uint64_t number, bool) {
    if (number < first || (!numbers.empty() && numbers.front() == number)) return;
    numbers.push_front(number);
    if (numbers.size() > kHeadsSearched) numbers.pop_back();
  }));
  return numbers;
}

void log_older(const CommitLog& log, const ReadableHead& head, const std::string& more) {
  const auto decoded = decode_head(head.text);
  const Timestamp time{decoded ? decoded->seconds : 0, 0};
  base::log(base::LogLevel::kWarning,
            fmt::format("{}. An OLDER state is used: head {} of {}, instead of head {}. Versions "
                        "sealed since are missing{}. `varve repair` in the folder that writes puts "
                        "lost objects back",
                        head.fault ? head.fault->message() : log.describe(), head.number,
                        base::local_time_text(time), head.newest, more));
}

/// The catalog objects that a search has read or found lost.
class CatalogSearch {
 public:
  CatalogSearch(bucket::Bucket& bucket, std::string repository_id)
      : bucket_(bucket), repository_id_(std::move(repository_id)) {}

  // Returns whether all catalog objects of a head can be read.
  Result<bool> is_readable(const Head& head) {
    for (const auto& object : head.catalog) {
      if (lost_.contains(object.name)) return false;
    }
    for (const auto& object : head.catalog) {
      if (whole_.contains(object.name)) continue;
      const auto read = read_all_or_copies(bucket_, {&object, 1});
      if (!read && !is_loss(read.error())) return read.error();
      (read ? whole_ : lost_).insert(object.name);
      if (!read) return false;
    }
    return true;
  }

  // Returns whether the store lists the segments and volumes of a head.
  Result<bool> has_data(const Head& head) {
    VARVE_TRY_ASSIGN(const auto parts, read_all_or_copies(bucket_, head.catalog));
    VARVE_TRY_ASSIGN(const auto map, map_after({}, parts, true));
    std::map<std::string, std::uint64_t> missing;
    for (const auto& [path, extents] : map) {
      for (const auto& extent : extents) {
        if (extent.mark == 0 && !extent.object.empty())
          missing[extent.object] = extent.object_bytes;
      }
    }
    for (const auto* const folder : {"/seg/", "/vol/"}) {
      VARVE_TRY(bucket::list_all(bucket_, repository_id_ + folder, "",
                                 [&](const bucket::ObjectInfo& object) -> Result<void> {
                                   const auto known = missing.find(object.name);
                                   if (known != missing.end() && known->second == object.bytes) {
                                     missing.erase(known);
                                   }
                                   return {};
                                 }));
    }
    return missing.empty();
  }

 private:
  bucket::Bucket& bucket_;
  const std::string repository_id_;
  std::set<std::string> whole_;
  std::set<std::string> lost_;
};

}  // namespace

Result<std::string> newest_head(CommitLog& log, const std::string& known) {
  VARVE_TRY_ASSIGN(const auto known_number, number_of(known));
  VARVE_TRY_ASSIGN(const auto numbers, newest_numbers(log, known_number));
  if (numbers.empty()) return lacks(log, known_number);
  return numbers.front() == known_number ? known : read_head(log, numbers.front());
}

Result<ReadableHead> readable_head(CommitLog& log, const std::string& known) {
  VARVE_TRY_ASSIGN(const auto known_number, number_of(known));
  VARVE_TRY_ASSIGN(const auto numbers, newest_numbers(log, known_number));
  if (numbers.empty()) return lacks(log, known_number);
  ReadableHead found;
  found.newest = numbers.front();
  for (std::size_t tries = 0; tries < std::min(numbers.size(), kUnreadableMax); ++tries) {
    found.number = numbers[tries];
    auto text = found.number == known_number ? Result<std::string>(known)
                                             : read_head_or_copy(log, found.number);
    if (!text && !is_loss(text.error())) return std::move(text).error();
    if (text) {
      found.text = *std::move(text);
      if (found.fault) log_older(log, found, "");
      return found;
    }
    if (!found.fault) found.fault = text.error();
  }
  return *found.fault;
}

Result<std::string> readable_text(CommitLog& log, const std::string& known) {
  VARVE_TRY_ASSIGN(auto found, readable_head(log, known));
  return std::move(found.text);
}

Result<ReadableHead> older_whole_head(bucket::Bucket& bucket, CommitLog& log,
                                      const ReadableHead& lost, const Error& fault) {
  VARVE_TRY_ASSIGN(const auto head, decode_head(lost.text));
  CatalogSearch search(bucket, head.repository_id);
  VARVE_TRY_ASSIGN(const auto numbers, newest_numbers(log, 0));
  std::optional<ReadableHead> readable;
  for (const auto number : numbers) {
    if (number >= lost.number) continue;
    auto text = read_head_or_copy(log, number);
    if (!text && !is_loss(text.error())) return std::move(text).error();
    if (!text) continue;
    VARVE_TRY_ASSIGN(const auto older, decode_head(*text));
    VARVE_TRY_ASSIGN(const bool is_readable, search.is_readable(older));
    if (!is_readable) continue;
    ReadableHead found{*std::move(text), number, lost.newest, lost.fault ? *lost.fault : fault};
    VARVE_TRY_ASSIGN(const bool has_data, search.has_data(older));
    if (!has_data) {
      if (!readable) readable = std::move(found);
      continue;
    }
    log_older(log, found, "");
    return found;
  }
  if (!readable) return fault;
  log_older(log, *readable,
            ", and parts of older versions, whose data was removed; `varve check` lists the loss");
  return *readable;
}

}  // namespace varve::remote
