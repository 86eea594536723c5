// SPDX-License-Identifier: Apache-2.0
// The content of objects that the repository's folder has, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "io/file_system.h"
#include "remote/changes.h"

namespace varve::remote {

/// Returns whether `text` is the content of the extent's object.
[[nodiscard]] bool is_content_of(const Extent& extent, const std::string& text);

/// Returns the content of the extent's object: the lead, and the bytes of the file from `offset`
/// on. Returns nullopt if the file is missing, cannot be read or has other bytes.
[[nodiscard]] std::optional<std::string> object_in_file(io::FileSystem& files,
                                                        const std::string& path,
                                                        std::uint64_t offset, const Extent& extent);

}  // namespace varve::remote
