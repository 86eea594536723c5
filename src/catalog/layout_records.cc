// SPDX-License-Identifier: Apache-2.0
#include "catalog/layout_records.h"

#include <algorithm>

#include "base/coding.h"
#include "base/ids.h"
#include "base/time_coding.h"
#include "catalog/series_sequences.h"
#include "meta/schema.h"

namespace varve::catalog {

namespace {

constexpr std::string_view kArrangeKey = "arrange";
constexpr std::string_view kParityKey = "parity";
constexpr std::string_view kDeltaKey = "delta";
constexpr std::string_view kQuarantineKey = "quarantine";
constexpr std::uint32_t kCountMax = 1U << 20;

Error damaged_layout(const char* what) {
  return {ErrorCode::kCorrupt, std::string("catalog: the record of ") + what + " is damaged"};
}

std::string quarantine_key(StoreId store_id) {
  return std::string(kQuarantineKey) + meta::store_key(store_id);
}

Result<SegmentRecord> decode_segment(SegmentNumber segment, std::string_view bytes) {
  base::ByteReader r(bytes);
  SegmentRecord record;
  record.segment = segment;
  const std::uint8_t role = r.u8();
  const std::uint64_t version = r.varint();
  record.bytes = r.varint();
  record.raw_bytes = r.varint();
  record.live_bytes = r.varint();
  const std::uint64_t containers = r.varint();
  const std::uint64_t first = r.varint();
  if (!r.done() || role > static_cast<std::uint8_t>(SegmentRole::kVolume) ||
      version > 0xffffffffU || record.live_bytes > record.raw_bytes || containers > 0xffffffffU ||
      first > 0xffffffffU) {
    return damaged_layout("a segment");
  }
  record.role = static_cast<SegmentRole>(role);
  record.version = static_cast<VersionNumber>(version);
  record.containers = static_cast<std::uint32_t>(containers);
  record.first_container = static_cast<ContainerNumber>(first);
  return record;
}

}  // namespace

Result<std::optional<SegmentRecord>> find_segment(const meta::Txn& txn, StoreId store_id,
                                                  SegmentNumber segment) {
  VARVE_TRY_ASSIGN(const auto value,
                   txn.get(meta::catalog::kSegments, meta::segment_key(store_id, segment)));
  if (!value) return std::optional<SegmentRecord>();
  VARVE_TRY_ASSIGN(const auto record, decode_segment(segment, *value));
  return std::optional(record);
}

Result<std::vector<SegmentRecord>> list_segments(const meta::Txn& txn, StoreId store_id) {
  std::vector<SegmentRecord> all;
  VARVE_TRY(meta::for_each_prefix(
      txn, meta::catalog::kSegments, meta::store_key(store_id),
      [&](std::string_view key, std::string_view value) -> Result<bool> {
        if (key.size() != 8) return damaged_layout("a segment");
        VARVE_TRY_ASSIGN(
            const auto record,
            decode_segment(static_cast<SegmentNumber>(base::load_be32(key.substr(4))), value));
        all.push_back(record);
        return true;
      }));
  return all;
}

Result<void> put_segment(meta::WriteTxn& txn, StoreId store_id, const SegmentRecord& record) {
  std::string out;
  base::ByteWriter w(out);
  w.u8(static_cast<std::uint8_t>(record.role));
  w.varint(static_cast<std::uint32_t>(record.version));
  w.varint(record.bytes);
  w.varint(record.raw_bytes);
  w.varint(record.live_bytes);
  w.varint(record.containers);
  w.varint(static_cast<std::uint32_t>(record.first_container));
  return txn.put(meta::catalog::kSegments, meta::segment_key(store_id, record.segment), out);
}

Result<void> erase_segment(meta::WriteTxn& txn, StoreId store_id, SegmentNumber segment) {
  return txn.erase(meta::catalog::kSegments, meta::segment_key(store_id, segment));
}

Result<CounterRecord> find_counters(const meta::Txn& txn, StoreId store_id) {
  CounterRecord record;
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kCounters, meta::store_key(store_id)));
  if (!value) return record;
  base::ByteReader r(*value);
  const std::uint64_t container = r.varint();
  const std::uint64_t segment = r.varint();
  if (!r.done() || container > 0xffffffffU || segment > 0x7fffffffU)
    return damaged_layout("counters");
  record.next_container = static_cast<ContainerNumber>(container);
  record.next_segment = static_cast<SegmentNumber>(segment);
  return record;
}

