// SPDX-License-Identifier: Apache-2.0
#include "remote/object_uploader.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/checksum.h"
#include "base/coding.h"
#include "base/log.h"
#include "base/random_bytes.h"
#include "format/key_slot_text.h"
#include "format/superblock.h"
#include "remote/catalog_merge.h"
#include "remote/catalog_reads.h"
#include "remote/label_parts.h"
#include "remote/object_cut.h"
#include "remote/replicator_round.h"
#include "remote/small_copies.h"
#include "remote/upload_check.h"

namespace varve::remote {

namespace {

// Names keep the form of earlier releases: the holder and a number.
constexpr std::size_t kHolderDigits = 16;
constexpr std::size_t kNumberDigits = 8;

/// Returns a text that identifies the bytes of a file. With a random seed, contents with equal
/// digests cannot be prepared in advance.
Result<std::string> content_text(const std::string& path, std::uint64_t offset,
                                 std::span<const std::byte> bytes) {
  VARVE_TRY_ASSIGN(const auto seed, base::random_bytes<8>());
  const auto digest =
      XXH3_128bits_withSeed(bytes.data(), bytes.size(), base::load_le<std::uint64_t>(seed.data()));
  return fmt::format("{} {} {} {:016x}{:016x}", path, offset, bytes.size(), digest.high64,
                     digest.low64);
}

bool is_volume(const std::string& path) { return path.find("/volumes/") != std::string::npos; }

// O64. `bytes` owns the object's bytes, or refers to bytes that outlive the round's uploads.
template <typename Bytes>
Result<void> upload_copy(ReplicationRound& round, bucket::Bucket& bucket, const std::string& name,
                         Bytes bytes) {
  ++round.report.objects;
  round.report.bytes += bytes->size();
  return round.uploads.begin(
      bytes->size(),
      [&bucket, name, bytes] {
        return write_copy(bucket, name, std::as_bytes(std::span(bytes->data(), bytes->size())));
      },
      nullptr);
}

}  // namespace

Error changed_meanwhile(const std::string& path) {
  return {ErrorCode::kStale, path + " was changed while it was uploaded"};
}

Result<void> ObjectUploader::upload_files(Round& round) {
  // The uploads verify the files again below, before any head names the files.
  if (parts_.notes != nullptr) {
    VARVE_TRY(parts_.notes->remove(LocalNote::kDamaged, round.changed));
  }
  VARVE_TRY_ASSIGN(const auto uploaded, state_.uploaded());
  const auto superblock = format::decode_superblock(round.superblock);
  const bool has_parts = superblock && superblock->needs_label_parts;
  for (const auto& file : round.files) {
    const auto series = has_parts ? series_of_labels(file.path) : std::nullopt;
    if (series) {
      VARVE_TRY(upload_labels(round, file, *series));
      continue;
    }
    auto& extents = round.objects[file.path];
    const auto known = objects_.find(file.path);
    const bool again = round.changed.contains(file.path);
    if (!again && known != objects_.end() && !known->second.empty() &&
        known->second.back().mark == file.mark) {
      // The front stays; a file is only cut at its end.
      std::uint64_t at = 0;
      for (auto extent : known->second) {
        if (at >= file.bytes) break;
        extent.bytes = std::min(extent.bytes, file.bytes - at);
        at += extent.bytes;
        extents.push_back(std::move(extent));
      }
      if (file.mark != 0 && at != file.bytes) extents.clear();
      if (round.is_rebuilt) VARVE_TRY(keep_equal_front(file, extents));
    }
    // Extents uploaded by an interrupted replication.
    while (file.mark == 0 && !round.is_rebuilt && !again) {
      const auto at = bytes_of(extents);
      const auto more = uploaded.find(extent_key(file.path, at));
      if (more == uploaded.end() || at + more->second.bytes > file.bytes) break;
      extents.push_back(more->second);
    }
    if (file.mark == 0) VARVE_TRY(cut_objects(round, file.path));
    VARVE_TRY(upload_file(round, file));
  }
  return {};
}

// Compares the file with its extents byte for byte. Drops the extents from the first difference on.
Result<void> ObjectUploader::keep_equal_front(const ReplicaFile& file,
                                              std::vector<Extent>& extents) {
  auto opened = parts_.files->open(parts_.root + "/" + file.path, io::OpenMode::kRead);
  if (!opened && opened.error().code() == ErrorCode::kNotFound) {
    // Only the store has the file, so the rebuilt catalog was made from the store's file.
    if (file.mark == 0 && bytes_of(extents) == file.bytes) return {};
    return changed_meanwhile(file.path);
  }
  if (!opened) return std::move(opened).error();
  std::uint64_t at = 0;
  for (auto extent = extents.begin(); extent != extents.end(); ++extent) {
    std::vector<std::byte> bytes(extent->bytes);
    VARVE_TRY_ASSIGN(const auto got, (*opened)->read_at(at, bytes));
    const bool equal = got == bytes.size() && extent->bytes == extent->object_bytes &&
                       base::checksum64(bytes) == extent->checksum;
    if (!equal) {
      extents.erase(extent, extents.end());
      return {};
    }
    at += extent->bytes;
  }
  return {};
}

// O51: after the upload the store may have the only copy, so damage of the disk must not go
// unnoticed. Damaged bytes are uploaded unchanged: a repair must not delay the replication of other
// versions.
Result<std::optional<std::string>> ObjectUploader::check_extent(const FileContainers& containers,
                                                                io::File& file,
                                                                const std::string& path,
                                                                std::uint64_t offset,
                                                                std::span<std::byte> bytes) {
  if (!fault_in_extent(containers, offset, bytes, container_keys_.get())) {
    return std::optional<std::string>();
  }
  // Only the memory may have been wrong.
  VARVE_TRY_ASSIGN(const auto got, file.read_at(offset, bytes));
  if (got != bytes.size()) return Error(ErrorCode::kStale, path + " was changed");
  auto fault = fault_in_extent(containers, offset, bytes, container_keys_.get());
  if (!fault) return fault;
  *fault = parts_.root + "/" + path + ": " + *fault;
  base::log(base::LogLevel::kError, *fault + ", before it was uploaded; run `varve repair`");
  if (parts_.notes != nullptr) VARVE_TRY(parts_.notes->add(LocalNote::kDamaged, path));
  return fault;
}

// O44: after a virtual machine was reset to a snapshot, both of its futures may draw the same
// random bytes. Then the digest still gives different contents different names.
Result<std::string> ObjectUploader::new_name(const char* folder, std::string_view content) const {
  VARVE_TRY_ASSIGN(const auto random, base::random_bytes<16>());
  const auto digits =
      format::hex_text(digest_of(std::string(base::as_text(random)).append(content)));
  return fmt::format("{}/{}/{}-{}", parts_.repository_id, folder, digits.substr(0, kHolderDigits),
                     digits.substr(kHolderDigits, kNumberDigits));
}

// Replaces objects with much dead space by copies inside the store. The next head examines objects
// without a copy again.
Result<void> ObjectUploader::cut_objects(Round& round, const std::string& path) {
  for (const auto& extent : round.objects[path]) {
    if (!copies_ranges_ || !is_worth_cutting(extent)) continue;
    VARVE_TRY_ASSIGN(const auto to,
                     new_name(is_volume(path) ? "vol" : "seg",
                              fmt::format("front {} {}", extent.object, extent.bytes)));
    doubtful_.insert(to);
    round.copies_begun = true;
    const auto cut_to = std::make_shared<CutObject>();
    VARVE_TRY(round.uploads.begin(
        0,
        [bucket = parts_.bucket, from = extent.object, bytes = extent.bytes, to,
         cut_to]() -> Result<void> {
          VARVE_TRY_ASSIGN(*cut_to, copy_live_front(*bucket, from, bytes, to));
          return {};
        },
        [this, &round, path, from = extent.object, to, cut_to]() -> Result<void> {
          if (cut_to->outcome == CutOutcome::kUnsupported) copies_ranges_ = false;
          if (cut_to->outcome != CutOutcome::kCopied) return {};
          if (!cut_to->etag.empty()) etags_[to] = cut_to->etag;
          for (auto& cut : round.objects[path]) {
            if (cut.object != from) continue;
            cut.object = to;
            cut.object_bytes = cut.bytes;
            cut.checksum = 0;
          }
          ++round.report.copies;
          return {};
        }));
  }
  return {};
}

Result<bool> ObjectUploader::upload_file(Round& round, const ReplicaFile& file) {
  auto& extents = round.objects[file.path];
  if (file.bytes == 0 && extents.empty()) {
    extents.push_back({.mark = file.mark});
    return true;
  }
  if (bytes_of(extents) == file.bytes) return false;
  auto opened = parts_.files->open(parts_.root + "/" + file.path, io::OpenMode::kRead);
  if (!opened && opened.error().code() == ErrorCode::kNotFound) return changed_meanwhile(file.path);
  if (!opened) return std::move(opened).error();
  const auto its = round.containers.find(file.path);
  const auto* const containers = its == round.containers.end() ? nullptr : &its->second;
  for (auto at = bytes_of(extents); at < file.bytes;) {
    const auto bytes = extent_end(containers, at, file.bytes, parts_.extent_bytes_max) - at;
    auto extent = upload_extent(round, **opened, file, at, bytes);
    if (!extent) return std::move(extent).error().with_context(file.path);
    extents.push_back(*std::move(extent));
    at += bytes;
  }
  return true;
}

// Begins the upload of a part of a file. The round may name the extent at once: without the store's
// acknowledgement, the round fails.
Result<Extent> ObjectUploader::upload_extent(Round& round, io::File& file, const ReplicaFile& which,
                                             std::uint64_t offset, std::uint64_t bytes) {
  const bool is_data = which.mark == 0;
  VARVE_TRY(round.uploads.make_room(bytes));
  const auto buffer = std::make_shared<base::AlignedBuffer>(bytes);
  VARVE_TRY_ASSIGN(const auto got, file.read_at(offset, buffer->span()));
  round.report.local_bytes += got;
  if (got != bytes) return changed_meanwhile("the file");
  const auto its = round.containers.find(which.path);
  if (is_data && its != round.containers.end()) {
    VARVE_TRY_ASSIGN(auto damage,
                     check_extent(its->second, file, which.path, offset, buffer->span()));
    if (damage) round.report.damages.push_back(*std::move(damage));
  }
  return put_extent(round, which, offset, buffer, {});
}

Result<Extent> ObjectUploader::put_extent(Round& round, const ReplicaFile& which,
                                          std::uint64_t offset,
                                          std::shared_ptr<base::AlignedBuffer> buffer,
                                          const std::string& lead) {
  const bool is_data = which.mark == 0;
  const auto bytes = buffer->span().size();
  Extent extent;
  VARVE_TRY_ASSIGN(const auto content, content_text(which.path, offset, buffer->span()));
  VARVE_TRY_ASSIGN(extent.object, new_name(!is_data                ? "other"
                                           : is_volume(which.path) ? "vol"
                                                                   : "seg",
                                           content));
  extent.bytes = bytes - lead.size();
  extent.object_bytes = bytes;
  extent.checksum = XXH3_64bits(buffer->data(), bytes);
  extent.mark = which.mark;
  extent.lead = lead;
  bucket::PutOptions options;
  if (is_data && is_volume(which.path)) options.storage_class = parts_.volume_class;
  const auto etag = std::make_shared<std::string>();
  options.etag = etag.get();
  doubtful_.insert(extent.object);
  const bool is_copied = has_copy(which.path, extent);
  if (is_copied) {
    doubtful_.insert(copy_name(extent.object));
    VARVE_TRY(upload_copy(round, *parts_.bucket, extent.object, buffer));
  }
  VARVE_TRY(round.uploads.begin(
      bytes,
      [bucket = parts_.bucket, name = extent.object, buffer, options, etag] {
        const std::array<std::span<const std::byte>, 1> body{buffer->span()};
        return bucket->put(name, body, options);  // O44
      },
      [this, &round, extent, is_data, is_copied, etag,
       key = extent_key(which.path, offset)]() -> Result<void> {
        ++round.report.objects;
        round.report.bytes += extent.object_bytes;
        if (is_data) return state_.add_uploaded(key, extent, *etag);
        if (!etag->empty() && !is_copied) etags_[extent.object] = *etag;
        return {};
      }));
  return extent;
}

// Merges the newest catalog objects with the changes. Lost objects stay: a repair writes a new
// base.
Result<void> ObjectUploader::merge_objects(Round& round, Head& head) {
  std::uint64_t bytes = 0;
  for (const auto& part : round.parts) bytes += part.size();
  const auto merged = objects_to_merge(head, bytes);
  if (merged == 0) return {};
  auto parts = read_all_or_copies(*parts_.bucket, std::span(head.catalog).last(merged));
  if (!parts) return is_loss(parts.error()) ? Result<void>() : parts.error();
  for (auto& part : round.parts) parts->push_back(std::move(part));
  VARVE_TRY_ASSIGN(round.parts, merge_parts(*parts));
  head.catalog.resize(head.catalog.size() - merged);
  return {};
}

// Uploads the changes, completes the round and the head, and waits for all uploads of the round.
Result<void> ObjectUploader::upload_catalog(Round& round, Head& head) {
  const std::vector<Extent> none;
  for (const auto& [path, extents] : round.objects) {
    const auto known = objects_.find(path);
    const bool is_new = round.is_base || known == objects_.end();
    compare_extents(path, is_new ? none : known->second, extents, round.changes);
  }
  if (round.is_base) {
    for (const auto& [path, extents] : objects_) {
      const bool is_written = round.objects.contains(path) || round.removed.contains(path);
      if (!is_written) compare_extents(path, none, extents, round.changes);
    }
  } else {
    for (const auto& path : round.removed) {
      const auto known = objects_.find(path);
      if (known != objects_.end()) compare_extents(path, known->second, none, round.changes);
    }
  }
  round.parts = round.changes.finish();
  if (!round.is_base) {
    head.catalog = head_.catalog;
    VARVE_TRY(merge_objects(round, head));
  }
  for (const auto& part : round.parts) {
    const auto digest = digest_of(part);
    VARVE_TRY_ASSIGN(auto name, new_name("cat", base::as_text(digest)));
    CatalogObject object{std::move(name), part.size(), digest};
    doubtful_.insert(object.name);
    doubtful_.insert(copy_name(object.name));
    if (parts_.notes_catalog_objects) {
      VARVE_TRY(state_.garbage().add({object.name, copy_name(object.name)},
                                     parts_.clock->now().seconds, head.number));  // O72
    }
    VARVE_TRY(upload_copy(round, *parts_.bucket, object.name, &part));
    VARVE_TRY(round.uploads.begin(
        part.size(),
        [bucket = parts_.bucket, name = object.name, &part] {
          const std::array<std::span<const std::byte>, 1> body{base::as_bytes(part)};
          return bucket->put(name, body, {});  // O44
        },
        nullptr));
    ++round.report.objects;
    round.report.bytes += part.size();
    head.catalog.push_back(std::move(object));
  }
  head.base_objects = round.is_base ? head.catalog.size() : head_.base_objects;
  return round.uploads.finish();
}

}  // namespace varve::remote
