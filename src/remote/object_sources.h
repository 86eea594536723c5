// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "bucket/bucket.h"
#include "io/file_system.h"
#include "remote/bucket_config.h"
#include "remote/changes.h"
#include "remote/head.h"
#include "varve/result.h"

namespace varve::remote {

/// Finds the bytes of lost objects in other places: in the object's copy, in the folder's files,
/// and in the folder's cache. Each text has the checksum that the head or the map gives, so the
/// text may be written under the object's own name. Not thread-safe.
class ObjectSources {
 public:
  /// Lifetime: `bucket` and `files` outlive the object.
  ObjectSources(bucket::Bucket& bucket, io::FileSystem& files, std::string root,
                const BucketConfig& config, const Head& head, const ObjectMap& map);

  /// Returns the bytes of an object, or of a copy of an object; nullopt if no place has all bytes.
  /// Holds one object in memory. Errors: errors of the bucket, except for lost objects.
  [[nodiscard]] Result<std::optional<std::string>> find(const std::string& name);
  /// Writes the bytes of find() under the object's name. Returns false without all bytes.
  [[nodiscard]] Result<bool> put_back(const std::string& name);

 private:
  using Text = std::optional<std::string>;
  struct Place {
    std::string path;
    std::uint64_t offset = 0;
    Extent extent{};
  };
  /// Reads an object of the head under another name: the object's own name, or the copy's.
  [[nodiscard]] Result<Text> from_store(const std::string& name, const std::string& read_as);
  [[nodiscard]] Text from_cache(const Place& place);

  bucket::Bucket& bucket_;
  io::FileSystem& files_;
  const std::string root_;
  const BucketConfig config_;
  std::map<std::string, CatalogObject> catalog_;
  std::map<std::string, Place> places_;  // Objects whose checksum is known.
};

}  // namespace varve::remote
