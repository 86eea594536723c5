// SPDX-License-Identifier: Apache-2.0
// How results and names are written: for people, for terminals, for programs.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "varve/result.h"
#include "varve/types.h"

namespace varve::cli {

/// Writes to stdout; finish_output() tells whether all of it arrived.
void print(std::string_view text);
/// One JSON line. Bytes that are not UTF-8 become U+FFFD.
void print_json(const nlohmann::json& object);
[[nodiscard]] Result<void> finish_output();

/// `text` with control characters and bytes that are not UTF-8 as \xNN, and \ as \\, so that
/// a file name can neither steer the terminal nor pass for two lines.
[[nodiscard]] std::string printable(std::string_view text);
[[nodiscard]] bool is_utf8(std::string_view text);

/// Puts a file name in `object` under `key`, and, if it is not UTF-8, its bytes in
/// hexadecimal under KEY_bytes.
void put_name(nlohmann::json& object, const std::string& key, const std::string& name);

/// Names go as they are to files and programs, escaped to a terminal.
[[nodiscard]] std::string name_text(const std::string& name);

/// "1.5 MiB", or the exact number.
[[nodiscard]] std::string size_text(std::uint64_t bytes, bool exact);
/// "1.5 MiB (1572864 bytes)", or the exact number alone.
[[nodiscard]] std::string exact_size_text(std::uint64_t bytes, bool exact);
/// "2026-03-01 12:30:00" in local time, "-" for zero.
[[nodiscard]] std::string time_text(const Timestamp& time);
/// Seconds and nanoseconds since 1970 in UTC: "2026-03-01T12:30:00.000000001Z".
[[nodiscard]] std::string iso_time(const Timestamp& time);
/// "drwxr-xr-x", as ls(1) writes it.
[[nodiscard]] std::string mode_text(std::uint32_t mode);

/// Rows with their columns padded to equal width. `alignment` has an 'l' or an 'r' for each
/// column; what it does not reach is set left.
[[nodiscard]] std::string table(const std::vector<std::vector<std::string>>& rows,
                                std::string_view alignment);

/// What a file is by its mode: "file", "directory", "symlink", "block device" and so on.
[[nodiscard]] const char* type_text(std::uint32_t mode);

/// A version as `varve ls --json` shows it.
[[nodiscard]] nlohmann::json version_json(const VersionInfo& version);

/// One line on a version that was just sealed.
/// "open since TIME, N entries".
[[nodiscard]] std::string open_text(const VersionInfo& version);
[[nodiscard]] std::string version_summary(const VersionInfo& version);

}  // namespace varve::cli
