// SPDX-License-Identifier: Apache-2.0
#include "remote/catalog_reads.h"

#include <fmt/core.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/log.h"
#include "remote/head_objects.h"

namespace varve::remote {

namespace {

/// The first bytes of an object, and their proof.
struct WantedObject {
  const std::string* name = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t object_bytes = 0;
  std::function<Result<void>(const std::string& text)> verify{};
};

// Reads the first bytes of objects, and verifies each text.
ObjectTexts read_together(bucket::Bucket& bucket, const std::vector<WantedObject>& objects) {
  std::vector<std::string> texts;
  std::vector<bucket::ObjectRead> reads;
  std::vector<std::size_t> positions;
  ObjectTexts results;
  texts.reserve(objects.size());  // The spans below refer to the texts.
  for (std::size_t i = 0; i < objects.size(); ++i) {
    texts.emplace_back(objects[i].bytes, '\0');
    results.emplace_back(std::string());
    if (objects[i].bytes == 0) continue;
    reads.push_back({*objects[i].name, 0, std::as_writable_bytes(std::span(texts[i]))});
    positions.push_back(i);
  }
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t left = reads.size();
  if (!reads.empty()) {
    bucket.read_many(std::move(reads), [&](std::size_t at, Result<std::size_t> got) {
      const std::lock_guard lock(mutex);
      const auto position = positions[at];
      if (got && *got != texts[position].size()) {
        got = Error(ErrorCode::kCorrupt, *objects[position].name + " is too short");
      }
      if (!got) results[position] = got.error();
      if (--left == 0) ended.notify_all();
    });
  }
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return left == 0; });
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (!results[i]) continue;
    const auto verified = objects[i].verify(texts[i]);
    results[i] = verified ? Result<std::string>(std::move(texts[i])) : verified.error();
  }
  return results;
}

Result<std::vector<std::string>> all_or_error(ObjectTexts results) {
  std::vector<std::string> texts;
  for (auto& result : results) {
    if (!result) return std::move(result).error();
    texts.push_back(*std::move(result));
  }
  return texts;
}

// Reads a lost object again, in case only an answer was wrong, and then the copy.
Result<std::string> read_again(bucket::Bucket& bucket, const WantedObject& object,
                               const Error& loss, bool& took_copy) {
  for (const bool is_copy : {false, true}) {
    if (!is_copy && loss.code() == ErrorCode::kNotFound) continue;
    const auto bytes =
        bucket.get_all(is_copy ? copy_name(*object.name) : *object.name, object.object_bytes);
    if (!bytes && !is_loss(bytes.error())) return bytes.error();
    if (!bytes || bytes->size() < object.bytes) continue;
    auto text = std::string(base::as_text(*bytes).substr(0, object.bytes));
    if (!object.verify(text)) continue;
    took_copy = is_copy;
    return text;
  }
  return loss;
}

ObjectTexts read_or_copies(bucket::Bucket& bucket, const std::vector<WantedObject>& objects) {
  auto results = read_together(bucket, objects);
  std::size_t copies = 0;
  const std::string* first = nullptr;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (results[i] || !is_loss(results[i].error())) continue;
    bool took_copy = false;
    results[i] = read_again(bucket, objects[i], Error(results[i].error()), took_copy);
    if (took_copy && copies++ == 0) first = objects[i].name;
  }
  if (copies == 0) return results;
  const auto more = copies > 1 ? fmt::format(" and {} more objects", copies - 1) : std::string();
  base::log(base::LogLevel::kWarning,
            fmt::format("{}/{}{}: lost or damaged in the store; the copies were read. `varve "
                        "repair` in the folder that writes uploads such objects again",
                        bucket.describe(), *first, more));
  return results;
}

Result<std::vector<WantedObject>> wanted_catalog(const bucket::Bucket& bucket,
                                                 std::span<const CatalogObject> objects) {
  std::vector<WantedObject> wanted;
  for (const auto& object : objects) {
    if (object.bytes > kCatalogObjectBytesMax) {
      return Error(ErrorCode::kCorrupt, object.name + " is longer than any catalog object");
    }
    wanted.push_back({&object.name, object.bytes, object.bytes,
                      [&bucket, &object](const std::string& text) -> Result<void> {
                        if (digest_of(text) == object.digest) return {};
                        return Error(ErrorCode::kCorrupt,
                                     fmt::format("{}/{} has other bytes than its head says",
                                                 bucket.describe(), object.name));
                      }});
  }
  return wanted;
}

std::vector<WantedObject> wanted_extents(const std::vector<Extent>& extents) {
  std::vector<WantedObject> wanted;
  for (const auto& extent : extents) {
    const auto bytes = extent.lead.size() + extent.bytes;
    wanted.push_back({&extent.object, bytes, extent.object_bytes,
                      [&extent, bytes](const std::string& text) -> Result<void> {
                        const bool is_whole = bytes == extent.object_bytes;
                        const bool is_copy = extent.checksum == 0;  // The store made it.
                        if (!is_whole || is_copy || extent.bytes == 0) return {};
                        if (base::checksum64(base::as_bytes(text)) == extent.checksum) return {};
                        return Error(ErrorCode::kCorrupt,
                                     extent.object + " has other bytes than were uploaded");
                      }});
  }
  return wanted;
}

ObjectTexts without_leads(ObjectTexts texts, const std::vector<Extent>& extents) {
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (texts[i]) texts[i]->erase(0, extents[i].lead.size());
  }
  return texts;
}

}  // namespace

bool is_loss(const Error& error) {
  return error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kCorrupt ||
         error.code() == ErrorCode::kTooLarge;
}

Result<std::vector<std::string>> read_extents(bucket::Bucket& bucket,
                                              const std::vector<Extent>& extents) {
  return all_or_error(without_leads(read_together(bucket, wanted_extents(extents)), extents));
}

Result<std::vector<std::string>> read_catalog_objects(bucket::Bucket& bucket,
                                                      std::span<const CatalogObject> objects) {
  VARVE_TRY_ASSIGN(const auto wanted, wanted_catalog(bucket, objects));
  return all_or_error(read_together(bucket, wanted));
}

ObjectTexts read_catalog_or_copies(bucket::Bucket& bucket, std::span<const CatalogObject> objects) {
  const auto wanted = wanted_catalog(bucket, objects);
  if (!wanted) return {objects.size(), Result<std::string>(wanted.error())};
  return read_or_copies(bucket, *wanted);
}

Result<std::vector<std::string>> read_all_or_copies(bucket::Bucket& bucket,
                                                    std::span<const CatalogObject> objects) {
  return all_or_error(read_catalog_or_copies(bucket, objects));
}

ObjectTexts read_extents_or_copies(bucket::Bucket& bucket, const std::vector<Extent>& extents) {
  return without_leads(read_or_copies(bucket, wanted_extents(extents)), extents);
}

}  // namespace varve::remote
