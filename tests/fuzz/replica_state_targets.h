// SPDX-License-Identifier: Apache-2.0
// Targets for what a folder notes about its object store. docs/FORMAT.md §15.4.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

/// Reads the names of damaged objects.
void damage_notes(std::span<const std::byte> input);
std::vector<std::string> damage_notes_seeds();
/// Reads and changes the folder's state with one record of any key and value. The first byte
/// selects the table, and the second has the length of the key.
void replica_state(std::span<const std::byte> input);
std::vector<std::string> replica_state_seeds();

}  // namespace varve::fuzz
