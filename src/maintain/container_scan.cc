// SPDX-License-Identifier: Apache-2.0
#include "maintain/container_scan.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/coding.h"
#include "maintain/owners.h"

namespace varve::maintain {

namespace {

// Read size of the search for the next header.
constexpr std::size_t kSearchBytes = 1U << 20;

void put_runs(const format::ContainerHeader& header, FoundContainer& found) {
  auto& runs = found.runs;
  for (std::uint32_t i = 0; i < header.chunks.size(); ++i) {
    const auto& chunk = header.chunks[i];
    if (runs.empty() || !base::continues({runs.back().first, runs.back().count}, {chunk.id, 1})) {
      runs.push_back({chunk.id, 0, 0, header.number, i});
      found.digests.push_back(0);
    }
    ++runs.back().count;
    runs.back().raw_bytes += chunk.raw_bytes;
    found.digests.back() += format::chunk_digest(chunk.id, chunk.fingerprint, chunk.raw_bytes);
  }
}

/// Scans a file from start to end.
class FileScan {
 public:
  FileScan(store::OpenSegment& file, const format::ContainerKeys* keys, std::string path,
           SegmentNumber segment, StoreId store_id, FoundBySearch take, ContainerScan& scan)
      : file_(file),
        keys_(keys),
        path_(std::move(path)),
        segment_(segment),
        store_id_(store_id),
        take_(take),
        scan_(scan) {}

  Result<void> run() {
    VARVE_TRY_ASSIGN(size_, file_.size());
    std::uint64_t at = 0;
    while (at < size_) {
      auto found = read(at, Correct::kYes);
      if (found) {
        at = found->record.end();
        found->by_search = searched_;
        scan_.containers.push_back(std::move(*found));
        continue;
      }
      // Containers follow each other up to `at`, so a header of a newer format is a real header.
      if (found.error().code() == ErrorCode::kUnsupported) return std::move(found).error();
      // If a distant store does not answer, the containers are not lost.
      if (found.error().code() == ErrorCode::kUnavailable) return std::move(found).error();
      VARVE_TRY_ASSIGN(const auto length, length_at(at));
      auto next = length ? std::min(at + *length, size_) : size_;
      if (!length) {
        VARVE_TRY_ASSIGN(next, resume_after(at));
        searched_ = true;
        if (next < size_) scan_.searched.push_back({path_, next, size_ - next});
        if (take_ == FoundBySearch::kLeave) next = size_;
      }
      scan_.unread.push_back({path_, at, next - at});
      at = next;
    }
    return {};
  }

 private:
  enum class Correct : bool { kNo, kYes };

  // Returns the bytes of a fixed header, which may be damaged. `how` selects the correction of one
  // wrong byte. Errors: kCorrupt if the file ends before the header's end.
  Result<std::vector<std::byte>> read_fixed_header(std::uint64_t offset, Correct how) {
    std::vector<std::byte> bytes(format::kContainerFixedHeaderBytes);
    VARVE_TRY_ASSIGN(const auto got, file_.read_at(offset, bytes));
    if (got != bytes.size()) {
      return Error(ErrorCode::kCorrupt, path_ + ": the file ends before a complete header");
    }
    const auto length = format::container_length(bytes);
    const bool is_damaged = !length && length.error().code() == ErrorCode::kCorrupt;
    if (is_damaged && how == Correct::kYes) (void)format::correct_fixed_header(bytes);
    return bytes;
  }

  // Returns the container at `offset`. Errors: kCorrupt unless the container is complete and
  // belongs to the scanned file.
  Result<FoundContainer> read(std::uint64_t offset, Correct how) {
    const auto none = [this](const char* what) {
      return Error(ErrorCode::kCorrupt, path_ + ": " + what);
    };
    VARVE_TRY_ASSIGN(auto bytes, read_fixed_header(offset, how));
    auto measured = format::container_header_length(bytes, keys_);
    if (!measured) return std::move(measured).error().with_context(path_);
    const auto length = *measured;
    const auto rest_at = bytes.size();
    bytes.resize(length);
    const auto rest = std::span(bytes).subspan(rest_at);
    VARVE_TRY_ASSIGN(const auto rest_got, file_.read_at(offset + rest_at, rest));
    if (rest_got != rest.size()) return none("the file ends inside a header");
    scan_.bytes_read += length;
    VARVE_TRY_ASSIGN(const auto header, format::decode_container_header(bytes, keys_));
    const bool compact = is_volume(segment_);
    if (header.store != store_id_ || header.chunks.empty() || header.compact != compact) {
      return none("the container belongs to another series or kind of file");
    }
    FoundContainer found;
    found.record = format::ContainerRecord::of(header, segment_, offset);
    put_runs(header, found);
    found.marks = header.marks;
    const bool foreign = std::ranges::any_of(
        found.runs, [this](const auto& run) { return !may_hold(store_id_, run.first); });
    if (foreign || !may_hold(store_id_, header.number)) {
      return none("a container of the pool and one of a series are mixed up");
    }
    return found;
  }

