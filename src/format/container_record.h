// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "format/container.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::format {

/// The place and the size of a container. The catalog keeps a record for each container.
struct ContainerRecord {
  ContainerNumber number{};
  SegmentNumber segment{};
  std::uint64_t offset = 0;
  std::uint32_t header_bytes = 0;
  std::uint32_t data_bytes = 0;
  std::uint32_t chunks = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t live_bytes = 0;   ///< Raw bytes of the chunks located here by the catalog.
  bool compact = false;           ///< As in ContainerHeader.
  bool sealed = false;            ///< True if the container is encrypted.
  std::uint32_t total_bytes = 0;  ///< Length of a sealed container with its padding.
  std::uint64_t salt_start = 0;   ///< First bytes of a sealed container's salt.
  /// Checksum of a plain container's fixed header; nullopt if an earlier Varve wrote the record.
  std::optional<std::uint64_t> checksum{};
  VersionNumber birth{};  ///< Birth of the first chunk: in a volume, the lowest birth.

  /// Returns the record of the container with `header`, with no live bytes yet.
  [[nodiscard]] static ContainerRecord of(const ContainerHeader& header, SegmentNumber segment,
                                          std::uint64_t offset);
  /// Returns whether `header` may belong to the record's container. Returns false if the lengths
  /// differ, or if the container belongs to another history of the repository.
  [[nodiscard]] bool may_be(const ContainerHeader& header) const;
  [[nodiscard]] std::uint64_t end() const;
  [[nodiscard]] ContainerForm form() const { return {compact, sealed}; }
  [[nodiscard]] std::string encode() const;
  /// Errors: kCorrupt if a length or an offset is impossible.
  [[nodiscard]] static Result<ContainerRecord> decode(ContainerNumber number,
                                                      std::string_view bytes);
};

}  // namespace varve::format
