// SPDX-License-Identifier: Apache-2.0
// Targets for derived files that a repository can lose: those of the Zero-Chunk index, the states
// of a source, and the note `settled`.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

/// Decodes a bin and changes the bin. The first byte has the rules.
void zero_bin(std::span<const std::byte> input);
std::vector<std::string> zero_bin_seeds();
/// Opens the log and the bins of an index, and adds a bin. The first two bytes have the length of
/// the log.
void zero_files(std::span<const std::byte> input);
std::vector<std::string> zero_files_seeds();
void source_states(std::span<const std::byte> input);
std::vector<std::string> source_states_seeds();
void settled(std::span<const std::byte> input);
std::vector<std::string> settled_seeds();

}  // namespace varve::fuzz
