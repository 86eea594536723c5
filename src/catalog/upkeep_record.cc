// SPDX-License-Identifier: Apache-2.0
#include "catalog/upkeep_record.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/coding.h"
#include "meta/schema.h"

namespace varve::catalog {
namespace {

constexpr std::string_view kUpkeepSetting = "upkeep";

// The flags of the first varint: the optional values that follow, and the settings with two values.
constexpr std::uint64_t kHasRate = 1;
constexpr std::uint64_t kHasWithin = 2;
constexpr std::uint64_t kByClaimed =
    4;  // For earlier programs. The absence of the flag has no meaning.
constexpr std::uint64_t kHasLock = 8;
constexpr std::uint64_t kBySealed = 16;
constexpr std::uint64_t kNoGuard = 32;
constexpr std::uint64_t kFlags =
    kHasRate | kHasWithin | kByClaimed | kHasLock | kBySealed | kNoGuard;

constexpr auto kLockModeMax = static_cast<std::uint64_t>(LockMode::kGovernance);

Error damaged_upkeep() { return {ErrorCode::kCorrupt, "catalog: the setting upkeep is damaged"}; }

}  // namespace

Result<UpkeepSettings> find_upkeep_settings(const meta::Txn& txn) {
  UpkeepSettings settings;
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSettings, kUpkeepSetting));
  if (!value) return settings;
  base::ByteReader r(*value);
  const std::uint64_t flags = r.varint();
  if (!r.ok()) return damaged_upkeep();
  if ((flags & ~kFlags) != 0) {
    return Error(
        ErrorCode::kUnsupported,
        "catalog: the setting upkeep has values that this Varve does not know; use a newer "
        "Varve");
  }
  if ((flags & kHasRate) != 0) settings.arrange_bytes_per_second = r.varint();
  for (const auto& rule : kCountRules) {
    const std::uint64_t number = r.varint();
    if (number > std::numeric_limits<std::uint32_t>::max()) return damaged_upkeep();
    settings.keep.*rule.count = static_cast<std::uint32_t>(number);
  }
  if ((flags & kHasWithin) != 0) settings.keep.within_seconds = r.varint();
  settings.keep.by_claimed = (flags & kBySealed) == 0;
  settings.guards_sources = (flags & kNoGuard) == 0;
  if ((flags & kHasLock) != 0) {
    const std::uint64_t days = r.varint();
    const std::uint64_t mode = r.varint();
    if (days == 0 || days > kLockDaysMax || mode > kLockModeMax) return damaged_upkeep();
    settings.object_lock = {static_cast<std::uint32_t>(days), static_cast<LockMode>(mode)};
  }
  if (!r.done()) return damaged_upkeep();
  return settings;
}

Result<void> put_upkeep_settings(meta::WriteTxn& txn, const UpkeepSettings& settings) {
  if (settings == UpkeepSettings()) return txn.erase(meta::catalog::kSettings, kUpkeepSetting);
  std::string out;
  base::ByteWriter w(out);
  const KeepRules& keep = settings.keep;
  w.varint((settings.arrange_bytes_per_second ? kHasRate : 0) |
           (keep.within_seconds ? kHasWithin : 0) | (keep.by_claimed ? kByClaimed : kBySealed) |
           (settings.object_lock.on() ? kHasLock : 0) | (settings.guards_sources ? 0 : kNoGuard));
  if (settings.arrange_bytes_per_second) w.varint(*settings.arrange_bytes_per_second);
  for (const auto& rule : kCountRules) w.varint(keep.*rule.count);
  if (keep.within_seconds) w.varint(*keep.within_seconds);
  if (settings.object_lock.on()) {
    w.varint(settings.object_lock.days);
    w.varint(static_cast<std::uint64_t>(settings.object_lock.mode));
  }
  return txn.put(meta::catalog::kSettings, kUpkeepSetting, out);
}

}  // namespace varve::catalog
