// SPDX-License-Identifier: Apache-2.0
// Writes results and names, for users, terminals and programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/json.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::cli {

using control::Json;

/// Writes to stdout; finish_output() reports any error.
void print(std::string_view text);
/// Prints one JSON line of a type of varve-json(5). Replaces bytes that are not UTF-8 by U+FFFD.
void print_json(const char* message_type, Json object);
[[nodiscard]] Result<void> finish_output();

/// Returns `text` with control characters and bytes that are not UTF-8 as \xNN, and \ as \\. A file
/// name can then neither control the terminal nor look like two lines.
[[nodiscard]] std::string printable(std::string_view text);
[[nodiscard]] bool is_utf8(std::string_view text);

/// Sets `key` of `object` to a file name. For a name that is not UTF-8, also sets KEY_hex to the
/// bytes of the name in hexadecimal.
void put_name(Json& object, const std::string& key, const std::string& name);

/// Sets `key` of `object` to a time in the form of iso_time(), and KEY_unix to the seconds.
void put_time(Json& object, const std::string& key, const Timestamp& time);

/// Returns the name for stdout: escaped for a terminal, unchanged for files and programs.
[[nodiscard]] std::string name_text(const std::string& name);

/// Returns a description of a version's VersionInfo::problems, which must not be 0.
[[nodiscard]] std::string problems_text(std::uint64_t problems);

/// Returns "1.5 MiB", or the exact number.
[[nodiscard]] std::string size_text(std::uint64_t bytes, bool exact);
/// Returns "1.5 MiB (1572864 bytes)", or only the exact number.
[[nodiscard]] std::string exact_size_text(std::uint64_t bytes, bool exact);
/// Returns "2026-03-01 12:30:00" in local time.
[[nodiscard]] std::string time_text(const Timestamp& time);
/// Returns the time in UTC with nanoseconds: "2026-03-01T12:30:00.000000001Z".
[[nodiscard]] std::string iso_time(const Timestamp& time);
/// Returns "drwxr-xr-x", as in ls(1).
[[nodiscard]] std::string mode_text(std::uint32_t mode);

/// Returns rows with columns padded to equal width. `alignment` has an 'l' or an 'r' for each
/// column; further columns align left.
[[nodiscard]] std::string table(const std::vector<std::vector<std::string>>& rows,
                                std::string_view alignment);

/// Returns the file type of a mode: "file", "directory", "symlink", "block device" and so on.
[[nodiscard]] const char* type_text(std::uint32_t mode);

/// Returns the members of a message `version`.
[[nodiscard]] Json version_json(const VersionInfo& version);
/// Sets the members that name a version.
void put_version(Json& object, const VersionInfo& version);
/// Returns the members of a message `entry`, about a file of a version.
[[nodiscard]] Json entry_json(const VersionInfo& version, const std::string& path,
                              const Attributes& attributes);

/// Returns "open since TIME, N entries".
[[nodiscard]] std::string open_text(const VersionInfo& version);
/// Returns one line about a newly sealed version.
[[nodiscard]] std::string version_summary(const VersionInfo& version);

}  // namespace varve::cli
