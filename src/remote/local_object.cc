// SPDX-License-Identifier: Apache-2.0
#include "remote/local_object.h"

#include <span>

#include "base/checksum.h"
#include "base/coding.h"

namespace varve::remote {

bool is_content_of(const Extent& extent, const std::string& text) {
  return text.size() == extent.object_bytes &&
         base::checksum64(base::as_bytes(text)) == extent.checksum;
}

std::optional<std::string> object_in_file(io::FileSystem& files, const std::string& path,
                                          std::uint64_t offset, const Extent& extent) {
  const auto file = files.open(path, io::OpenMode::kRead);
  if (!file) return std::nullopt;
  std::string text = extent.lead;
  text.resize(extent.object_bytes);
  const auto rest = std::as_writable_bytes(std::span(text)).subspan(extent.lead.size());
  const auto got = (*file)->read_at(offset, rest);
  if (!got || *got != rest.size() || !is_content_of(extent, text)) return std::nullopt;
  return text;
}

}  // namespace varve::remote
