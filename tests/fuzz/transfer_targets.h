// SPDX-License-Identifier: Apache-2.0
// Targets for archives that `varve store` reads, and for the attributes of their members.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

/// Stores an archive. The first byte selects between a pipe and a file, and whether the checksums
/// of tar headers are corrected.
void archive(std::span<const std::byte> input);
std::vector<std::string> archive_seeds();
/// Reads the directory of a zip archive.
void zip_directory(std::span<const std::byte> input);
std::vector<std::string> zip_directory_seeds();
/// Checks the headers of a tar member. Reads the input with libarchive: a short input as the
/// records of an extended header, and any other input as an archive.
void pax_records(std::span<const std::byte> input);
std::vector<std::string> pax_records_seeds();
/// Changes an ACL. The first two bytes have a file's mode.
void posix_acl(std::span<const std::byte> input);
std::vector<std::string> posix_acl_seeds();

}  // namespace varve::fuzz
