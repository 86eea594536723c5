// SPDX-License-Identifier: Apache-2.0
// Uploads labels in parts.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/checksum.h"
#include "base/coding.h"
#include "remote/label_parts.h"
#include "remote/object_uploader.h"
#include "remote/replicator_round.h"

namespace varve::remote {

namespace {

// Returns the parts whose objects have the front of the labels, byte for byte.
std::vector<Extent> equal_parts(const std::vector<Extent>& parts, std::string_view labels) {
  std::vector<Extent> equal;
  std::uint64_t at = 0;
  for (const auto& part : parts) {
    if (part.object.empty() || part.bytes > labels.size() - at) break;
    const auto object = part.lead + std::string(labels.substr(at, part.bytes));
    const bool is_same = object.size() == part.object_bytes &&
                         base::checksum64(base::as_bytes(object)) == part.checksum;
    if (!is_same) break;
    equal.push_back(part);
    at += part.bytes;
  }
  return equal;
}

}  // namespace

// A file of labels grows at its end, until a new file replaces the file: then no part stays.
Result<void> ObjectUploader::upload_labels(Round& round, const ReplicaFile& file, SeriesId series) {
  auto& extents = round.objects[file.path];
  auto opened = parts_.files->open(parts_.root + "/" + file.path, io::OpenMode::kRead);
  if (!opened && opened.error().code() == ErrorCode::kNotFound) return changed_meanwhile(file.path);
  if (!opened) return std::move(opened).error();
  VARVE_TRY(round.uploads.make_room(file.bytes));
  std::string labels(file.bytes, '\0');
  VARVE_TRY_ASSIGN(const auto got,
                   (*opened)->read_at(0, std::as_writable_bytes(std::span(labels))));
  round.report.local_bytes += got;
  if (got != file.bytes) return changed_meanwhile(file.path);
  const auto known = objects_.find(file.path);
  if (known != objects_.end() && !round.changed.contains(file.path)) {
    extents = equal_parts(known->second, labels);
    extents.resize(parts_to_keep(extents, file.bytes, parts_.extent_bytes_max));
  }
  for (auto at = bytes_of(extents); at < file.bytes;) {
    const auto bytes = std::min(file.bytes - at, parts_.extent_bytes_max);
    const auto text = std::string_view(labels).substr(at, bytes);
    LabelPart part;
    part.series = series;
    part.head = round.head;
    part.offset = at;
    part.bytes = bytes;
    part.checksum = base::checksum64(base::as_bytes(text));
    part.before = digest_of(std::string_view(labels).substr(0, at));
    const auto lead = encode_lead(part, parts_.keys.get());
    const auto buffer = std::make_shared<base::AlignedBuffer>(lead.size() + bytes);
    std::ranges::copy(base::as_bytes(lead), buffer->span().begin());
    std::ranges::copy(base::as_bytes(text), buffer->span().begin() + lead.size());
    auto extent = put_extent(round, file, at, buffer, lead);
    if (!extent) return std::move(extent).error().with_context(file.path);
    extents.push_back(*std::move(extent));
    at += bytes;
  }
  if (extents.empty()) extents.push_back({.mark = file.mark});  // An empty file.
  extents.back().mark = file.mark;                              // The mark of the whole file.
  return {};
}

}  // namespace varve::remote
