// SPDX-License-Identifier: Apache-2.0
#include "store/record_buckets.h"

#include <algorithm>
#include <span>
#include <utility>

#include "store/repository_names.h"

namespace varve::store {

namespace {

constexpr std::size_t kBufferRecords = 512;

std::span<const std::byte> bytes_of(const std::vector<SortRecord>& records) {
  return std::as_bytes(std::span(records));
}

}  // namespace

std::uint32_t RecordBuckets::buckets_for(std::uint64_t records) {
  const auto wanted = (records + kRecordsMax - 1) / kRecordsMax;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, 1, kBucketsMax));
}

RecordBuckets::RecordBuckets(FolderPath folder, std::uint32_t buckets, std::uint32_t first_file)
    : folder_(std::move(folder)), first_file_(first_file), buckets_(std::max(buckets, 1U)) {}

RecordBuckets::~RecordBuckets() {
  for (std::uint32_t i = 0; i < size(); ++i) {
    if (buckets_[i].file_bytes != 0) static_cast<void>(folder_.files->remove(path_of(i)));
  }
}

std::string RecordBuckets::path_of(std::uint32_t bucket) const {
  return folder_.path + "/" + sorting_name(first_file_ + bucket);
}

Result<void> RecordBuckets::add(std::uint32_t bucket, const SortRecord& record) {
  auto& buffer = buckets_[bucket].buffer;
  buffer.push_back(record);
  return size() == 1 || buffer.size() < kBufferRecords ? Result<void>() : write(bucket);
}

Result<void> RecordBuckets::write(std::uint32_t bucket) {
  auto& [buffer, end] = buckets_[bucket];
  VARVE_TRY_ASSIGN(const auto file, folder_.files->open(path_of(bucket), io::OpenMode::kReadWrite));
  if (end == 0) VARVE_TRY(file->truncate(0));
  const auto bytes = bytes_of(buffer);
  end += bytes.size();  // Also after a failure, so that the destructor removes the file.
  VARVE_TRY(file->write_at(end - bytes.size(), bytes));
  bytes_passed_ += bytes.size();
  buffer.clear();
  return {};
}

Result<std::vector<SortRecord>> RecordBuckets::take(std::uint32_t bucket) {
  auto& [buffer, end] = buckets_[bucket];
  auto records = std::exchange(buffer, {});
  if (end != 0) {
    std::vector<SortRecord> stored(end / sizeof(SortRecord));
    {
      VARVE_TRY_ASSIGN(const auto file, folder_.files->open(path_of(bucket), io::OpenMode::kRead));
      const auto bytes = std::as_writable_bytes(std::span(stored));
      VARVE_TRY_ASSIGN(const auto got, file->read_at(0, bytes));
      if (got != bytes.size()) return Error(ErrorCode::kCorrupt, "a file for sorting is short");
      bytes_passed_ += got;
    }
    records.insert(records.end(), stored.begin(), stored.end());
    VARVE_TRY(folder_.files->remove(path_of(bucket)));
    end = 0;
  }
  std::sort(records.begin(), records.end());
  return records;
}

Result<void> remove_sorting_files(const FolderPath& folder) {
  const auto names = folder.files->list(folder.path);
  if (!names && names.error().code() == ErrorCode::kNotFound) return {};
  if (!names) return names.error();
  for (const auto& name : *names) {
    const std::string_view text(name);
    const bool is_unfinished =
        text.ends_with(kTemporarySuffix) &&
        parse_alias_file_name(text.substr(0, text.size() - kTemporarySuffix.size()));
    if (!is_unfinished && !is_sorting_name(name)) continue;
    auto removed = folder.files->remove(folder.path + "/" + name);
    if (!removed && removed.error().code() != ErrorCode::kNotFound) return removed;
  }
  return {};
}

}  // namespace varve::store
