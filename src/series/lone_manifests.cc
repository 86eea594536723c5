// SPDX-License-Identifier: Apache-2.0
#include "series/lone_manifests.h"

#include <algorithm>
#include <string>

#include "base/coding.h"
#include "maintain/manifest_file.h"

namespace varve::series {

Result<std::unique_ptr<LoneManifests>> LoneManifests::open(
    const SeriesParts& parts, const meta::Txn& txn,
    const std::vector<catalog::VersionRecord>& records) {
  std::unique_ptr<LoneManifests> opened(new LoneManifests(parts, records));
  const auto directory = parts.directory();
  VARVE_TRY_ASSIGN(const auto present, maintain::list_manifests(*parts.files, directory));
  for (const auto& file : present) {
    opened->sizes_[file.number] = file.bytes;
    if (opened->users_.is_sealed(file.number)) continue;
    opened->deleted_[opened->users_.after(file.number)].insert(file.number);
    ++opened->deleted_in_all_;
  }
  for (const auto& [user, manifests] : opened->deleted_) {
    const auto unused = opened->unused_[user] = opened->unused_of(user, manifests);
    opened->unused_in_all_.files += unused.files;
    opened->unused_in_all_.bytes += unused.bytes;
  }
  const auto add = [&](format::ManifestRecord what, std::string_view key,
                       std::string_view value) -> Result<void> {
    const bool of_version = what == format::ManifestRecord::kVersion ||
                            what == format::ManifestRecord::kRetention ||
                            what == format::ManifestRecord::kVersionChunks;
    opened->labels_.push_back({of_version ? base::load_be32(key) : 0,
                               what == format::ManifestRecord::kVersionChunks, key.size(),
                               value.size()});
    const auto& label = opened->labels_.back();
    opened->labels_size_.add(label.version, label.key_bytes, label.value_bytes);
    return {};
  };
  VARVE_TRY(maintain::for_each_label(txn, parts.id, parts.host->superblock(), {}, add));
  const auto path = opened->labels_path();
  VARVE_TRY_ASSIGN(const bool labelled, parts.files->exists(path));
  if (labelled) {
    VARVE_TRY_ASSIGN(opened->labels_now_, parts.files->tree_bytes(path));
  }
  return opened;
}

LoneManifests::Unused LoneManifests::unused_of(VersionNumber user,
                                               const std::set<VersionNumber>& manifests) const {
  const auto used = users_.used_by(user, manifests);
  Unused unused;
  for (const auto number : manifests) {
    if (used.contains(number)) continue;
    ++unused.files;
    unused.bytes += sizes_.at(number);
  }
  return unused;
}

std::uint64_t LoneManifests::bytes(VersionNumber number, const OpenChunks& open) {
  std::set<VersionNumber> manifests;  // Manifests in need of another user after the deletion.
  auto unused = unused_in_all_;
  auto removed = deleted_in_all_;
  if (const auto deleted = deleted_.find(number); deleted != deleted_.end()) {
    manifests = deleted->second;
    unused.files -= unused_.at(number).files;
    unused.bytes -= unused_.at(number).bytes;
  }
  if (sizes_.contains(number) && manifests.insert(number).second) ++removed;
  const auto more = unused_of(users_.after(number), manifests);
  removed -= unused.files + more.files;
  auto bytes = unused.bytes + more.bytes;
  if (labels_now_) {
    const auto after =
        parts_.files->stored_bytes(labels_path(), labels_after(number, open, removed));
    bytes += *labels_now_ - std::min(*labels_now_, after);
  }
  return bytes;
}

std::string LoneManifests::labels_path() const {
  return parts_.directory() + "/" + maintain::kLabelsName;
}

std::uint64_t LoneManifests::labels_after(VersionNumber number, const OpenChunks& open,
                                          std::uint64_t removed) {
  const auto gone = static_cast<std::uint32_t>(number);
  // One more: the record of version 0.
  const format::ManifestTail tail{removed + 1, maintain::removed_key(VersionNumber{}).size()};
  if (open.empty()) return labels_size_.bytes_without(gone, tail);
  format::ManifestSize size;
  for (const auto& label : labels_) {
    if (label.version == gone) continue;
    const auto chunks = open.find(static_cast<VersionNumber>(label.version));
    std::size_t value_bytes = label.value_bytes;
    if (label.chunks && chunks != open.end()) {
      std::string value;
      chunks->second.encode(value);
      value_bytes = value.size();
    }
    size.add(label.version, label.key_bytes, value_bytes);
  }
  return size.bytes(tail);
}

}  // namespace varve::series
