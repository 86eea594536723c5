// SPDX-License-Identifier: Apache-2.0
// Changes to the files of an encrypted repository, as its storage could make them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace varve::test {

/// The repository to change, and others that the storage could take parts from.
struct TamperedWorld {
  std::string path;
  std::vector<std::string> older;  ///< Older states of the repository.
  std::string twin;     ///< Another repository with the same history and the same key file.
  std::string foreign;  ///< One with the same history and another key file.
};

/// A change that was made.
struct Tampering {
  std::string what;      ///< What was done, for messages.
  std::string where;     ///< Path of the changed file or folder below the repository.
  std::string of_class;  ///< Kind of the file: "segment", "catalog", …
};

/// Returns the number of kinds of changes.
[[nodiscard]] std::size_t tampering_kinds();
/// Returns the name of a kind.
[[nodiscard]] std::string_view name_of_tampering(std::size_t kind);

/// Changes the repository. The same seed makes the same change of the same repository. Returns
/// nullopt, and changes nothing, if the kind and seed fit no file.
[[nodiscard]] std::optional<Tampering> tamper(const TamperedWorld& world, std::size_t kind,
                                              std::uint64_t seed);

/// Returns the bytes of a file.
[[nodiscard]] std::string bytes_of(const std::string& path);

}  // namespace varve::test
