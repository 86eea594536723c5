// SPDX-License-Identifier: Apache-2.0
// A series of versions in the real layout, without trees and names.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "avar/version_source.h"
#include "base/coding.h"
#include "base/thread_pool.h"
#include "catalog/layout_records.h"
#include "catalog/series_catalog.h"
#include "io/posix_file_system.h"
#include "layout/arranger.h"
#include "layout/deletion.h"
#include "layout/window.h"
#include "meta/schema.h"

namespace varve::bench {

inline constexpr SeriesId kSeries{1};
inline constexpr std::uint64_t kGapBytes = 1U << 20;     // Shorter gaps are read through.
inline constexpr std::uint64_t kUnitBytes = 512U << 10;  // In which an in-order reader fetches.
inline constexpr std::size_t kUnitsCached = 128;

template <typename T>
T must(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "bench: {}\n", result.error().message());
    std::exit(1);
  }
  return std::move(*result);
}
inline void must(Result<void> result) {
  if (!result) {
    fmt::print(stderr, "bench: {}\n", result.error().message());
    std::exit(1);
  }
}

struct Reads {
  double amplification = 0;  // Of reading every needed byte, with short gaps.
  std::size_t extents = 0;
  double in_order = 0;  // Of reading file by file through a cache of 64 MiB.
};

