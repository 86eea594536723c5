// SPDX-License-Identifier: Apache-2.0
#include "transfer/scatter_pass.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/file_limit.h"

namespace varve::transfer {
namespace {

constexpr std::size_t kFilesMin = 4;

/// Returns the number of files allowed by the limit on open files. A file of a batch needs a
/// descriptor and at most one descriptor of a directory. A link waiting for a file needs the same.
std::size_t files_by_descriptors() {
  return base::descriptors_for(kDescriptorShare, kFilesMin, ScatterPass::kFilesMax);
}

}  // namespace

ScatterPass::ScatterPass(VersionReader& version, FileRestorer& data, FileRestorer::Advance advance,
                         std::size_t pieces_max)
    : version_(version),
      data_(data),
      advance_(std::move(advance)),
      pieces_max_(std::max<std::size_t>(pieces_max, 1)),
      files_max_(files_by_descriptors()) {}

Result<void> ScatterPass::add(std::shared_ptr<FileTask> task, FileReader& source, Rank rank) {
  files_.push_back({std::move(task), rank, 0, false, {}});
  std::size_t first_piece = pieces_.size();
  std::uint64_t run_until = 0;  // End of the file's data passed on by read_batch().
  std::uint64_t located_until = 0;
  while (true) {
    bool has_more = false;
    const auto located = version_.locate_data(rank, located_until, [&](const StoredPiece& piece) {
      has_more = pieces_.size() >= pieces_max_;
      if (has_more) return false;
      pieces_.push_back(piece);
      pieces_.back().file = static_cast<std::uint32_t>(files_.size() - 1);
      files_.back().left += piece.bytes;
      located_until = piece.offset + piece.bytes;
      return true;
    });
    if (!located) {
      // The version cannot locate the file's data, so the rest is read in the ordinary way.
      File file = std::move(files_.back());
      files_.pop_back();
      pieces_.resize(first_piece);
      VARVE_TRY_ASSIGN(UnreadableData lost, data_.copy(source, *file.task, run_until));
      file.task->finish(lost);
      return {};
    }
    if (!has_more) break;
    VARVE_TRY(read_batch());
    first_piece = 0;
    run_until = located_until;
  }
  File& file = files_.back();
  file.is_collected = true;
  if (file.left > 0) return {};
  auto completed = complete(file);
  files_.pop_back();
  return completed;
}

Result<void> ScatterPass::run() {
  VARVE_TRY(read_batch());
  files_.clear();
  return {};
}

/// Reads all pieces and drops the pieces' files. Only the last file stays, because the file may
/// have more pieces.
Result<void> ScatterPass::read_batch() {
  std::ranges::sort(pieces_, lies_before);
  Result<void> outcome;
  version_.read_pieces(pieces_, [&](const StoredPiece& piece, std::uint64_t offset,
                                    std::size_t bytes, const std::byte* data) {
    outcome = take(piece, offset, bytes, data);
    return outcome.has_value();
  });
  pieces_.clear();
  VARVE_TRY(outcome);
  if (files_.size() > 1) files_.erase(files_.begin(), files_.end() - 1);
  return {};
}

Result<void> ScatterPass::take(const StoredPiece& piece, std::uint64_t offset, std::size_t bytes,
                               const std::byte* data) {
  File& file = files_[piece.file];
  if (data == nullptr) {
    file.unread.push_back({offset, offset + bytes});
  } else {
    const auto own = std::make_shared_for_overwrite<std::byte[]>(bytes);
    std::memcpy(own.get(), data, bytes);
    VARVE_TRY(file.task->put({offset, offset + bytes}, {own, {own.get(), bytes}}));
    if (!advance_(bytes)) return Error(ErrorCode::kInterrupted, "interrupted");
  }
  file.left -= std::min<std::uint64_t>(file.left, bytes);
  if (file.left == 0 && file.is_collected) return complete(file);
  // The next piece of the file may come much later.
  file.task->release_held();
  return {};
}

Result<void> ScatterPass::complete(File& file) {
  const auto task = std::exchange(file.task, nullptr);
  UnreadableData lost;
  if (!file.unread.empty()) {
    std::ranges::sort(file.unread, {}, &ByteRange::begin);
    auto source = version_.open(file.rank);
    if (!source) {
      task->fail(source.error());
      return {};
    }
    VARVE_TRY_ASSIGN(lost, data_.copy_ranges(**source, *task, file.unread));
    file.unread = {};
  }
  task->finish(lost);
  return {};
}

}  // namespace varve::transfer
