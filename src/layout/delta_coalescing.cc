// SPDX-License-Identifier: Apache-2.0
#include "layout/delta_coalescing.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/log.h"
#include "catalog/location_table.h"
#include "format/prefix_cache.h"
#include "layout/file_chunks.h"

namespace varve::layout {
namespace {

using catalog::SegmentRecord;

constexpr std::size_t kPrefixesMax = 8;  // 1 MiB of decoded frames.

struct Death {
  VersionNumber number{};
  std::uint64_t span = 0;  // Number of joined deaths, at most.
  std::uint64_t stored_bytes = 0;
  std::uint64_t raw_bytes = 0;
  std::vector<SegmentNumber> volumes;
};

// Returns the deaths with volumes, ascending. The volumes of a death ascend.
std::vector<Death> deaths_of(const std::vector<SegmentRecord>& segments) {
  std::map<VersionNumber, Death> by_number;
  for (const auto& segment : segments) {
    if (segment.active() || segment.raw_bytes == 0) continue;
    auto& death = by_number[segment.version];
    death.volumes.push_back(segment.segment);
    death.stored_bytes += segment.bytes;
    death.raw_bytes += segment.raw_bytes;
  }
  std::vector<Death> deaths;
  std::uint64_t before = 0;
  for (auto& [number, death] : by_number) {
    const auto value = static_cast<std::uint32_t>(number);
    death.number = number;
    death.span = value - before;
    before = value;
    deaths.push_back(std::move(death));
  }
  return deaths;
}

// Returns whether to join fewer deaths than the fan: whether joined volumes are much shorter than
// single volumes. Chunks that gain little are written again once, with a fan of deaths.
bool pays(std::span<const Death> deaths, const CoalescingLimits& limits) {
  struct Sum {
    double stored_bytes = 0;
    double raw_bytes = 0;
  };
  Sum single;
  Sum few;
  Sum many;
  for (const auto& death : deaths) {
    auto& sum = death.span == 1 ? single : death.span < limits.delta_fan ? few : many;
    sum.stored_bytes += static_cast<double>(death.stored_bytes);
    sum.raw_bytes += static_cast<double>(death.raw_bytes);
  }
  const auto saves = [&](const Sum& joined, double share) {
    return joined.stored_bytes * single.raw_bytes <= share * joined.raw_bytes * single.stored_bytes;
  };
  return saves(few, limits.delta_few_share) && saves(many, limits.delta_many_share);
}

DeltaJob job_of(std::span<Death> deaths) {
  DeltaJob job;
  for (auto& death : deaths) job.volumes.push_back(std::move(death.volumes));
  job.death = deaths.back().number;
  job.last_is_single = deaths.back().span == 1;
  return job;
}

// Returns the deaths to join among successive deaths with a span below the fan; empty without any.
// `doubles`: whether to join deaths with a sum of spans below the fan, too.
std::span<Death> short_deaths_to_join(std::span<Death> deaths, std::size_t fan, bool doubles) {
  std::uint64_t sum = 0;
  for (std::size_t end = 0; end < deaths.size(); ++end) {
    sum += deaths[end].span;
    if (sum >= fan && end != 0) return deaths.first(end + 1);
  }
  if (!doubles) return {};
  // Each byte is written again for each doubling of the span.
  for (std::size_t first = 0; first + 1 < deaths.size(); ++first) {
    if (sum >= 2 * std::bit_floor(deaths[first].span)) return deaths.subspan(first);
    sum -= deaths[first].span;
  }
  return {};
}

// Returns whether a frame in the file has a prefix. An unreadable header counts as one without.
bool has_prefixes(CategoryLayout& layout, const meta::Txn& txn, SegmentNumber number) {
  const auto file = catalog::find_segment(txn, layout.options().store, number);
  if (!file || !*file) return false;
  bool found = false;
  const auto walked =
      for_each_container_in(txn, layout.options().store, **file,
                            [&](const format::ContainerRecord& record) -> Result<bool> {
                              const auto header = layout.header(record.number);
                              found = header && format::has_prefixes((*header)->frames);
                              return !found;
                            });
  return walked && found;
}

// The stored bytes of a container's frames. Reads the frames together if that reads few other
// bytes, and each frame by itself after damage.
class StoredFrames {
 public:
  StoredFrames(CategoryLayout& layout, const format::ContainerHeader& header,
               const std::set<std::uint32_t>& frames, std::uint64_t& bytes_read)
      : layout_(layout), header_(header), bytes_read_(bytes_read) {
    std::uint64_t wanted = 0;
    std::uint32_t end = 0;
    from_ = header.data_bytes;
    for (const auto number : frames) {
      const auto& frame = header.frames[number];
      from_ = std::min(from_, format::extent_begin(frame));
      end = std::max(end, frame.offset + frame.stored_bytes);
      wanted += frame.stored_bytes;
    }
    if (wanted * 2 < end - from_) return;
    together_.resize(end - from_);
    if (!read(from_, together_)) together_.clear();
  }
  /// Returns the bytes that decoding the frame needs. They are valid until the next call.
  Result<std::span<const std::byte>> of(std::uint32_t number) {
    const auto& frame = header_.frames[number];
    const auto begin = format::extent_begin(frame);
    const auto bytes = format::extent_bytes(frame);
    if (!together_.empty()) {
      return std::span<const std::byte>(together_).subspan(begin - from_, bytes);
    }
    alone_.resize(bytes);
    VARVE_TRY(read(begin, alone_));
    return std::span<const std::byte>(alone_);
  }

