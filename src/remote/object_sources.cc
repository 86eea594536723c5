// SPDX-License-Identifier: Apache-2.0
#include "remote/object_sources.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/coding.h"
#include "remote/block_cache.h"
#include "remote/catalog_reads.h"
#include "remote/head_objects.h"
#include "remote/local_object.h"

namespace varve::remote {

ObjectSources::ObjectSources(bucket::Bucket& bucket, io::FileSystem& files, std::string root,
                             const BucketConfig& config, const Head& head, const ObjectMap& map)
    : bucket_(bucket), files_(files), root_(std::move(root)), config_(config) {
  for (const auto& object : head.catalog) catalog_[object.name] = object;
  for (const auto& [path, extents] : map) {
    std::uint64_t offset = 0;
    for (const auto& extent : extents) {
      // A checksum of 0: the store made the object.
      if (!extent.object.empty() && extent.checksum != 0) {
        places_[extent.object] = {path, offset, extent};
      }
      offset += extent.bytes;
    }
  }
}

Result<ObjectSources::Text> ObjectSources::from_store(const std::string& name,
                                                      const std::string& read_as) {
  const auto read = [&]() -> Result<std::string> {
    if (const auto known = catalog_.find(name); known != catalog_.end()) {
      auto object = known->second;
      object.name = read_as;
      return read_catalog_object(bucket_, object);
    }
    auto extent = whole_object(places_.at(name).extent);
    extent.object = read_as;
    VARVE_TRY_ASSIGN(auto texts, read_extents(bucket_, {extent}));
    return std::move(texts.front());
  };
  auto text = read();
  if (text) return Text(*std::move(text));
  if (is_loss(text.error())) return Text();
  return std::move(text).error();
}

ObjectSources::Text ObjectSources::from_cache(const Place& place) {
  BlockCache cache(files_, root_ + "/cache", cached_block_bytes_of(config_));
  std::string text(place.extent.object_bytes, '\0');
  const auto room = std::as_writable_bytes(std::span(text));
  for (std::uint64_t at = 0; at < room.size(); at += kCacheBlockBytes) {
    const auto block =
        room.subspan(at, std::min<std::uint64_t>(kCacheBlockBytes, room.size() - at));
    const auto count = (block.size() + kCacheCellBytes - 1) / kCacheCellBytes;
    const auto all = static_cast<CellSet>((1U << count) - 1);
    const auto number = at / kCacheBlockBytes;
    if (cache.read(place.extent.object, number, all, block) != all) return std::nullopt;
  }
  if (!is_content_of(place.extent, text)) return std::nullopt;
  return text;
}

Result<ObjectSources::Text> ObjectSources::find(const std::string& name) {
  const auto original = copied_name(name);
  const auto& object = original ? *original : name;
  const auto place = places_.find(object);
  if (place == places_.end() && !catalog_.contains(object)) return Text();
  if (place != places_.end()) {
    const auto& [path, offset, extent] = place->second;
    if (auto text = object_in_file(files_, root_ + "/" + path, offset, extent)) return text;
    if (auto text = from_cache(place->second)) return text;
  }
  if (original) return from_store(object, object);
  const bool is_copied =
      place == places_.end() || has_copy(place->second.path, place->second.extent);
  return is_copied ? from_store(object, copy_name(object)) : Result<Text>(Text());
}

Result<bool> ObjectSources::put_back(const std::string& name) {
  VARVE_TRY_ASSIGN(const auto text, find(name));
  if (!text) return false;
  bucket::PutOptions options;
  const auto place = places_.find(name);
  const bool is_volume =
      place != places_.end() && place->second.path.find("/volumes/") != std::string::npos;
  if (is_volume) options.storage_class = config_.volume_class;
  const std::array<std::span<const std::byte>, 1> body{base::as_bytes(*text)};
  VARVE_TRY(bucket_.put(name, body, options));
  return true;
}

}  // namespace varve::remote
