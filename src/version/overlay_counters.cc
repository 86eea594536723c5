// SPDX-License-Identifier: Apache-2.0
#include "version/overlay_counters.h"

#include <algorithm>
#include <string_view>

#include "base/coding.h"
#include "base/log.h"
#include "format/rewrite_counts.h"
#include "meta/schema.h"

namespace varve::version {

namespace {
constexpr std::string_view kNextInoKey = "next_ino";
constexpr std::string_view kFormatKey = "format";
constexpr std::string_view kEntriesKey = "entries";
constexpr std::string_view kChangedKey = "changed_at";
constexpr std::string_view kRewriteCountsKey = "rewrite_counts";
// Must be raised with every change to the contents of overlays and staging files.
constexpr std::uint64_t kOverlayFormat = 1;
constexpr Ino kInosEnd = Ino{1} << 62;  // Counting never reaches kInosEnd.

std::uint64_t number_in(std::string_view value) {
  return value.size() == sizeof(std::uint64_t) ? base::load_be64(value) : 0;
}
}  // namespace

Result<Ino> read_inode_counter(const meta::Txn& overlay, Ino base_end) {
  const Ino lowest = std::max(base_end, kRootIno + 1);
  VARVE_TRY_ASSIGN(const auto value, overlay.get(meta::overlay::kState, kNextInoKey));
  const Ino next = value ? number_in(*value) : lowest;
  VARVE_TRY_ASSIGN(auto inodes, meta::Cursor::open(overlay, meta::overlay::kInodes));
  VARVE_TRY_ASSIGN(const auto last, inodes.seek_at_or_before(meta::ino_key(~Ino{0})));
  if (next < lowest || next > kInosEnd || (last && last->key >= meta::ino_key(next))) {
    return Error(ErrorCode::kCorrupt, "the open version's counter of inodes is damaged");
  }
  return next;
}

std::optional<std::uint64_t> recorded_entries(const meta::Env& overlay) {
  const auto txn = meta::ReadTxn::begin(overlay);
  if (!txn) return std::nullopt;
  const auto entries = txn->get(meta::overlay::kState, kEntriesKey);
  if (!entries || !*entries) return std::nullopt;
  return number_in(**entries);
}

Result<void> put_numbers(meta::WriteTxn& overlay, const OverlayNumbers& numbers) {
  const auto put = [&](std::string_view key, std::uint64_t value) {
    return overlay.put(meta::overlay::kState, key, base::be64(value));
  };
  VARVE_TRY(put(kFormatKey, kOverlayFormat));
  VARVE_TRY(put(kNextInoKey, numbers.next_ino));
  VARVE_TRY(put(kEntriesKey, numbers.entries));
  VARVE_TRY(put(kChangedKey, static_cast<std::uint64_t>(numbers.changed_at.seconds)));
  if (numbers.rewrite_counts == RewriteCounts()) return {};
  return overlay.put(meta::overlay::kState, kRewriteCountsKey,
                     format::encode_rewrite_counts(numbers.rewrite_counts));
}

OverlayCounters::OverlayCounters(std::optional<Ino> base_end)
    : has_base_(base_end.has_value()), first_(base_end.value_or(kRootIno + 1)) {
  numbers_.next_ino = first_;
  numbers_.entries = base_end ? *base_end - 2 : 0;  // Neither the root nor the end has a name.
}

Result<void> OverlayCounters::load(const meta::Txn& overlay) {
  // An overlay without a format is new, or of the first format.
  VARVE_TRY_ASSIGN(const auto format, overlay.get(meta::overlay::kState, kFormatKey));
  if (format && *format != base::be64(kOverlayFormat)) {
    return Error(ErrorCode::kUnsupported,
                 "another version of Varve wrote the open version; seal or delete it with that "
                 "version of Varve");
  }
  VARVE_TRY_ASSIGN(numbers_.next_ino, read_inode_counter(overlay, first_));
  VARVE_TRY_ASSIGN(const auto changed, overlay.get(meta::overlay::kState, kChangedKey));
  if (changed) numbers_.changed_at.seconds = static_cast<std::int64_t>(number_in(*changed));
  VARVE_TRY_ASSIGN(const auto counts, overlay.get(meta::overlay::kState, kRewriteCountsKey));
  if (counts) {
    const auto decoded = format::decode_rewrite_counts(*counts);
    // Rewrite counts are only figures, so the version stays usable without the counts.
    if (decoded) numbers_.rewrite_counts = *decoded;
    if (!decoded) base::log(base::LogLevel::kWarning, "open version: " + decoded.error().message());
  }
  VARVE_TRY_ASSIGN(const auto entries, overlay.get(meta::overlay::kState, kEntriesKey));
  if (entries) {
    numbers_.entries = number_in(*entries);
    return {};
  }
  // An overlay of an earlier release has no such record, so the names are counted.
  if (has_base_) return {};
  return meta::for_each_prefix(overlay, meta::overlay::kDirents, "",
                               [&](std::string_view, std::string_view) -> Result<bool> {
                                 ++numbers_.entries;
                                 return true;
                               });
}

}  // namespace varve::version