 private:
  Result<void> read(std::uint32_t offset, std::span<std::byte> out) {
    bytes_read_ += out.size();
    return layout_.read_data(header_.number, offset, out);
  }
  CategoryLayout& layout_;
  const format::ContainerHeader& header_;
  std::uint64_t& bytes_read_;
  std::uint32_t from_ = 0;  // Offset of together_ in the container's data.
  std::vector<std::byte> together_;
  std::vector<std::byte> alone_;
};

// Adds the sketches of a container's chunks. `wanted`: indexes of the chunks.
void sketch_container(CategoryLayout& layout, const std::set<std::uint32_t>& wanted,
                      const format::ContainerHeader& header, format::PrefixCache& prefixes,
                      std::vector<SketchedChunk>& sketched, std::uint64_t& bytes_read) {
  std::set<std::uint32_t> frames;
  for (const auto index : wanted) frames.insert(header.chunks[index].frame);
  StoredFrames stored(layout, header, frames, bytes_read);
  std::vector<std::byte> raw;
  for (auto it = wanted.begin(); it != wanted.end();) {
    const std::uint32_t number = header.chunks[*it].frame;
    raw.resize(header.frames[number].raw_bytes);
    const auto decoded = [&]() -> Result<void> {
      VARVE_TRY_ASSIGN(const auto bytes, stored.of(number));
      VARVE_TRY(format::decode_frame(layout.codec(), header, number, bytes, raw, prefixes));
      return {};
    }();
    for (; it != wanted.end() && header.chunks[*it].frame == number; ++it) {
      const auto& entry = header.chunks[*it];
      SketchedChunk chunk{entry.id, entry.raw_bytes, {}};
      // The mover reports the damage. No chunk is like the bytes of an id.
      chunk.sketch = decoded
                         ? sketch_of(std::span(raw).subspan(entry.frame_offset, entry.raw_bytes))
                         : sketch_of(std::as_bytes(std::span(&entry.id.value, 1)));
      sketched.push_back(chunk);
    }
  }
}

}  // namespace

std::optional<DeltaJob> next_delta_job(const std::vector<SegmentRecord>& segments,
                                       const std::vector<LiveVersion>& versions,
                                       std::uint32_t window, const CoalescingLimits& limits) {
  const auto fan = limits.delta_fan;
  auto deaths = deaths_of(segments);
  const bool doubles = pays(deaths, limits);
  for (std::size_t first = 0; first < deaths.size();) {
    const auto rest = std::span(deaths).subspan(first);
    const auto is_short = [&](const Death& death) { return death.span < fan; };
    const auto count = static_cast<std::size_t>(
        std::distance(rest.begin(), std::ranges::find_if_not(rest, is_short)));
    const auto joined = short_deaths_to_join(rest.first(count), fan, doubles);
    if (!joined.empty()) return job_of(joined);
    first += count + 1;
  }
  std::vector<LiveVersion> sealed;
  std::ranges::copy_if(versions, std::back_inserter(sealed), &LiveVersion::sealed);
  const auto start = window_start(sealed, window);
  for (std::size_t first = 0, end = 0, long_deaths = 0; end < deaths.size(); ++end) {
    const auto& death = deaths[end];
    if (newest_at_most(sealed, death.number) >= start) break;
    if (death.span >= fan * fan) {
      first = end + 1;
      long_deaths = 0;
    } else if (death.span >= fan && ++long_deaths == fan) {
      return job_of(std::span(deaths).subspan(first, end + 1 - first));
    }
  }
  // Later, since an interrupted job leaves volumes mostly dead.
  DeltaJob job;
  for (const auto& volume : segments) {
    const bool is_mostly_dead = (volume.raw_bytes - volume.live_bytes) * 2 > volume.raw_bytes;
    if (volume.active() || !is_mostly_dead) continue;
    if (job.volumes.empty()) job = {{{}}, volume.version};
    if (job.death == volume.version) job.volumes.front().push_back(volume.segment);
  }
  if (!job.volumes.empty()) return job;
  return std::nullopt;
}

Result<std::vector<base::IdRuns>> parts_of(CategoryLayout& layout, const meta::Txn& txn,
                                           const DeltaJob& job, const base::IdRuns& excluded,
                                           std::uint64_t part_bytes) {
  std::vector<std::vector<ChunkId>> ids;  // A list for each death.
  std::uint64_t bytes = 0;
  for (const auto& volumes : job.volumes) {
    for (const auto number : volumes) {
      VARVE_TRY_ASSIGN(const auto file, catalog::find_segment(txn, layout.options().store, number));
      if (file) bytes += file->live_bytes;
    }
    auto sources = volumes;
    if (job.last_is_single && &volumes == &job.volumes.back()) {
      std::erase_if(sources, [&](SegmentNumber file) { return has_prefixes(layout, txn, file); });
    }
    VARVE_TRY_ASSIGN(const auto located, chunks_in_files(layout, txn, sources));
    const auto moving = located.subtract(excluded);
    auto& of_death = ids.emplace_back();
    for (const auto& run : moving.runs()) {
      for (std::uint32_t i = 0; i < run.count; ++i) of_death.push_back(run.first.plus(i));
    }
  }
  // Chunks of one death alone gain nothing: the volumes of the others cannot be read.
  const auto with_chunks = std::ranges::count_if(ids, [](const auto& one) { return !one.empty(); });
  if (job.volumes.size() > 1 && with_chunks < 2) return std::vector<base::IdRuns>();
  const std::uint64_t count = std::max<std::uint64_t>((bytes + part_bytes - 1) / part_bytes, 1);
  std::vector<base::IdRuns> parts;
  for (std::uint64_t part = 0; part < count; ++part) {
    std::vector<base::IdRun> runs;
    for (const auto& of_death : ids) {
      const std::size_t first = of_death.size() * part / count;
      const std::size_t end = of_death.size() * (part + 1) / count;
      for (std::size_t i = first; i < end; ++i) runs.push_back({of_death[i], 1});
    }
    auto ids_of_part = base::IdRuns::from(std::move(runs));
    if (ids_of_part.size() != 0) parts.push_back(std::move(ids_of_part));
  }
  return parts;
}

Result<DeltaPlan> plan_delta_of(CategoryLayout& layout, const base::IdRuns& chunks,
                                std::uint64_t& bytes_read) {
  std::map<ContainerNumber, std::set<std::uint32_t>> wanted;  // Indexes in the chunk table.
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(layout.catalog()));
    VARVE_TRY(catalog::for_each_location_of(txn, layout.options().store, chunks,
                                            [&](const catalog::LocationRecord& at) -> Result<bool> {
                                              for (std::uint32_t i = 0; i < at.count; ++i) {
                                                if (chunks.contains(at.first.plus(i)))
                                                  wanted[at.container].insert(at.index + i);
                                              }
                                              return true;
                                            }));
  }
  std::vector<SketchedChunk> sketched;
  format::PrefixCache prefixes(kPrefixesMax);
  for (const auto& [container, indexes] : wanted) {
    if (layout.answers_later()) layout.will_read_all(container);
    VARVE_TRY_ASSIGN(const auto header, layout.header(container));
    if (*indexes.rbegin() >= header->chunks.size()) {
      return Error(ErrorCode::kCorrupt,
                   "a location does not fit " + layout.describe(container) + "; run `varve check`");
    }
    sketch_container(layout, indexes, *header, prefixes, sketched, bytes_read);
  }
  std::ranges::sort(sketched, {}, &SketchedChunk::id);
  return plan_delta(sketched);
}

}  // namespace varve::layout
