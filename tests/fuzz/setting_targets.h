// SPDX-License-Identifier: Apache-2.0
// Targets for texts that people and their programs write: credentials, files of instances and of
// folders, and patterns.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

void credentials(std::span<const std::byte> input);
std::vector<std::string> credentials_seeds();
void instance(std::span<const std::byte> input);
std::vector<std::string> instance_seeds();
/// Compares patterns with a slow and simple implementation. The last line is a path, and the lines
/// before it are rules.
void patterns(std::span<const std::byte> input);
std::vector<std::string> patterns_seeds();
/// Decodes the file `bucket` of a repository's folder.
void bucket_config(std::span<const std::byte> input);
std::vector<std::string> bucket_config_seeds();
/// Decodes the record of a folder's last trial of its store.
void probe_record(std::span<const std::byte> input);
std::vector<std::string> probe_record_seeds();
/// Reads the notes about files that stay in a folder.
void local_notes(std::span<const std::byte> input);
std::vector<std::string> local_notes_seeds();

}  // namespace varve::fuzz
