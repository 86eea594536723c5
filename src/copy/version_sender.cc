// SPDX-License-Identifier: Apache-2.0
#include "copy/version_sender.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "copy/change_lister.h"

namespace varve::copy {
namespace {

constexpr std::size_t kBatchBytes = 4U << 20;
constexpr std::size_t kBatchChanges = 1024;
constexpr std::size_t kInFlightMax = 2;  // Batches whose answer may be on the way.
constexpr std::size_t kRunBytes = 1U << 20;
constexpr std::size_t kDifferencesShown = 20;

/// Returns the approximate memory of a change, data included.
std::size_t weight_of(const Change& change) {
  std::size_t bytes = sizeof(Change) + change.name.size() + change.target.size();
  for (const Xattr& xattr : change.xattrs) {
    bytes += sizeof(Xattr) + xattr.name.size() + xattr.value.size();
  }
  for (const ChunkRef& chunk : change.chunks) bytes += sizeof(ChunkRef) + chunk.bytes;
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

// Moves are sent only once a change follows that is new to the target.
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

/// Notes whether a listing failed because of the source, not because a change could not be passed
/// on.
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
    // The target can continue from the last batch, if the batch is complete.
    while (!in_flight_.empty()) VARVE_TRY(complete_oldest());
    VARVE_TRY(target_.settle());
    return Error(ErrorCode::kInterrupted, "interrupted");
  }
  return {};
}

Result<void> VersionSender::complete_oldest() {
  VARVE_TRY_ASSIGN(const auto answered, target_.wanted());
  const ChangeBatch batch = std::move(in_flight_.front());
  in_flight_.pop_front();
  std::vector<WantedData> wanted;
  std::size_t number = 0;
  for (const Change& change : batch.changes) {
    std::uint64_t offset = change.offset;
    for (const ChunkRef& chunk : change.chunks) {
      if (number == answered.size()) break;
      if (answered[number++]) wanted.push_back({&change, &chunk, offset, {}});
      offset += chunk.bytes;
    }
  }
  if (number != answered.size()) {
    return Error(ErrorCode::kCorrupt, "the target answered about another batch");
  }
  // A whole version is read in tree order, by a session with prefetch.
  if (before_ != nullptr) read_pieces(wanted);
  for (std::size_t i = 0; i < wanted.size();) {
    std::size_t end = i + 1;
    std::size_t bytes = wanted[i].chunk->bytes;
    while (end < wanted.size() && wanted[end].follows(wanted[end - 1]) && bytes < kRunBytes) {
      bytes += wanted[end++].chunk->bytes;
    }
    if (wanted[i].bytes.empty()) VARVE_TRY(read_run(std::span(wanted).subspan(i, end - i), bytes));
    i = end;
  }
  std::vector<std::string> chunks;
  for (WantedData& one : wanted) {
    counts_.sent_bytes += one.bytes.size();
    chunks.push_back(std::move(one.bytes));
  }
  return target_.fill(std::move(chunks));
}

/// Reads chunks in the order of the disk. Leaves a chunk empty if the chunk, or a chunk of the same
/// run, cannot be read in disk order.
void VersionSender::read_pieces(std::span<WantedData> wanted) {
  std::vector<StoredPiece> pieces;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    wanted[i].bytes.resize(wanted[i].chunk->bytes);
    pieces.push_back(wanted[i].chunk->piece);
    pieces.back().offset = 0;
    pieces.back().file = static_cast<std::uint32_t>(i);
  }
  std::ranges::sort(pieces, lies_before);
  std::vector<bool> unread(wanted.size());
  now_.read_pieces(pieces, [&](const StoredPiece& piece, std::uint64_t offset, std::size_t bytes,
                               const std::byte* data) {
    if (data == nullptr) {
      unread[piece.file] = true;
    } else {
      std::memcpy(wanted[piece.file].bytes.data() + offset, data, bytes);
    }
    return true;
  });
  // A run is read again as a whole.
  for (std::size_t i = 1; i < wanted.size(); ++i) {
    if (unread[i - 1] && wanted[i].follows(wanted[i - 1])) unread[i] = true;
  }
  for (std::size_t i = wanted.size(); i-- > 1;) {
    if (unread[i] && wanted[i].follows(wanted[i - 1])) unread[i - 1] = true;
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (unread[i]) wanted[i].bytes.clear();
  }
}

/// Reads consecutive chunks of a file, `bytes` in total.
Result<void> VersionSender::read_run(std::span<WantedData> run, std::size_t bytes) {
  const Rank rank = run.front().change->rank;
  std::string all(bytes, '\0');
  auto got = [&]() -> Result<std::size_t> {
    if (left_out_.contains(rank)) return std::size_t{0};
    if (rank_ != rank) {
      rank_.reset();
      VARVE_TRY_ASSIGN(file_, now_.open(rank));
      rank_ = rank;
    }
    return file_->read(run.front().offset, std::as_writable_bytes(std::span(all)));
  }();
  if (!got && is_damage(got.error())) {
    VARVE_TRY_ASSIGN(const std::string path, path_of(now_, rank));
    if (!leave_out(path, got.error())) return std::move(got).error().with_context(path);
    left_out_.insert(rank);
  } else if (!got) {
    source_gone_ = is_gone(got.error());
    return std::move(got).error();
  }
  if (left_out_.contains(rank)) return {};
  if (*got != bytes) {
    return Error(ErrorCode::kCorrupt, run.front().change->name + " is shorter than its recipe");
  }
  std::size_t at = 0;
  for (WantedData& one : run) {
    one.bytes = all.substr(at, one.chunk->bytes);
    at += one.chunk->bytes;
  }
  return {};
}

// Lists the changes again, so neither side has to remember the changes.
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
