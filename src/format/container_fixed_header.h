// SPDX-License-Identifier: Apache-2.0
// The first 128 bytes of a container, in plain and in sealed form.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/ids.h"
#include "format/container.h"
#include "format/container_keys.h"
#include "varve/result.h"

namespace varve::format {

/// The fields of a fixed header. The fields up to `outer_checksum` are in the clear.
struct FixedHeader {
  ContainerForm form;
  bool marked = false;  ///< True if the container has marks of births.
  bool delta = false;   ///< True if a frame has a prefix.
  StoreId store{};
  ContainerNumber number{};
  std::optional<ContainerSeal> seal{};  ///< Salt and length of a sealed container.
  std::uint64_t outer_checksum = 0;     ///< Checksum of all bytes behind; 0 if plain.
  std::uint32_t frames = 0;
  std::uint32_t chunks = 0;
  std::uint32_t id_runs = 0;
  std::uint32_t header_bytes = 0;
  std::uint32_t data_bytes = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t tables_checksum = 0;  ///< Checksum of the header behind the fixed header.
  std::uint64_t checksum = 0;         ///< Checksum of the on-disk bytes of the fields above.

  /// Returns a part of the sealed container, for its keys.
  [[nodiscard]] ContainerPart part(std::uint32_t index, std::uint64_t bound) const;
};

/// Returns the error of a damaged header. `what` continues "container header: ".
[[nodiscard]] Error damaged_header(const std::string& what);

/// Returns whether all reserved bytes are zero.
[[nodiscard]] bool all_zero(std::span<const std::byte> bytes);

/// Returns the checksum of the rest of a whole fixed header, stored at its end.
[[nodiscard]] std::uint64_t checksum_of_fixed_header(std::span<const std::byte> start);

/// Encodes the fixed header of a plain container.
[[nodiscard]] std::string encode_fixed_header(const FixedHeader& fixed);
/// Encodes the fixed header of a sealed container.
[[nodiscard]] std::string seal_fixed_header(const FixedHeader& fixed, const ContainerKey& key);
/// Decodes a fixed header and checks that counts and lengths agree. Errors: as
/// container_header_length().
[[nodiscard]] Result<FixedHeader> decode_fixed_header(std::span<const std::byte> start,
                                                      const ContainerKeys* keys);

}  // namespace varve::format
