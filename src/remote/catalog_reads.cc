// SPDX-License-Identifier: Apache-2.0
#include "remote/catalog_reads.h"

#include <fmt/core.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "base/checksum.h"
#include "base/coding.h"
#include "remote/head_objects.h"

namespace varve::remote {

namespace {

struct WholeObject {
  const std::string* name = nullptr;
  std::uint64_t bytes = 0;
};

// Reads the first bytes of objects.
Result<std::vector<std::string>> read_together(bucket::Bucket& bucket,
                                               const std::vector<WholeObject>& objects) {
  std::vector<std::string> texts;
  std::vector<bucket::ObjectRead> reads;
  std::vector<std::size_t> positions;
  texts.reserve(objects.size());  // The spans below refer to the texts.
  for (std::size_t i = 0; i < objects.size(); ++i) {
    texts.emplace_back(objects[i].bytes, '\0');
    if (objects[i].bytes == 0) continue;
    reads.push_back({*objects[i].name, 0, std::as_writable_bytes(std::span(texts[i]))});
    positions.push_back(i);
  }
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t left = reads.size();
  std::optional<Error> error;
  if (reads.empty()) return texts;
  bucket.read_many(std::move(reads), [&](std::size_t at, Result<std::size_t> got) {
    const std::lock_guard lock(mutex);
    if (got && *got != texts[positions[at]].size()) {
      got = Error(ErrorCode::kCorrupt, *objects[positions[at]].name + " is too short");
    }
    if (!got && !error) error = got.error();
    if (--left == 0) ended.notify_all();
  });
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return left == 0; });
  if (error) return *error;
  return texts;
}

}  // namespace

Result<std::vector<std::string>> read_extents(bucket::Bucket& bucket,
                                              const std::vector<Extent>& extents) {
  std::vector<WholeObject> objects;
  for (const auto& extent : extents) objects.push_back({&extent.object, extent.bytes});
  VARVE_TRY_ASSIGN(auto texts, read_together(bucket, objects));
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const bool is_whole = extents[i].bytes == extents[i].object_bytes;
    const bool is_copy = extents[i].checksum == 0;  // The store made it.
    if (!is_whole || is_copy || extents[i].bytes == 0) continue;
    if (base::checksum64(base::as_bytes(texts[i])) != extents[i].checksum) {
      return Error(ErrorCode::kCorrupt, extents[i].object + " has other bytes than were uploaded");
    }
  }
  return texts;
}

Result<std::vector<std::string>> read_catalog_objects(bucket::Bucket& bucket,
                                                      std::span<const CatalogObject> objects) {
  std::vector<WholeObject> wanted;
  for (const auto& object : objects) {
    if (object.bytes > kCatalogObjectBytesMax) {
      return Error(ErrorCode::kCorrupt, object.name + " is longer than any catalog object");
    }
    wanted.push_back({&object.name, object.bytes});
  }
  VARVE_TRY_ASSIGN(auto texts, read_together(bucket, wanted));
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (digest_of(texts[i]) == objects[i].digest) continue;
    return Error(ErrorCode::kCorrupt, fmt::format("{}/{} has other bytes than its head says",
                                                  bucket.describe(), objects[i].name));
  }
  return texts;
}

}  // namespace varve::remote
