// SPDX-License-Identifier: Apache-2.0
#include "store/space_guard.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "format/container.h"

namespace varve::store {

namespace {
constexpr const char* kReserveName = "/reserve";
constexpr std::uint64_t kReserveBytesMin = 8ULL << 20;
constexpr std::uint64_t kReserveBytesMax = 256ULL << 20;
constexpr std::uint64_t kReserveStepBytes = 4ULL << 20;
constexpr std::uint64_t kReserveBytesLeast = 512ULL << 10;  // Of a renewed reserve.
// The reserve takes at most 1/kSpareFactor of the free space of the disk.
constexpr std::uint64_t kSpareFactor = 6;
// Chunk tables, headers and padding take at most 1/8 of the data's size; the tables grow with the
// data.
constexpr std::uint64_t kOverheadDivisor = 8;
constexpr std::int64_t kBudgetBytesMax = 64LL << 20;
constexpr std::int64_t kTightBytes = 64LL << 20;
constexpr std::uint64_t kSpareBytesMin = 64ULL << 20;
constexpr std::uint64_t kRoomBytesWhereMade = 1ULL << 20;

// Returns the space of uncompressed raw bytes on the disk.
std::int64_t with_overhead(std::int64_t bytes) {
  return bytes + bytes / static_cast<std::int64_t>(kOverheadDivisor);
}

// Returns a number that no compression guesses from its place (SplitMix64): each new repository
// needs a million of them.
std::uint64_t scrambled(std::uint64_t place) {
  std::uint64_t v = place * 0x9e3779b97f4a7c15ULL;
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ULL;
  v = (v ^ (v >> 27)) * 0x94d049bb133111ebULL;
  return v ^ (v >> 31);
}
}  // namespace

std::uint64_t reserved_bytes(const SpaceInfo& disk) {
  return std::clamp(disk.total_bytes() / 100, kReserveBytesMin, kReserveBytesMax);
}

std::uint64_t spare_bytes(const SpaceInfo& disk) {
  return std::min(disk.total_bytes() / 2, 2 * reserved_bytes(disk) + kSpareBytesMin);
}

Error full_disk(std::uint64_t missing_bytes) {
  constexpr std::uint64_t kMiB = 1ULL << 20;
  return {ErrorCode::kNoSpace,
          fmt::format("the repository's disk is full: free at least {} MiB more, then continue "
                      "writing. A part of the disk stays free, so that versions can still be "
                      "sealed and deleted",
                      (missing_bytes + kMiB - 1) / kMiB)};
}

SpaceGuard::SpaceGuard(io::FileSystem& files, std::string directory)
    : files_(files), directory_(std::move(directory)) {}

void SpaceGuard::add(SpaceUser* user) {
  const std::lock_guard lock(mutex_);
  users_.push_back(user);
}

void SpaceGuard::remove(const SpaceUser* user) {
  const std::lock_guard lock(mutex_);
  std::erase(users_, user);
}

std::uint64_t SpaceGuard::sealing_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto* user : users_) bytes += user->sealing_bytes();
  return bytes;
}

std::uint64_t SpaceGuard::unwritten_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto* user : users_) bytes += user->unwritten_bytes();
  return bytes;
}

Result<void> SpaceGuard::admit(std::uint64_t bytes) {
  const auto wanted =
      static_cast<std::int64_t>(std::min<std::uint64_t>(bytes, std::uint64_t{1} << 62));
  if (budget_.fetch_sub(wanted, std::memory_order_relaxed) >= wanted) return {};
  const std::lock_guard lock(mutex_);
  if (has_room_for(wanted)) return {};
  if (unwritten_bytes() != 0) {
    for (auto* user : users_) user->store_accepted();
    if (has_room_for(wanted)) return {};
  }
  if (make_room_ && make_room_(bytes) && has_room_for(wanted)) return {};
  const auto room = free_above_floor();
  return full_disk(static_cast<std::uint64_t>(
      std::max<std::int64_t>(with_overhead(wanted) - room.value_or(0), 1)));
}

Result<void> SpaceGuard::has_room(std::uint64_t bytes) {
  auto admitted = admit(make_room_ ? std::min(bytes, kRoomBytesWhereMade) : bytes);
  scan_again();
  return admitted;
}

std::uint64_t SpaceGuard::room() const {
  const std::lock_guard lock(mutex_);
  const auto room = free_above_floor();
  if (!room) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(*room, 0));
}

