// SPDX-License-Identifier: Apache-2.0
#include "index/run_writer.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/coding.h"

namespace varve::index {

namespace {
constexpr std::size_t kWriteBytes = std::size_t{1} << 20;
}  // namespace

Result<std::unique_ptr<RunWriter>> RunWriter::create(const RunFolder& folder, std::uint32_t number,
                                                     std::uint64_t entries_max) {
  std::unique_ptr<RunWriter> writer(new RunWriter());
  writer->folder_ = &folder;
  writer->header_.series = folder.series;
  writer->header_.number = number;
  writer->header_.shape.buckets =
      std::max<std::uint64_t>(1, (entries_max + kBucketEntries - 1) / kBucketEntries);
  VARVE_TRY_ASSIGN(writer->file_,
                   folder.files->open(folder.path_of(number), io::OpenMode::kReadWrite));
  VARVE_TRY(writer->file_->truncate(0));
  return writer;
}

RunWriter::~RunWriter() {
  if (!file_) return;
  file_.reset();
  // The next opening removes the file otherwise.
  static_cast<void>(folder_->files->remove(folder_->path_of(header_.number)));
}

Result<void> RunWriter::flush() {
  VARVE_TRY(file_->write_at(written_, base::as_bytes(buffer_)));
  written_ += buffer_.size();
  buffer_.clear();
  return {};
}

Result<void> RunWriter::put_block(Block& block) {
  seal_block(block, next_block_++);
  buffer_ += base::as_text(block);
  return buffer_.size() < kWriteBytes ? Result<void>() : flush();
}

Result<void> RunWriter::add(const Entry& entry) {
  const auto group = RunShape::group_of(header_.shape.bucket_of(entry.tag));
  VARVE_ASSERT(group >= group_);
  while (group_ < group) VARVE_TRY(end_group());
  waiting_.push_back(entry);
  ++header_.entries;
  return {};
}

Result<void> RunWriter::end_group() {
  const RunShape& shape = header_.shape;
  const std::uint64_t end = std::min((group_ + 1) * kGroupBuckets, shape.buckets);
  std::size_t next = 0;
  for (std::uint64_t bucket = group_ * kGroupBuckets; bucket < end; ++bucket) {
    Block block{};
    std::size_t used = 0;
    for (; next < waiting_.size() && used < kBlockEntries; ++next, ++used) {
      if (shape.bucket_of(waiting_[next].tag) > bucket) break;
      put_entry(block, used, waiting_[next]);
    }
    VARVE_TRY(put_block(block));
  }
  Block filter{};
  for (std::size_t i = left_over_; i < waiting_.size(); ++i) add_to_filter(filter, waiting_[i].tag);
  VARVE_TRY(put_block(filter));
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(next));
  left_over_ = waiting_.size();
  ++group_;
  return {};
}

Result<std::unique_ptr<IndexRun>> RunWriter::finish(const base::IdRuns& covered) {
  while (group_ < header_.shape.groups()) VARVE_TRY(end_group());
  for (std::size_t next = 0; next < waiting_.size(); ++header_.shape.tail) {
    Block block{};
    for (std::size_t used = 0; next < waiting_.size() && used < kBlockEntries; ++used) {
      put_entry(block, used, waiting_[next++]);
    }
    VARVE_TRY(put_block(block));
  }
  std::string ids;
  covered.encode(ids);
  header_.id_bytes = ids.size();
  header_.id_checksum = base::checksum64(base::as_bytes(ids));
  buffer_ += ids;
  VARVE_TRY(flush());
  // The header comes last: a run without a header is unfinished.
  const Block header = encode_run_header(header_);
  VARVE_TRY(file_->write_at(0, header));
  VARVE_TRY(file_->sync());
  file_.reset();
  const RunRef ref{header_.number, header_.entries,
                   base::load_le<std::uint64_t>(header.data() + kBlockBodyBytes)};
  return IndexRun::open(*folder_, ref);
}

}  // namespace varve::index
