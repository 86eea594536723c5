// SPDX-License-Identifier: Apache-2.0
// The targets that read whole files: through a file system in memory, or a folder of their own.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

/// A manifest, and the labels of a series: the same bytes are tried as both.
void manifest(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> manifest_seeds();

/// A file of containers without a catalog. An odd first byte makes it a volume, an even one a
/// segment; the rest is the file.
void volume(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> volume_seeds();

/// The log of an interrupted restore, without the checksums of its lines: those are added.
void restore_log(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> restore_log_seeds();

/// The file `scrub`.
void scrub_state(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> scrub_state_seeds();

}  // namespace varve::fuzz
