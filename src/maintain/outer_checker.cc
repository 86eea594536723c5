// SPDX-License-Identifier: Apache-2.0
#include "maintain/outer_checker.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/checksum.h"
#include "catalog/series_catalog.h"
#include "format/container.h"
#include "format/frame_codec.h"
#include "ingest/parameters.h"
#include "maintain/owners.h"
#include "parity/group_files.h"

namespace varve::maintain {

namespace {

// Compares the parts of a plain container, which follow `header` in `rest`, with the checksums.
std::string fault_of_plain(const format::ContainerHeader& header, std::span<const std::byte> rest) {
  for (const auto& frame : header.frames) {
    if (base::checksum64(rest.subspan(frame.offset, frame.stored_bytes)) == frame.checksum)
      continue;
    return fmt::format("frame at data offset {}: its stored bytes do not match their checksum",
                       frame.offset);
  }
  const auto padding = rest.subspan(header.data_bytes);
  const bool zero = std::ranges::all_of(padding, [](std::byte b) { return b == std::byte{0}; });
  return zero ? "" : "the padding is damaged";
}

}  // namespace

Result<CheckReport> OuterChecker::run() {
  const auto text = files_.read_file(paths_.superblock(), format::kSuperblockBytesMax);
  if (!text && text.error().code() == ErrorCode::kNotFound) {
    return Error(ErrorCode::kNoRepository, paths_.root() + " is not a Varve repository");
  }
  VARVE_TRY(text);
  const auto superblock = ingest::read_superblock(*text);
  if (!superblock && superblock.error().code() == ErrorCode::kUnsupported) {
    return superblock.error();
  }
  if (!superblock) {
    report_.damages.push_back({paths_.superblock(), superblock.error().message(), {}});
  }
  VARVE_TRY_ASSIGN(const auto owners, owner_folders(files_, paths_));
  VARVE_TRY_ASSIGN(const auto places, list_files(owners));
  CheckProgress done;
  for (const auto& place : places) {
    if (const auto size = stores_.of(place.owner).size(place.segment)) done.bytes_total += *size;
  }
  std::vector<Place> doubtful;
  for (const auto& place : places) {
    if (options_.stop.stop_requested()) {
      report_.finished = false;
      return std::move(report_);
    }
    VARVE_TRY_ASSIGN(const auto faults, faults_of(place));
    if (!faults.empty()) doubtful.push_back(place);
    done.bytes_done = report_.bytes_read;
    if (progress_) progress_(done);
  }
  for (const auto owner : owners) VARVE_TRY(check_parity(owner));
  note_unprotected(places);
  const auto containers = report_.containers;
  for (const auto& place : doubtful) {
    VARVE_TRY_ASSIGN(const auto faults, faults_of(place));
    for (const auto& fault : faults) {
      report_.damages.push_back({stores_.of(place.owner).describe(place.segment), fault, {}});
    }
  }
  report_.containers = containers;
  return std::move(report_);
}

Result<std::vector<OuterChecker::Place>> OuterChecker::list_files(
    const std::vector<SeriesId>& owners) {
  std::vector<Place> places;
  for (const auto owner : owners) {
    auto& store = stores_.of(owner);
    for (const auto kind : {store::StoredKind::kSegments, store::StoredKind::kVolumes}) {
      VARVE_TRY_ASSIGN(auto names, store.list(kind));
      std::sort(names.begin(), names.end());
      for (const auto& name : names) places.push_back({owner, std::get<SegmentNumber>(name)});
    }
  }
  return places;
}

Result<OuterChecker::Faults> OuterChecker::faults_of(const Place& place) {
  // A file grows during the append of a container, so the check waits until the size is constant.
  constexpr int kOuterRoundsMax = 64;
  auto& store = stores_.of(place.owner);
  Faults faults;
  for (int round = 0; round < kOuterRoundsMax; ++round) {
    const auto file = store.open(place.segment, store::ReadMode::kCached);
    if (!file && file.error().code() == ErrorCode::kNotFound) return Faults();
    if (!file) return Faults{file.error().message()};
    VARVE_TRY_ASSIGN(const auto size, (*file)->size());
    store::SegmentReader reader(store, nullptr);
    const auto containers = report_.containers;
    VARVE_TRY_ASSIGN(faults, walk(**file, reader, place.segment, size));
    if (faults.empty()) return faults;
    const auto now = store.size(place.segment);
    if (!now && now.error().code() == ErrorCode::kNotFound) return Faults();
    if (now && *now == size) return faults;
    report_.containers = containers;
  }
  return faults;
}

Result<OuterChecker::Faults> OuterChecker::walk(store::OpenSegment& file,
                                                store::SegmentReader& reader, SegmentNumber segment,
                                                std::uint64_t size) {
  Faults faults;
  for (std::uint64_t at = 0; at < size;) {
    std::array<std::byte, format::kContainerFixedHeaderBytes> start{};
    const auto got = file.read_at(at, start);
    if (!got) {
      faults.push_back(got.error().message());
      return faults;
    }
    auto length = format::container_length(std::span(start).first(*got));
    if (!length && length.error().code() == ErrorCode::kUnsupported) {
      return std::move(length).error().with_context(reader.describe({{}, segment, at}));
    }
    if (!length && *got == start.size() && format::correct_fixed_header(start)) {
      faults.push_back(fmt::format("container at offset {}: a byte of its header is wrong", at));
      length = format::container_length(start);
    }
    if (!length || *length > size - at) {
      faults.push_back(fmt::format(
          "the {} bytes from offset {} on are no complete container; if a crash interrupted the "
          "last writer, open the repository once, then check again",
          size - at, at));
      return faults;
    }
    auto fault = fault_of_container(reader, segment, at, start, *length);
    if (!fault.empty()) faults.push_back(fmt::format("container at offset {}: {}", at, fault));
    ++report_.containers;
    report_.bytes_read += *length;
    at += *length;
  }
  return faults;
}

std::string OuterChecker::fault_of_container(store::SegmentReader& reader, SegmentNumber segment,
                                             std::uint64_t offset, std::span<const std::byte> start,
                                             std::uint32_t length) {
  format::ContainerRecord whole;
  whole.segment = segment;
  whole.offset = offset;
  whole.data_bytes = length;
  const auto bytes = reader.read_direct(whole, 0, length, room_.span());
  if (!bytes) return bytes.error().message();
  const auto outer = format::container_outer_checksum(start);
  if (!outer) return outer.error().message();
  if (*outer) {
    const auto rest = bytes->subspan(format::kContainerFixedHeaderBytes);
    return base::checksum64(rest) == **outer ? "" : "its bytes do not match their checksum";
  }
  const auto header = format::decode_container_header(*bytes);
  if (!header) return header.error().message();
  return fault_of_plain(*header, bytes->subspan(header->header_bytes));
}

Result<void> OuterChecker::check_parity(SeriesId owner) {
  auto& store = stores_.of(owner);
  const auto damage = [&](std::string where, const std::string& what) {
    report_.damages.push_back({std::move(where), what, {}});
  };
  const auto listing = parity::list_groups(store, catalog::store_of(owner));
  if (!listing) {
    damage(store.describe(), listing.error().message());
    return {};
  }
  for (const auto& [number, error] : listing->damaged) {
    damage(store.describe(number), error.message());
    protected_[owner];
  }
  for (const auto& group : listing->groups) {
    for (const auto& member : group.index.members) protected_[owner].insert(member.segment);
    const auto faults = parity::faults_of_group(store, group);
    if (!faults && faults.error().code() == ErrorCode::kNotFound) continue;  // Just replaced.
    if (!faults || !faults->empty()) {
      damage(store.describe(group.number), faults ? *faults : faults.error().message());
    }
  }
  return {};
}

void OuterChecker::note_unprotected(const std::vector<Place>& places) {
  if (protected_.empty()) return;  // Probably nothing is to have parity.
  std::map<SeriesId, std::uint64_t> files;
  std::map<SeriesId, std::uint64_t> without;
  for (const auto& place : places) {
    ++files[place.owner];
    if (!protected_[place.owner].contains(place.segment)) ++without[place.owner];
  }
  for (const auto& [owner, count] : without) {
    report_.notes.push_back(
        {stores_.folder_of(owner),
         fmt::format("{} of {} data files have no parity. No data is lost; `varve arrange` makes "
                     "the parity again if it is wanted",
                     count, files.at(owner))});
  }
}

}  // namespace varve::maintain