class Series {
 public:
  Series(std::string directory, const ArrangeSettings& settings)
      : directory_(std::move(directory)), files_(io::make_posix_file_system()) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_ + "/catalog");
    meta::EnvOptions environment;
    environment.tables = meta::catalog::kTables;
    catalog_ =
        std::make_unique<meta::Env>(must(meta::Env::open(directory_ + "/catalog", environment)));
    layout::CategoryLayoutOptions options;
    options.series = kSeries;
    options.series_directory = directory_ + "/1";
    layout_ = must(layout::CategoryLayout::open(*catalog_, *files_, &pool_, options));
    auto txn = must(meta::WriteTxn::begin(*catalog_));
    must(catalog::put_arrange_settings(txn, settings));
    must(txn.commit());
    settings_ = settings;
  }
  ~Series() {
    layout_.reset();
    catalog_.reset();
    std::filesystem::remove_all(directory_);
  }
  Series(const Series&) = delete;
  Series& operator=(const Series&) = delete;

  void store(const std::vector<Content>& stream, const VersionSource& source) {
    const auto number = static_cast<VersionNumber>(streams_.size() + 1);
    put(number, VersionState::kOpen);
    must(layout_->begin_version(number));
    std::map<Content, ChunkId> window;
    {
      const auto txn = must(meta::ReadTxn::begin(*catalog_));
      const auto ids = must(catalog::version_chunks(txn, kSeries, number));
      for (const auto& run : ids.runs()) {
        for (std::uint32_t i = 0; i < run.count; ++i) {
          const auto id = run.first.plus(i);
          window[content_of_.at(id.value)] = id;
        }
      }
    }
    std::vector<ChunkId> chunks;
    backup_bytes_ = 0;
    for (const auto content : stream) {
      backup_bytes_ += source.bytes_of(content);
      auto known = window.find(content);
      if (known == window.end()) {
        const auto raw = source.data_of(content);
        Fingerprint fingerprint{};
        base::store_le(fingerprint.data(), content);
        const auto id = must(layout_->place(fingerprint, raw));
        known = window.emplace(content, id).first;
        content_of_[id.value] = content;
        new_bytes_ += raw.size();
      }
      chunks.push_back(known->second);
    }
    must(layout_->sync());
    streams_.push_back(std::move(chunks));
    put(number, VersionState::kSealed);
  }

  layout::MoveOutcome arrange() {
    layout::ArrangerParts parts;
    parts.layout = layout_.get();
    parts.newest = [this](const std::function<bool(const base::IdRun&)>& visit) -> Result<void> {
      for (const auto id : streams_.back()) {
        if (!visit({id, 1})) break;
      }
      return {};
    };
    layout::Arranger arranger(parts, settings_);
    must(arranger.run());
    return arranger.done();
  }

  // Dead and departed, as a share of the active set's live bytes.
  double dead_share() {
    const auto txn = must(meta::ReadTxn::begin(*catalog_));
    const auto view = must(layout::view_active_set(txn, kSeries, settings_, {}));
    std::uint64_t dead = view.state.departing_bytes;
    std::uint64_t all = 0;
    for (const auto& file : view.state.files) {
      dead += file.raw_bytes - file.live_bytes;
      all += file.raw_bytes;
    }
    return static_cast<double>(dead) / static_cast<double>(std::max<std::uint64_t>(all - dead, 1));
  }

  Reads reads_of(std::size_t version) {
    struct Place {
      std::uint32_t segment = 0;
      std::uint64_t offset = 0;
      std::uint64_t bytes = 0;
    };
    const auto txn = must(meta::ReadTxn::begin(*catalog_));
    std::unordered_map<std::uint32_t, store::ContainerRecord> containers;
    must(catalog::for_each_container(txn, kSeries,
                                     [&](const store::ContainerRecord& r) -> Result<bool> {
                                       containers[r.number] = r;
                                       return true;
                                     }));
    std::unordered_map<std::uint64_t, Place> place_of;
    must(catalog::for_each_location(
        txn, kSeries, ChunkId{}, [&](const catalog::LocationRecord& at) -> Result<bool> {
          const auto& record = containers.at(at.container);
          const auto head = must(layout_->head(at.container));
          for (std::uint32_t i = 0; i < at.count; ++i) {
            const auto& chunk = head->chunks[at.index + i];
            place_of[at.first.value + i] = {record.segment,
                                            record.offset + record.head_bytes +
                                                head->frames[chunk.frame].offset +
                                                chunk.frame_offset,
                                            chunk.raw_bytes};
          }
          return true;
        }));
    Reads reads;
    std::map<std::uint32_t, std::map<std::uint64_t, std::uint64_t>> wanted;
    std::list<std::pair<std::uint32_t, std::uint64_t>> units;
    std::map<std::pair<std::uint32_t, std::uint64_t>, decltype(units)::iterator> cached;
    std::uint64_t useful = 0;
    std::uint64_t delivered = 0;
    std::uint64_t misses = 0;
    for (const auto id : streams_[version]) {
      const auto& at = place_of.at(id.value);
      if (wanted[at.segment].emplace(at.offset, at.bytes).second) useful += at.bytes;
      delivered += at.bytes;
      const std::pair unit(at.segment, at.offset / kUnitBytes);
      const auto hit = cached.find(unit);
      if (hit != cached.end()) {
        units.splice(units.begin(), units, hit->second);
        continue;
      }
      ++misses;
      units.push_front(unit);
      cached[unit] = units.begin();
      if (units.size() > kUnitsCached) {
        cached.erase(units.back());
        units.pop_back();
      }
    }
    std::uint64_t read = 0;
    for (const auto& [segment, ranges] : wanted) {
      std::uint64_t begin = ranges.begin()->first;
      std::uint64_t end = begin;
      for (const auto& [offset, bytes] : ranges) {
        if (offset > end + kGapBytes) {
          read += end - begin;
          ++reads.extents;
          begin = offset;
        }
        end = offset + bytes;
      }
      read += end - begin;
      ++reads.extents;
    }
    reads.amplification = static_cast<double>(read) / static_cast<double>(useful);
    reads.in_order = static_cast<double>(misses * kUnitBytes) / static_cast<double>(delivered);
    return reads;
  }

  [[nodiscard]] layout::CategoryLayout& layout() { return *layout_; }
  [[nodiscard]] const std::vector<ChunkId>& stream(std::size_t version) const {
    return streams_[version];
  }
  [[nodiscard]] Content content_of(ChunkId id) const { return content_of_.at(id.value); }
  [[nodiscard]] std::uint64_t stored_bytes() { return must(files_->tree_bytes(directory_ + "/1")); }
  [[nodiscard]] std::uint64_t backup_bytes() const { return backup_bytes_; }
  [[nodiscard]] std::uint64_t new_bytes() const { return new_bytes_; }

 private:
  void put(VersionNumber number, VersionState state) {
    auto txn = must(meta::WriteTxn::begin(*catalog_));
    catalog::VersionRecord record;
    record.series = kSeries;
    record.number = number;
    record.name = std::to_string(static_cast<std::uint32_t>(number));
    record.state = state;
    record.root.mode = 0040755;
    if (state == VersionState::kOpen) {
      must(layout::open_window(txn, kSeries, number));
    } else {
      std::vector<base::IdRun> runs;
      for (const auto id : streams_.back()) runs.push_back({id, 1});
      const auto chunks = base::IdRuns::from(std::move(runs));
      const bool side = must(layout::is_side_version(txn, kSeries, chunks));
      must(catalog::put_version_chunks(txn, kSeries, number, chunks));
      must(catalog::put_retention(txn, kSeries, number, {side, {}}));
    }
    must(catalog::put_version(txn, record));
    must(txn.commit());
  }

  const std::string directory_;
  std::unique_ptr<io::FileSystem> files_;
  base::ThreadPool pool_{1, "bench"};
  std::unique_ptr<meta::Env> catalog_;
  std::unique_ptr<layout::CategoryLayout> layout_;
  ArrangeSettings settings_;
  std::vector<std::vector<ChunkId>> streams_;
  std::unordered_map<std::uint64_t, Content> content_of_;
  std::uint64_t backup_bytes_ = 0;
  std::uint64_t new_bytes_ = 0;
};

}  // namespace varve::bench
