// SPDX-License-Identifier: Apache-2.0
// The numbers of stores, and of a store's files and containers. Each kind is a separate type.
#pragma once

#include <cstdint>

#include "varve/types.h"

namespace varve {

/// Number of a store: the containers, locations and segments under one sequence of numbers. Differs
/// from the number of the series whose versions refer to the store, since a store may serve several
/// series.
enum class StoreId : std::uint32_t {};

/// The store of the pool, shared by all series. The stores of series have other numbers.
inline constexpr StoreId kPoolStore{0};

/// Number of a container inside the store; given once, ascending.
enum class ContainerNumber : std::uint32_t {};

/// Number of a file of containers inside the store, with kVolumeBit for a file created as a volume.
/// Segments and volumes share one sequence of numbers.
enum class SegmentNumber : std::uint32_t {};

/// Number of a parity file, with the parity of one group of segments or volumes.
enum class GroupNumber : std::uint32_t {};

/// The bit set in the numbers of the pool's containers, and in the births of the pool's chunks. So
/// a series' recipes and sets of chunks may hold ids of both stores.
inline constexpr std::uint32_t kPoolBit = 1U << 31;

/// Returns whether the container is in the pool.
[[nodiscard]] constexpr bool is_pool(ContainerNumber container) {
  return (static_cast<std::uint32_t>(container) & kPoolBit) != 0;
}
/// Returns whether the chunk is in the pool.
[[nodiscard]] constexpr bool is_pool(ChunkId id) {
  return (static_cast<std::uint32_t>(id.birth()) & kPoolBit) != 0;
}
/// The first id of the pool: all larger ids are also ids of the pool.
inline constexpr ChunkId kFirstPoolId = ChunkId::make(static_cast<VersionNumber>(kPoolBit), 0);

/// The bit set in the numbers of volumes.
inline constexpr std::uint32_t kVolumeBit = 1U << 31;

/// Returns whether the number belongs to a volume.
[[nodiscard]] constexpr bool is_volume(SegmentNumber segment) {
  return (static_cast<std::uint32_t>(segment) & kVolumeBit) != 0;
}
/// Returns the number with the bit of a volume.
[[nodiscard]] constexpr SegmentNumber as_volume(SegmentNumber segment) {
  return static_cast<SegmentNumber>(static_cast<std::uint32_t>(segment) | kVolumeBit);
}
/// Returns the number without the bit of a volume, as in the sequence of all files' numbers.
[[nodiscard]] constexpr SegmentNumber without_kind(SegmentNumber segment) {
  return static_cast<SegmentNumber>(static_cast<std::uint32_t>(segment) & ~kVolumeBit);
}

/// Returns whether chunks may have `count` ids from `first` on. The ids have one birth. No chunk
/// has the last birth, so no sum of an id and a count wraps.
[[nodiscard]] constexpr bool are_chunk_ids(ChunkId first, std::uint64_t count) {
  return static_cast<std::uint32_t>(first.birth()) != UINT32_MAX &&
         count <= (std::uint64_t{1} << 32) - first.ordinal();
}

/// Returns whether the number is the last number of its sequence. No container or file gets the
/// last number, so numbers never go on from one sequence to the other one, nor begin again at 0.
[[nodiscard]] constexpr bool is_last(ContainerNumber number) {
  return (static_cast<std::uint32_t>(number) | kPoolBit) == UINT32_MAX;
}
[[nodiscard]] constexpr bool is_last(SegmentNumber segment) {
  return (static_cast<std::uint32_t>(segment) | kVolumeBit) == UINT32_MAX;
}
[[nodiscard]] constexpr bool is_last(GroupNumber number) {
  return static_cast<std::uint32_t>(number) == UINT32_MAX;
}

/// Returns the next number of the same sequence. Returns the last number for the last number.
template <typename Number>
[[nodiscard]] constexpr Number number_after(Number number) {
  return is_last(number) ? number : static_cast<Number>(static_cast<std::uint32_t>(number) + 1);
}
/// Returns the next number of a version, or the last number for the last number.
[[nodiscard]] constexpr std::uint32_t number_after(VersionNumber number) {
  const auto value = static_cast<std::uint32_t>(number);
  return value == UINT32_MAX ? value : value + 1;
}

/// Return the number as fmt prints it.
[[nodiscard]] constexpr std::uint32_t format_as(StoreId id) {
  return static_cast<std::uint32_t>(id);
}
[[nodiscard]] constexpr std::uint32_t format_as(ContainerNumber number) {
  return static_cast<std::uint32_t>(number);
}
[[nodiscard]] constexpr std::uint32_t format_as(SegmentNumber number) {
  return static_cast<std::uint32_t>(number);
}
[[nodiscard]] constexpr std::uint32_t format_as(GroupNumber number) {
  return static_cast<std::uint32_t>(number);
}

}  // namespace varve