  // Returns the length of a container that must start at `offset`, if the fixed header can be read
  // or corrected.
  Result<std::optional<std::uint32_t>> length_at(std::uint64_t offset) {
    const auto bytes = read_fixed_header(offset, Correct::kYes);
    if (!bytes && bytes.error().code() != ErrorCode::kCorrupt) return bytes.error();
    if (!bytes) return std::optional<std::uint32_t>();
    const auto length = format::container_length(*bytes);
    return length ? std::optional(*length) : std::nullopt;
  }

  // Returns whether containers follow each other from `offset` to the end of the file.
  bool leads_to_the_end(std::uint64_t offset) {
    while (offset < size_) {
      // Walks from each place only once. Otherwise a forged file could make the scan quadratic.
      if (!walked_.insert(offset).second) return false;
      const auto found = read(offset, Correct::kNo);
      if (!found) return false;
      offset = found->record.end();
    }
    return offset == size_;
  }

  // Returns the place at which the scan continues after an invalid header; the file's end if no
  // place is found.
  Result<std::uint64_t> resume_after(std::uint64_t damaged) {
    const std::uint64_t step = is_volume(segment_) ? 1 : format::kContainerAlignment;
    const std::uint32_t magic = format::kContainerMagic;
    std::vector<std::byte> bytes;
    for (std::uint64_t at = damaged + step; at < size_;) {
      bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kSearchBytes, size_ - at)));
      const auto read = file_.read_at(at, bytes);
      if (!read && read.error().code() == ErrorCode::kCorrupt) {
        at += bytes.size();  // An object lost by the store.
        continue;
      }
      if (!read) return read.error();
      const auto got = *read;
      scan_.bytes_read += got;
      if (got < format::kContainerFixedHeaderBytes) break;
      const std::size_t last = got - format::kContainerFixedHeaderBytes;
      for (std::size_t i = 0; i <= last; i += step) {
        if (std::memcmp(bytes.data() + i, &magic, sizeof magic) != 0) continue;
        const auto header = std::span(bytes).subspan(i, format::kContainerFixedHeaderBytes);
        if (format::container_length(header) && leads_to_the_end(at + i)) return at + i;
      }
      at += (last / step + 1) * step;
    }
    return size_;
  }

  store::OpenSegment& file_;
  const format::ContainerKeys* const keys_;
  const std::string path_;
  const SegmentNumber segment_;
  const StoreId store_id_;
  const FoundBySearch take_;
  ContainerScan& scan_;
  std::uint64_t size_ = 0;
  bool searched_ = false;           // The place is behind damage.
  std::set<std::uint64_t> walked_;  // Places from which containers do not reach the end.
};

}  // namespace

Result<ContainerScan> scan_files(store::SegmentStore& store, const format::ContainerKeys* keys,
                                 StoreId store_id, const std::vector<SegmentNumber>& names,
                                 FoundBySearch found,
                                 const std::function<void(std::uint64_t)>& progress) {
  ContainerScan scan;
  for (const auto segment : names) {
    scan.next_segment = std::max(scan.next_segment, number_after(without_kind(segment)));
    VARVE_TRY_ASSIGN(const auto file, store.open(segment, store::ReadMode::kCached));
    FileScan one(*file, keys, store.describe(segment), segment, store_id, found, scan);
    VARVE_TRY(one.run());
    VARVE_TRY_ASSIGN(const auto bytes, file->size());
    if (progress) progress(bytes);
  }
  return scan;
}

Result<ContainerScan> scan_containers(store::SegmentStore& store, const format::ContainerKeys* keys,
                                      StoreId store_id, FoundBySearch found,
                                      const std::function<void(std::uint64_t)>& progress) {
  std::vector<SegmentNumber> segments;
  for (const auto kind : {store::StoredKind::kSegments, store::StoredKind::kVolumes}) {
    VARVE_TRY_ASSIGN(auto names, store.list(kind));
    std::sort(names.begin(), names.end());
    for (const auto& name : names) segments.push_back(std::get<SegmentNumber>(name));
  }
  return scan_files(store, keys, store_id, segments, found, progress);
}

base::IdRuns chunks_in(const ContainerScan& scan) {
  std::vector<base::IdRun> runs;
  for (const auto& found : scan.containers) {
    for (const auto& run : found.runs) runs.push_back({run.first, run.count});
  }
  return base::IdRuns::from(std::move(runs));
}

void drop_repeated_numbers(ContainerScan& scan, const store::SegmentStore& store) {
  std::set<ContainerNumber> numbers;
  std::vector<FoundContainer> kept;
  for (auto& one : scan.containers) {
    if (numbers.insert(one.record.number).second) {
      kept.push_back(std::move(one));
    } else {
      scan.repeated.push_back({store.describe(one.record.segment), std::move(one)});
    }
  }
  scan.containers = std::move(kept);
}

}  // namespace varve::maintain