// An unknown amount of free space refuses nothing (f_blocks is 0 on some network file systems).
std::optional<std::int64_t> SpaceGuard::free_above_floor() const {
  const auto space = files_.space(directory_);
  if (!space || space->blocks == 0) return std::nullopt;
  const auto unwritten = unwritten_bytes();
  const auto floor = std::max(reserved_bytes(*space), sealing_bytes()) + format::kContainerBytesMax;
  return static_cast<std::int64_t>(space->available_bytes()) -
         static_cast<std::int64_t>(floor + unwritten + unwritten / kOverheadDivisor);
}

bool SpaceGuard::has_room_for(std::int64_t wanted) {
  const auto room = free_above_floor();
  if (!room) {
    budget_ = kBudgetBytesMax;
    return true;
  }
  const auto needed = with_overhead(wanted);
  tight_ = *room < kTightBytes;
  if (*room < needed) {
    budget_ = 0;
    return false;
  }
  const auto left = *room - needed;
  budget_ = std::min(left - left / static_cast<std::int64_t>(kOverheadDivisor), kBudgetBytesMax);
  return true;
}

bool SpaceGuard::give_up_reserve() {
  const std::lock_guard lock(reserve_mutex_);
  return files_.remove(directory_ + kReserveName).has_value();
}

std::uint64_t SpaceGuard::wanted_reserve() const {
  const std::lock_guard lock(mutex_);
  return std::clamp(sealing_bytes() / kReserveStepBytes * kReserveStepBytes + kReserveBytesMin,
                    kReserveBytesMin, kReserveBytesMax);
}

// Noise, because a compressing file system keeps no space for zeros.
Result<void> SpaceGuard::fill_reserve(std::uint64_t present, std::uint64_t bytes) {
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kReserveStepBytes);
  const std::span<std::byte> noise(buffer.get(), kReserveStepBytes);
  VARVE_TRY_ASSIGN(const auto file,
                   files_.open(directory_ + kReserveName, io::OpenMode::kReadWrite));
  while (present < bytes) {
    for (std::size_t at = 0; at < noise.size(); at += sizeof(std::uint64_t)) {
      const std::uint64_t number = scrambled(present + at);
      std::memcpy(noise.data() + at, &number, sizeof number);
    }
    const auto step = std::min<std::uint64_t>(bytes - present, noise.size());
    VARVE_TRY(file->write_at(present, noise.first(step)));
    present += step;
  }
  return {};
}

void SpaceGuard::keep_reserve() {
  const std::lock_guard one(reserve_mutex_);
  const auto wanted = wanted_reserve();
  const auto make = [&]() -> Result<void> {
    const auto path = directory_ + kReserveName;
    std::uint64_t present = 0;
    VARVE_TRY_ASSIGN(const bool exists, files_.exists(path));
    if (exists) {
      VARVE_TRY_ASSIGN(present, files_.tree_bytes(path));
    }
    if (present >= wanted) return {};
    VARVE_TRY_ASSIGN(const auto space, files_.space(directory_));
    // A small disk gets a small reserve: a deletion without a reserve may lack a page.
    const auto bytes = std::min(wanted, space.available_bytes() / kSpareFactor);
    if (bytes < kReserveBytesLeast || bytes <= present) return {};
    return fill_reserve(present, bytes);
  };
  if (!make()) static_cast<void>(files_.remove(directory_ + kReserveName));
}

void SpaceGuard::renew_reserve() {
  const std::lock_guard one(reserve_mutex_);
  const auto wanted = wanted_reserve();
  const auto make = [&]() -> Result<void> {
    VARVE_TRY_ASSIGN(const bool exists, files_.exists(directory_ + kReserveName));
    if (exists) return {};
    VARVE_TRY_ASSIGN(const auto space, files_.space(directory_));
    const auto half = space.available_bytes() / 2;
    if (half < kReserveBytesLeast) return {};
    return fill_reserve(0, std::min(half, wanted));
  };
  if (!make()) static_cast<void>(files_.remove(directory_ + kReserveName));
}

Result<void> SpaceGuard::with_reserve(const std::function<Result<void>()>& work) {
  auto done = work();
  if (done || done.error().code() != ErrorCode::kNoSpace) return done;
  // Another program filled the disk. The reserve exists for this case.
  if (!give_up_reserve()) return done;
  done = work();
  renew_reserve();
  return done;
}

}  // namespace varve::store
