// SPDX-License-Identifier: Apache-2.0
// Changes single values of an encrypted LMDB environment without its key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace varve::test {

enum class ValueChange : std::uint8_t {
  kSwapped,  ///< Two records of a table exchange their values.
  kOlder,    ///< A record gets the value that it had in an older state.
  kErased,   ///< A record is gone.
  kChanged,  ///< A value gets other bytes.
};

/// Changes a record of the environment in `folder`. The pages and checksums are right, so only
/// the tags show the change. Returns what was done, with the table; nullopt if no record fits.
[[nodiscard]] std::optional<std::string> change_value(const std::string& folder,
                                                      const std::string& older, ValueChange change,
                                                      std::uint64_t seed);

}  // namespace varve::test