CounterRecord least_counters(const meta::Txn& txn, StoreId store_id) {
  const auto last = [&](meta::TableIndex table, std::uint32_t number) {
    auto cursor = meta::Cursor::open(txn, table);
    if (!cursor) return std::uint32_t{0};
    const auto prefix = meta::store_key(store_id);
    const auto found = cursor->seek_at_or_before(prefix + base::be32(number));
    const bool present =
        found && *found && (*found)->key.starts_with(prefix) && (*found)->key.size() == 8;
    return present ? base::load_be32((*found)->key.substr(4)) : 0;
  };
  const auto container = last(meta::catalog::kContainers, 0xffffffffU);
  const auto segment = last(meta::catalog::kSegments, kVolumeBit - 1);
  const auto volume = last(meta::catalog::kSegments, 0xffffffffU) & ~kVolumeBit;
  CounterRecord least;
  if (container != 0) least.next_container = number_after(static_cast<ContainerNumber>(container));
  const auto file = std::max(segment, volume);
  if (file != 0) least.next_segment = number_after(static_cast<SegmentNumber>(file));
  return least;
}

Result<void> raise_counters(meta::WriteTxn& txn, StoreId store_id, const CounterRecord& counters) {
  VARVE_TRY_ASSIGN(const auto known, find_counters(txn, store_id));
  std::string out;
  base::ByteWriter w(out);
  w.varint(static_cast<std::uint32_t>(std::max(known.next_container, counters.next_container)));
  w.varint(static_cast<std::uint32_t>(std::max(known.next_segment, counters.next_segment)));
  return txn.put(meta::catalog::kCounters, meta::store_key(store_id), out);
}

Result<RetentionRecord> find_retention(const meta::Txn& txn, SeriesId series,
                                       VersionNumber number) {
  VARVE_TRY_ASSIGN(const auto value,
                   txn.get(meta::catalog::kRetention, meta::version_key(series, number)));
  if (!value) return RetentionRecord{};
  return decode_retention(*value);
}

Result<void> for_each_retention(
    const meta::Txn& txn, SeriesId series,
    const std::function<Result<bool>(VersionNumber, const RetentionRecord&)>& visit) {
  return meta::for_each_prefix(
      txn, meta::catalog::kRetention, meta::series_key(series),
      [&](std::string_view key, std::string_view value) -> Result<bool> {
        if (key.size() != 8) return damaged_layout("a version's retention");
        VARVE_TRY_ASSIGN(const auto record, decode_retention(value));
        return visit(static_cast<VersionNumber>(base::load_be32(key.substr(4))), record);
      });
}

Result<RetentionRecord> decode_retention(std::string_view bytes) {
  RetentionRecord record;
  base::ByteReader r(bytes);
  const std::uint8_t flags = r.u8();
  record.locked_until = base::get_time(r);
  if (!r.done() || flags > 1) return damaged_layout("a version's retention");
  record.side = flags == 1;
  return record;
}

std::string encode_retention(const RetentionRecord& record) {
  std::string out;
  base::ByteWriter w(out);
  w.u8(record.side ? 1 : 0);
  base::put_time(w, record.locked_until);
  return out;
}

Result<void> put_retention(meta::WriteTxn& txn, SeriesId series, VersionNumber number,
                           const RetentionRecord& record) {
  VARVE_TRY(note_series_change(txn, series));
  return txn.put(meta::catalog::kRetention, meta::version_key(series, number),
                 encode_retention(record));
}

