// SPDX-License-Identifier: Apache-2.0
// Targets for the objects of an object store, whose owner may be hostile. docs/FORMAT.md §15.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

/// Decodes a head, plain and with keys. Only the heads of the seeds are authentic.
void head(std::span<const std::byte> input);
std::vector<std::string> head_seeds();
/// Applies a catalog object to a map of objects, and compares the maps. The first byte selects
/// between an object and the changes inside it, and between the empty map and a known one.
void catalog_object(std::span<const std::byte> input);
std::vector<std::string> catalog_object_seeds();
/// Applies a catalog object to a copy of the catalog.
void applied_object(std::span<const std::byte> input);
std::vector<std::string> applied_object_seeds();
/// Decodes a record of the map of objects. The first byte has the length of the key.
void extent(std::span<const std::byte> input);
std::vector<std::string> extent_seeds();
/// Decodes a lease, plain and encrypted.
void lease(std::span<const std::byte> input);
std::vector<std::string> lease_seeds();

}  // namespace varve::fuzz
