// SPDX-License-Identifier: Apache-2.0
// The targets that read whole files, through a file system in memory or a private folder.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

/// Tries the input as a manifest and as the labels of a series.
void manifest(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> manifest_seeds();

/// Scans a container file without a catalog. An odd first byte makes it a volume, an even one a
/// segment. The rest of the input is the file.
void volume(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> volume_seeds();

/// Reads the log of an interrupted restore. The input has no checksums of lines; the target adds
/// them.
void restore_log(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> restore_log_seeds();

/// Reads a file of aliases of the pool.
void alias_file(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> alias_file_seeds();
/// Decodes the files beside the versions of a series.
void beside(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> beside_seeds();

/// Decodes the file `scrub`.
void check_record(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> check_record_seeds();
void sealed_file(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> sealed_file_seeds();

void scrub_state(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> scrub_state_seeds();

}  // namespace varve::fuzz
