// SPDX-License-Identifier: Apache-2.0
#include "copy/version_sender.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "copy/change_lister.h"

namespace varve::copy {
namespace {

constexpr std::size_t kBatchBytes = 4U << 20;
constexpr std::size_t kBatchChanges = 1024;
constexpr std::size_t kInFlightMax = 2;  // Batches whose answer may be on the way.
constexpr std::size_t kRunBytes = 1U << 20;
constexpr std::size_t kDifferencesShown = 20;
constexpr std::size_t kChangeOverhead = 64;

/// Returns the approximate memory of a change, with its data.
std::size_t weight_of(const Change& change) {
  std::size_t bytes = kChangeOverhead + change.name.size() + change.target.size();
  for (const Xattr& xattr : change.xattrs) bytes += xattr.name.size() + xattr.value.size();
  for (const ChunkRef& chunk : change.chunks) bytes += chunk.bytes;
  return bytes;
}

/// Follows the moves between directories, to tell the path of a change.
class Place {
 public:
  void move(const Change& change) {
    if (change.kind == ChangeKind::kEnter) names_.push_back(change.name);
    if (change.kind == ChangeKind::kLeave && !names_.empty()) names_.pop_back();
  }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] std::string path(const std::string& name) const {
    std::string path;
    for (const std::string& one : names_) path += one + "/";
    return path + (name.empty() ? "." : name);
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace

Result<void> VersionSender::send(const CopyBegin& begin) {
  VARVE_TRY_ASSIGN(const std::uint64_t durable, target_.begin(begin));
  VARVE_TRY(send_changes(durable));
  VARVE_TRY(target_.settle());
  std::vector<std::string> differences;
  VARVE_TRY(compare(begin.series, std::nullopt, differences));
  if (differences.empty()) return {};
  return Error(ErrorCode::kCorrupt,
               fmt::format("the copy differs from the source at {}; nothing was sealed. Check "
                           "both with `varve check --read-data`, and copy again",
                           fmt::join(differences, "; ")));
}

// Moves are sent only once a change follows that the target does not have yet.
Result<void> VersionSender::send_changes(std::uint64_t skipped) {
  std::uint64_t number = 0;
  bool is_sending = false;
  Place place;
  ChangeLister lister(
      now_, before_, left_out_,
      [&](Change&& change) -> Result<void> {
        if (!change.counts() && !is_sending) {
          place.move(change);
          return {};
        }
        if (change.counts() && number++ < skipped) return {};
        if (!is_sending) {
          is_sending = true;
          for (const std::string& name : place.names()) {
            Change enter;
            enter.kind = ChangeKind::kEnter;
            enter.name = name;
            VARVE_TRY(passed(add(std::move(enter))));
          }
        }
        return passed(add(std::move(change)));
      },
      [&](const std::string& path, const Error& error) { return leave_out(path, error); });
  VARVE_TRY(listed(lister.run()));
  VARVE_TRY(complete_all());  // May leave out files.
  VARVE_TRY(listed(lister.pass_left_out()));
  return complete_all();
}

Result<void> VersionSender::complete_all() {
  VARVE_TRY(offer());
  while (!in_flight_.empty()) VARVE_TRY(complete_oldest());
  return {};
}

bool VersionSender::leave_out(const std::string& path, const Error& error) {
  source_damaged_ = true;
  if (options_.incomplete) problems_.push_back(path + ": left out: " + error.message());
  return options_.incomplete;
}

Result<void> VersionSender::passed(Result<void> on) {
  if (!on) has_failed_ = true;
  return on;
}

/// Notes whether a listing failed because of the source, not because of what was done with it.
Result<void> VersionSender::listed(Result<void> all) {
  if (!all && !has_failed_) {
    source_damaged_ = is_damage(all.error());
    source_gone_ = is_gone(all.error());
  }
  return all;
}

Result<void> VersionSender::add(Change&& change) {
  if (change.counts()) ++counts_.changes;
  const std::size_t weight = weight_of(change);
  if (batch_bytes_ + weight > kBatchBytes) VARVE_TRY(offer());
  batch_bytes_ += weight;
  batch_.changes.push_back(std::move(change));
  return batch_.changes.size() >= kBatchChanges ? offer() : Result<void>();
}

Result<void> VersionSender::offer() {
  if (batch_.changes.empty()) return {};
  const std::uint64_t bytes = data_bytes(batch_);
  counts_.data_bytes += bytes;
  VARVE_TRY(target_.offer(batch_));
  in_flight_.push_back(std::exchange(batch_, {}));
  batch_bytes_ = 0;
  if (in_flight_.size() >= kInFlightMax) VARVE_TRY(complete_oldest());
  if (options_.progress && !options_.progress(bytes)) {
    // The target can continue from the last batch, if that is complete.
    while (!in_flight_.empty()) VARVE_TRY(complete_oldest());
    VARVE_TRY(target_.settle());
    return Error(ErrorCode::kInterrupted, "interrupted");
  }
  return {};
}

Result<void> VersionSender::complete_oldest() {
  VARVE_TRY_ASSIGN(const auto wanted, target_.wanted());
  const ChangeBatch batch = std::move(in_flight_.front());
  in_flight_.pop_front();
  std::vector<std::string> chunks;
  std::size_t first = 0;
  for (const Change& change : batch.changes) {
    if (wanted.size() - first < change.chunks.size()) {
      return Error(ErrorCode::kCorrupt, "the target answered about another batch");
    }
    VARVE_TRY(read_wanted(change, wanted, first, chunks));
    first += change.chunks.size();
  }
  for (const std::string& chunk : chunks) counts_.sent_bytes += chunk.size();
  return target_.fill(std::move(chunks));
}

/// Reads the wanted chunks of a change. `first` is the change's first chunk in `wanted`.
Result<void> VersionSender::read_wanted(const Change& change, const std::vector<bool>& wanted,
                                        std::size_t first, std::vector<std::string>& chunks) {
  std::uint64_t offset = change.offset;
  for (std::size_t i = 0; i < change.chunks.size();) {
    const std::uint64_t begin = offset;
    std::size_t end = i;
    while (end < change.chunks.size() && wanted[first + end] && offset - begin < kRunBytes) {
      offset += change.chunks[end++].bytes;
    }
    if (end == i) {
      offset += change.chunks[i++].bytes;
      continue;
    }
    VARVE_TRY(read_run(change, begin, i, end, chunks));
    i = end;
  }
  return {};
}

Result<void> VersionSender::read_run(const Change& change, std::uint64_t offset,
                                     std::size_t first_chunk, std::size_t end_chunk,
                                     std::vector<std::string>& chunks) {
  std::size_t bytes = 0;
  for (std::size_t i = first_chunk; i < end_chunk; ++i) bytes += change.chunks[i].bytes;
  std::string run(bytes, '\0');
  auto got = [&]() -> Result<std::size_t> {
    if (left_out_.contains(change.rank)) return std::size_t{0};
    if (rank_ != change.rank) {
      rank_.reset();
      VARVE_TRY_ASSIGN(file_, now_.open(change.rank));
      rank_ = change.rank;
    }
    return file_->read(offset, std::as_writable_bytes(std::span(run)));
  }();
  const bool is_unreadable = !got && is_damage(got.error());
  if (is_unreadable) {
    VARVE_TRY_ASSIGN(const std::string path, path_of(now_, change.rank));
    if (!leave_out(path, got.error())) return std::move(got).error().with_context(path);
    left_out_.insert(change.rank);
  } else if (!got) {
    source_gone_ = is_gone(got.error());
    return std::move(got).error();
  }
  const bool is_lost = left_out_.contains(change.rank);
  if (!is_lost && *got != bytes) {
    return Error(ErrorCode::kCorrupt, change.name + " is shorter than its recipe");
  }
  std::size_t at = 0;
  for (std::size_t i = first_chunk; i < end_chunk; ++i) {
    chunks.push_back(is_lost ? std::string() : run.substr(at, change.chunks[i].bytes));
    at += change.chunks[i].bytes;
  }
  return {};
}

// Lists the changes again, so that neither side has to remember them.
Result<void> VersionSender::compare(SeriesId series, std::optional<VersionNumber> sealed,
                                    std::vector<std::string>& differences) {
  bool first = true;
  Place place;
  const auto flush = [&]() -> Result<void> {
    if (batch_.changes.empty()) return {};
    const std::uint64_t bytes = data_bytes(batch_);
    VARVE_TRY_ASSIGN(const auto found, target_.check(series, sealed, first, batch_));
    first = false;
    std::size_t next = 0;
    for (std::size_t i = 0; i < batch_.changes.size(); ++i) {
      place.move(batch_.changes[i]);
      while (next < found.size() && found[next].change <= i) {
        if (differences.size() < kDifferencesShown) {
          differences.push_back(place.path(batch_.changes[i].name) + ": " + found[next].reason);
        }
        ++next;
      }
    }
    batch_ = {};
    batch_bytes_ = 0;
    if (options_.progress && !options_.progress(bytes)) {
      return Error(ErrorCode::kInterrupted, "interrupted");
    }
    return {};
  };
  ChangeLister lister(
      now_, before_, left_out_,
      [&](Change&& change) -> Result<void> {
        const std::size_t weight = weight_of(change);
        if (batch_bytes_ + weight > kBatchBytes || batch_.changes.size() >= kBatchChanges) {
          VARVE_TRY(passed(flush()));
        }
        batch_bytes_ += weight;
        batch_.changes.push_back(std::move(change));
        return {};
      },
      [&](const std::string& path, const Error& error) { return leave_out(path, error); });
  VARVE_TRY(listed(lister.run()));
  VARVE_TRY(listed(lister.pass_left_out()));
  return flush();
}

Result<void> VersionSender::check_sealed(SeriesId series, VersionNumber number,
                                         std::vector<std::string>& problems) {
  return compare(series, number, problems);
}

}  // namespace varve::copy