Result<void> erase_retention(meta::WriteTxn& txn, SeriesId series, VersionNumber number) {
  return txn.erase(meta::catalog::kRetention, meta::version_key(series, number));
}

Result<base::IdRuns> find_quarantine(const meta::Txn& txn, StoreId store_id) {
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSettings, quarantine_key(store_id)));
  if (!value) return base::IdRuns();
  return base::IdRuns::decode(*value);
}

Result<void> put_quarantine(meta::WriteTxn& txn, StoreId store_id, const base::IdRuns& chunks) {
  if (chunks.size() == 0) return txn.erase(meta::catalog::kSettings, quarantine_key(store_id));
  std::string out;
  chunks.encode(out);
  return txn.put(meta::catalog::kSettings, quarantine_key(store_id), out);
}

Result<ArrangeSettings> find_arrange_settings(const meta::Txn& txn) {
  ArrangeSettings settings;
  VARVE_TRY_ASSIGN(const auto parity, txn.get(meta::catalog::kSettings, kParityKey));
  if (parity) {
    base::ByteReader r(*parity);
    settings.parity_percent = r.u8();
    if (!r.done() || !validate_arrange_settings(settings))
      return damaged_layout("the share of parity");
  }
  VARVE_TRY_ASSIGN(const auto delta, txn.get(meta::catalog::kSettings, kDeltaKey));
  if (delta) {
    base::ByteReader r(*delta);
    settings.delta = r.u8();
    if (!r.done() || !validate_arrange_settings(settings))
      return damaged_layout("the setting of deltas");
  }
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSettings, kArrangeKey));
  if (!value) return settings;
  base::ByteReader r(*value);
  settings.policy = static_cast<ArrangePolicyKind>(r.u8());
  settings.batch = r.u32();
  settings.dead_permille = r.u32();
  settings.fan = r.u32();
  settings.window = r.u32();
  if (!r.done() || !validate_arrange_settings(settings))
    return damaged_layout("the arranging policy");
  return settings;
}

Result<void> put_arrange_settings(meta::WriteTxn& txn, const ArrangeSettings& settings) {
  VARVE_TRY(validate_arrange_settings(settings));
  std::string out;
  base::ByteWriter w(out);
  w.u8(static_cast<std::uint8_t>(settings.policy));
  w.u32(settings.batch);
  w.u32(settings.dead_permille);
  w.u32(settings.fan);
  w.u32(settings.window);
  const std::string parity(1, static_cast<char>(settings.parity_percent));
  VARVE_TRY(settings.parity_percent == 0 ? txn.erase(meta::catalog::kSettings, kParityKey)
                                         : txn.put(meta::catalog::kSettings, kParityKey, parity));
  const std::string delta(1, static_cast<char>(settings.delta));
  VARVE_TRY(settings.delta == 0 ? txn.erase(meta::catalog::kSettings, kDeltaKey)
                                : txn.put(meta::catalog::kSettings, kDeltaKey, delta));
  return txn.put(meta::catalog::kSettings, kArrangeKey, out);
}

Result<void> validate_arrange_settings(const ArrangeSettings& settings) {
  if (std::ranges::find(kArrangePolicies, settings.policy, &ArrangePolicyName::kind) ==
      kArrangePolicies.end()) {
    return Error(ErrorCode::kInvalid, "no such arranging policy");
  }
  if (settings.batch < 1 || settings.batch > kCountMax || settings.fan < 2 ||
      settings.fan > kCountMax || settings.window < 1 || settings.window > kCountMax ||
      settings.dead_permille < 10 || settings.dead_permille > 1000) {
    return Error(
        ErrorCode::kInvalid,
        "arranging: batch and window must be at least 1, fan at least 2, and the dead share "
        "from 1 % to 100 %");
  }
  if (settings.parity_percent > kParityPercentMax) {
    return Error(ErrorCode::kInvalid, "parity must be 0 to 25 % of the data that it protects");
  }
  if (settings.delta > 1) return Error(ErrorCode::kInvalid, "delta must be 0 or 1");
  return {};
}

}  // namespace varve::catalog
