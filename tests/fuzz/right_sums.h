// SPDX-License-Identifier: Apache-2.0
// Corrects checksums in the repository's files, so that inputs reach the code behind them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "format/parity.h"

namespace varve::fuzz {

/// Corrects the checksums of a manifest or labels file: of the header, and of all recognisable
/// blocks.
void sum_manifest(std::string& bytes);

/// Corrects the checksums of a segment or volume: of each header that follows the previous
/// container, and the outer checksum of sealed containers.
void sum_containers(std::string& bytes);

/// Corrects the last line of the superblock or of the file `scrub`.
void sum_text(std::string& bytes);

/// Corrects and returns the first header of a parity file; nullopt if there is none.
std::optional<format::ParityHeader> sum_parity(std::string& bytes);

/// Corrects the checksums of a file of aliases: of the header, and of all blocks that follow.
void sum_aliases(std::string& bytes);

/// Corrects the checksums of a sealed file: of the header, and of all blocks.
void sum_sealed(std::string& bytes);

/// Corrects the checksums of an index snapshot.
void sum_snapshot(std::string& bytes);

/// Corrects the checksums of a segment or volume of an encrypted repository.
void sum_sealed_containers(std::string& bytes);

/// Corrects the checksums of a repository's file with this name.
void sum_file(std::string_view path, std::string& bytes);

/// Corrects the checksums of a file of an encrypted repository. No program can correct its tags
/// without the key.
void sum_encrypted_file(std::string_view path, std::string& bytes);

}  // namespace varve::fuzz
