// SPDX-License-Identifier: Apache-2.0
#include "remote/newer_objects.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "remote/garbage.h"
#include "remote/readable_head.h"
#include "remote/replica_state.h"
#include "remote/uploads.h"

namespace varve::remote {

namespace {

constexpr std::size_t kOlderHeadsMax = 64;
constexpr std::size_t kHeadsReadAtOnce = 16;

/// Objects without a head, with the times of the uploads.
using Unnamed = std::map<std::string, Timestamp>;

// Returns the time of the head by the store's clock; 0 without the head. The copy comes later.
Result<std::int64_t> time_of(bucket::Bucket& bucket, const Head& head) {
  std::int64_t seconds = 0;
  const auto name = head_name(head.repository_id, head.number);
  VARVE_TRY(
      bucket::list_all(bucket, name, "", [&](const bucket::ObjectInfo& object) -> Result<void> {
        const auto at = object.modified.seconds;
        seconds = seconds == 0 ? at : std::min(seconds, at);
        return {};
      }));
  return seconds;
}

// Lists the unnamed objects of a folder of the repository from a time on. For a copy, returns the
// name of the copied object.
Result<Unnamed> list_from(bucket::Bucket& bucket, const Head& head, const char* folder,
                          std::int64_t seconds, const std::set<std::string>& named) {
  Unnamed found;
  const auto prefix = head.repository_id + "/" + folder + "/";
  VARVE_TRY(
      bucket::list_all(bucket, prefix, "", [&](const bucket::ObjectInfo& object) -> Result<void> {
        if (object.modified.seconds < seconds || !is_data_name(object.name, prefix)) return {};
        const auto copied = copied_name(object.name);
        const auto& name = copied ? *copied : object.name;
        if (!named.contains(name)) found.emplace(name, object.modified);
        return {};
      }));
  return found;
}

// Drops the objects that older heads name.
Result<void> drop_named(CommitLog& log, std::uint64_t below, Unnamed& unnamed) {
  std::vector<std::uint64_t> numbers;
  VARVE_TRY(log.list(0, [&](std::uint64_t number, Timestamp) {
    if (number < below) numbers.push_back(number);
  }));
  std::ranges::reverse(numbers);
  numbers.resize(std::min(numbers.size(), kOlderHeadsMax));
  for (std::size_t at = 0; at < numbers.size() && !unnamed.empty(); at += kHeadsReadAtOnce) {
    const auto end = std::min(numbers.size(), at + kHeadsReadAtOnce);
    std::vector<Result<std::string>> texts(end - at, std::string());
    Uploads reads({.requests = kHeadsReadAtOnce});
    for (std::size_t i = at; i < end; ++i) {
      VARVE_TRY(reads.begin(
          0,
          [&log, number = numbers[i], text = &texts[i - at]]() -> Result<void> {
            *text = log.read(number);
            return {};
          },
          nullptr));
    }
    VARVE_TRY(reads.finish());
    for (const auto& text : texts) {
      const auto head = text ? decode_head(*text) : Result<Head>(text.error());
      if (!head) continue;  // A damaged head names nothing.
      for (const auto& object : head->catalog) unnamed.erase(object.name);
    }
  }
  return {};
}

std::string example(const Unnamed& unnamed) {
  const auto newest = std::ranges::max_element(unnamed, {}, [](const auto& one) {
    return std::pair(one.second.seconds, one.second.nanoseconds);
  });
  return fmt::format("{} of {}", newest->first, base::local_time_text(newest->second));
}

}  // namespace

Result<std::optional<Error>> find_lost_head(bucket::Bucket& bucket, CommitLog& log,
                                            const Head& newest, const NoEvidence& none) {
  std::set<std::string> named = none.own;
  for (const auto& object : newest.catalog) named.insert(object.name);
  VARVE_TRY_ASSIGN(const auto seconds, time_of(bucket, newest));
  VARVE_TRY_ASSIGN(auto unnamed, list_from(bucket, newest, "cat", seconds, named));
  std::erase_if(unnamed, [&](const auto& one) { return one.second.seconds > none.uploaded_after; });
  if (!unnamed.empty()) VARVE_TRY(drop_named(log, newest.number, unnamed));
  if (unnamed.empty()) return std::optional<Error>();
  return std::optional(Error(
      ErrorCode::kCorrupt,
      fmt::format("{}: no head names {} catalog objects (the newest: {}), although they are not "
                  "older than head {} of {}, the newest one. Either the store has lost the head "
                  "that named them, with its copy, or a folder was interrupted before it created "
                  "that head",
                  bucket.describe(), unnamed.size(), example(unnamed), newest.number,
                  base::local_time_text({newest.seconds, 0}))));
}

Result<void> warn_of_newer_data(bucket::Bucket& bucket, CommitLog& log, const Head& newest,
                                const ObjectMap& map, const std::set<std::string>& own) {
  std::set<std::string> named = names_of(map);
  named.insert(own.begin(), own.end());
  VARVE_TRY_ASSIGN(const auto seconds, time_of(bucket, newest));
  Unnamed unnamed;
  for (const auto* const folder : {"other", "seg", "vol"}) {
    // An object of the same second may be garbage of the head.
    VARVE_TRY_ASSIGN(auto more, list_from(bucket, newest, folder, seconds + 1, named));
    unnamed.merge(more);
  }
  if (unnamed.empty()) return {};
  base::log(base::LogLevel::kWarning,
            fmt::format("{} has {} objects that are newer than its newest state, head {} of {}, "
                        "and do not belong to it, such as {}. An interrupted upload leaves such "
                        "objects. If the folder that wrote them still exists, its versions are "
                        "only there, and `varve copy` brings them into another repository",
                        log.describe(), unnamed.size(), newest.number,
                        base::local_time_text({newest.seconds, 0}), example(unnamed)));
  return {};
}

std::set<std::string> noted_garbage(io::FileSystem& files, const std::string& folder) {
  const auto state = find_state(files, folder);
  if (!state || !*state) return {};
  const auto names = (*state)->garbage().due(std::numeric_limits<std::int64_t>::max(),
                                             std::numeric_limits<std::uint64_t>::max(),
                                             std::numeric_limits<std::size_t>::max());
  if (!names) return {};
  return {names->begin(), names->end()};
}

}  // namespace varve::remote
