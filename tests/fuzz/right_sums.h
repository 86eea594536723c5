// SPDX-License-Identifier: Apache-2.0
// Checksums made right in the repository's files, so that what is behind them is reached.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "format/parity.h"

namespace varve::fuzz {

/// Of a manifest or labels: of the header, and of all blocks as far as they can be told.
void sum_manifest(std::string& bytes);

/// Of a segment or volume: of each header that follows the one before.
void sum_containers(std::string& bytes);

/// Of the superblock, or of the file `scrub`: the line that ends it.
void sum_text(std::string& bytes);

/// Of the first header of a parity file; nullopt if it is none.
std::optional<format::ParityHeader> sum_parity(std::string& bytes);

/// Of an index snapshot.
void sum_snapshot(std::string& bytes);

/// Of a repository's file with this name.
void sum_file(std::string_view path, std::string& bytes);

}  // namespace varve::fuzz
