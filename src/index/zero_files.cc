// SPDX-License-Identifier: Apache-2.0
#include "index/zero_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/coding.h"
#include "base/log.h"

namespace varve::index {

namespace {

constexpr std::string_view kPrefix = "index-zero-";
constexpr std::string_view kBins = ".bins";
constexpr std::string_view kLog = ".log";
constexpr std::uint64_t kLogMagic = 0x315a455652415600;  // First bytes of the log.
constexpr std::size_t kLogHeaderBytes = 24;
constexpr std::uint32_t kBatchMagic = 0x4254425a;
constexpr std::size_t kBatchHeaderBytes = 16;
constexpr std::size_t kBatchFieldsBytes = 8;
constexpr std::size_t kRecordBytes = 24;
constexpr std::size_t kBinHeaderBytes = 16;
constexpr std::uint64_t kLogBytesMax = std::uint64_t{1} << 30;
constexpr std::uint64_t kOffsetMax = std::uint64_t{1} << 50;
constexpr std::size_t kBinBytesMax = std::size_t{64} << 20;
constexpr std::uint64_t kGarbageMin = std::uint64_t{1} << 20;
constexpr BinNumber kBinsMax = BinNumber{1} << 28;

std::string log_header(std::uint32_t parameter) {
  std::string header;
  base::ByteWriter w(header);
  w.u64(kLogMagic);
  w.u32(parameter);
  w.u32(0);
  w.u64(base::checksum64(base::as_bytes(header)));
  return header;
}

// Returns the parameter in the header of a log, or nothing for a damaged header.
std::optional<std::uint32_t> parameter_of(std::string_view log) {
  base::ByteReader r(log);
  static_cast<void>(r.u64());
  const auto parameter = r.u32();
  return r.ok() && log.starts_with(log_header(parameter)) ? std::optional(parameter) : std::nullopt;
}

std::string bin_header(BinNumber bin, std::string_view content) {
  std::string header;
  base::ByteWriter w(header);
  w.u32(bin);
  w.u32(static_cast<std::uint32_t>(content.size()));
  w.u64(base::checksum64(base::as_bytes(content)));
  return header;
}

// Returns the number of a generation from the name of a file of the generation.
std::optional<std::uint32_t> generation_of(std::string_view name, std::string_view kind) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kind)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kind.size());
  return base::parse_hex32(name);
}

bool is_own(std::string_view name) {
  return generation_of(name, kLog).has_value() || generation_of(name, kBins).has_value();
}

}  // namespace

std::string ZeroFiles::path_of(std::uint32_t generation, std::string_view kind) const {
  return fmt::format("{}/{}{:08x}{}", directory_, kPrefix, generation, kind);
}

std::vector<std::uint32_t> ZeroFiles::generations(io::FileSystem& files,
                                                  const std::string& directory) {
  std::vector<std::uint32_t> found;
  if (const auto names = files.list(directory)) {
    for (const auto& name : *names) {
      if (const auto number = generation_of(name, kLog)) found.push_back(*number);
    }
  }
  std::ranges::sort(found, std::greater());
  return found;
}

std::unique_ptr<ZeroFiles> ZeroFiles::open_present(io::FileSystem& files,
                                                   const std::string& directory) {
  for (const auto generation : generations(files, directory)) {
    const ZeroFiles any(files, directory, 0);
    const auto log = files.open(any.path_of(generation, kLog), io::OpenMode::kRead);
    std::string header(kLogHeaderBytes, '\0');
    if (!log || !(*log)->read_at(0, std::as_writable_bytes(std::span(header)))) continue;
    if (const auto parameter = parameter_of(header)) return open(files, directory, *parameter);
  }
  return nullptr;
}

std::unique_ptr<ZeroFiles> ZeroFiles::open(io::FileSystem& files, const std::string& directory,
                                           std::uint32_t parameter) {
  std::unique_ptr<ZeroFiles> all(new ZeroFiles(files, directory, parameter));
  const auto found = generations(files, directory);
  for (const auto generation : found) {
    all->generation_ = generation;
    const auto loaded = all->load(generation);
    if (loaded) {
      all->remove_others();
      return all;
    }
    const bool is_damaged = loaded.error().code() != ErrorCode::kStale;
    base::log(is_damaged ? base::LogLevel::kWarning : base::LogLevel::kInfo,
              loaded.error().message() + "; this part of the index is left out");
  }
  all->generation_ = found.empty() ? 1 : found.front() + 1;
  all->table_ = {};
  all->told_ = {};
  all->complete_below_ = {};
  return all;
}

void ZeroFiles::remove_all(io::FileSystem& files, const std::string& directory) {
  const auto names = files.list(directory);
  if (!names) return;
  for (const auto& name : *names) {
    if (is_own(name)) static_cast<void>(files.remove(directory + "/" + name));
  }
}

void ZeroFiles::remove_others() const {
  const auto names = files_.list(directory_);
  if (!names) return;
  for (const auto& name : *names) {
    const bool is_present =
        generation_of(name, kLog) == generation_ || generation_of(name, kBins) == generation_;
    if (is_own(name) && !is_present) {
      static_cast<void>(files_.remove(directory_ + "/" + name));
    }
  }
}

Result<void> ZeroFiles::create(std::uint32_t generation) {
  VARVE_TRY_ASSIGN(auto bins, files_.open(path_of(generation, kBins), io::OpenMode::kReadWrite));
  VARVE_TRY(bins->truncate(0));
  VARVE_TRY_ASSIGN(auto log, files_.open(path_of(generation, kLog), io::OpenMode::kReadWrite));
  VARVE_TRY(log->truncate(0));
  // Both or neither: without a file, the next call tries again.
  bins_ = std::move(bins);
  log_ = std::move(log);
  bins_end_ = 0;
  log_end_ = 0;
  return {};
}

Result<void> ZeroFiles::load(std::uint32_t generation) {
  const auto path = path_of(generation, kLog);
  VARVE_TRY_ASSIGN(auto log_file, files_.open(path, io::OpenMode::kReadWrite));
  VARVE_TRY_ASSIGN(const auto log, read_log(*log_file, path));
  if (const auto parameter = parameter_of(log); parameter != parameter_) {
    return Error(ErrorCode::kStale, path + ": it has another N");
  }
  take_batches(*log_file, log);
  if (log_end_ != log.size()) {
    base::log(base::LogLevel::kInfo, path + ": its end is left out");
  }
  VARVE_TRY_ASSIGN(auto bins_file,
                   files_.open(path_of(generation, kBins), io::OpenMode::kReadWrite));
  VARVE_TRY_ASSIGN(const std::uint64_t bins_bytes, bins_file->size());
  // Drops bins that no batch names, so that a write behind the end need not read any of them.
  if (bins_bytes > bins_end_) VARVE_TRY(bins_file->truncate(bins_end_));
  bins_end_ = bins_file->next_append(bins_end_);
  bins_ = std::move(bins_file);
  log_ = std::move(log_file);
  return {};
}

Result<std::string> ZeroFiles::read_log(io::File& file, const std::string& path) {
  VARVE_TRY_ASSIGN(const std::uint64_t bytes, file.size());
  if (bytes > kLogBytesMax) return Error(ErrorCode::kTooLarge, path + ": it is too large");
  VARVE_TRY_ASSIGN(auto log, io::read_despite_damage(file, 0, bytes));
  if (!parameter_of(log)) return Error(ErrorCode::kCorrupt, path + ": its header is damaged");
  return log;
}

void ZeroFiles::take_batches(io::File& file, std::string_view log) {
  table_ = {};
  told_ = {};
  complete_below_ = {};
  bins_end_ = 0;
  log_end_ = kLogHeaderBytes;
  for (std::size_t at = file.next_append(log_end_); take_batch(log, at);
       at = file.next_append(log_end_)) {
    log_end_ = at;
  }
}

// A crash leaves a damaged end, but no sound batch behind the damage.
bool ZeroFiles::has_damaged_batch(io::File& file, std::string_view log) const {
  const auto unit = file.append_unit();
  for (std::size_t at = file.next_append(log_end_) + unit; at < log.size(); at += unit) {
    base::ByteReader header(log.substr(at));
    if (header.u32() != kBatchMagic) continue;
    const auto size = header.u32();
    const auto checksum = header.u64();
    if (!header.ok() || size > header.left()) continue;
    const auto body = log.substr(at + kBatchHeaderBytes, size);
    if (base::checksum64(base::as_bytes(body)) == checksum) return true;
  }
  return false;
}

// Adds the faults of a generation. Returns whether the generation is the valid generation.
Result<bool> ZeroFiles::look_at(std::uint32_t generation, std::vector<IndexFault>& faults) {
  const auto log_path = path_of(generation, kLog);
  VARVE_TRY_ASSIGN(const auto log_file, files_.open(log_path, io::OpenMode::kRead));
  VARVE_TRY_ASSIGN(const auto log_bytes, log_file->size());
  if (log_bytes == 0) return false;  // A writer has just created the log.
  const auto log = read_log(*log_file, log_path);
  if (!log) {
    faults.push_back({log_path, log.error()});
    return false;
  }
  take_batches(*log_file, *log);
  if (has_damaged_batch(*log_file, *log)) {
    faults.push_back({log_path, {ErrorCode::kCorrupt, log_path + ": a batch is damaged"}});
  }
  generation_ = generation;
  VARVE_TRY_ASSIGN(bins_, files_.open(path_of(generation, kBins), io::OpenMode::kRead));
  for (BinNumber bin = 0; bin < table_.size(); ++bin) {
    const auto content = read(bin);
    if (content) continue;
    faults.push_back({path_of(generation, kBins), content.error(), log_path});
    break;
  }
  return true;
}

// Takes the batch at a place of the log. Returns false for a missing or damaged batch.
bool ZeroFiles::take_batch(std::string_view log, std::size_t& at) {
  if (at > log.size()) return false;
  base::ByteReader header(log.substr(at));
  const auto magic = header.u32();
  const auto size = header.u32();
  const auto checksum = header.u64();
  if (!header.ok() || magic != kBatchMagic || size > header.left()) return false;
  const auto body = log.substr(at + kBatchHeaderBytes, size);
  if (base::checksum64(base::as_bytes(body)) != checksum) return false;
  base::ByteReader r(body);
  const VersionNumber complete_below{r.u32()};
  const auto records = r.u32();
  if (!r.ok() || records > r.left() / kRecordBytes) return false;
  auto told = base::IdRuns::decode(body.substr(kBatchFieldsBytes + records * kRecordBytes));
  if (!told) return false;
  // All records are checked before the first record counts: a batch is taken whole or not at all.
  std::vector<std::pair<BinNumber, BinPlace>> taken;
  std::vector<std::uint64_t> new_hooks;
  taken.reserve(records);
  for (std::uint32_t i = 0; i < records; ++i) {
    const auto bin = r.u32();
    BinPlace place;
    place.bytes = r.u32();
    place.hook = r.u64();
    place.offset = r.u64();
    if (bin > table_.size() + new_hooks.size() || bin >= kBinsMax) return false;
    if (place.bytes > kBinBytesMax || place.offset > kOffsetMax) return false;
    if (bin == table_.size() + new_hooks.size()) new_hooks.push_back(place.hook);
    const auto hook = bin < table_.size() ? table_[bin].hook : new_hooks[bin - table_.size()];
    if (hook != place.hook) return false;
    taken.emplace_back(bin, place);
  }
  for (const auto hook : new_hooks) table_.add(hook);
  for (const auto& [bin, place] : taken) {
    table_.put(bin, place.offset, place.bytes);
    bins_end_ = std::max(bins_end_, place.offset + kBinHeaderBytes + place.bytes);
  }
  told_ = told_.unite(*told);
  complete_below_ = complete_below;
  at += kBatchHeaderBytes + size;
  return true;
}

std::string ZeroFiles::encode_batch(const base::IdRuns& told, VersionNumber complete_below) const {
  std::string body;
  base::ByteWriter w(body);
  w.u32(static_cast<std::uint32_t>(complete_below));
  w.u32(static_cast<std::uint32_t>(changed_.size()));
  for (const auto bin : changed_) {
    const BinPlace& place = table_[bin];
    w.u32(bin);
    w.u32(place.bytes);
    w.u64(place.hook);
    w.u64(place.offset);
  }
  told.encode(body);
  std::string batch;
  base::ByteWriter header(batch);
  header.u32(kBatchMagic);
  header.u32(static_cast<std::uint32_t>(body.size()));
  header.u64(base::checksum64(base::as_bytes(body)));
  return batch + body;
}

BinNumber ZeroFiles::add(std::uint64_t hook) {
  const auto bin = table_.add(hook);
  changed_.push_back(bin);  // A batch names every new bin, so that numbers have no gap.
  return bin;
}

Result<std::string> ZeroFiles::read(BinNumber bin) {
  const BinPlace& place = table_[bin];
  if (place.bytes == 0) return std::string();
  std::string bytes(kBinHeaderBytes + place.bytes, '\0');
  VARVE_TRY_ASSIGN(const auto got,
                   bins_->read_at(place.offset, std::as_writable_bytes(std::span(bytes))));
  bytes_read_ += got;
  auto content = bytes.substr(kBinHeaderBytes);
  if (got != bytes.size() || !bytes.starts_with(bin_header(bin, content))) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: bin {} is damaged", path_of(generation_, kBins), bin));
  }
  return content;
}

Result<void> ZeroFiles::write(BinNumber bin, std::string_view content) {
  if (content.size() > kBinBytesMax) return Error(ErrorCode::kTooLarge, "a bin is too large");
  if (!bins_) VARVE_TRY(create(generation_));
  const auto bytes = bin_header(bin, content).append(content);
  VARVE_TRY(bins_->write_at(bins_end_, base::as_bytes(bytes)));
  bytes_written_ += bytes.size();
  table_.put(bin, bins_end_, static_cast<std::uint32_t>(content.size()));
  bins_end_ += bytes.size();
  changed_.push_back(bin);
  return {};
}

Result<void> ZeroFiles::commit(const base::IdRuns& told, VersionNumber complete_below) {
  if (!bins_) VARVE_TRY(create(generation_));
  std::ranges::sort(changed_);
  changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
  const bool is_new = log_end_ == 0;
  std::string bytes;
  if (is_new) {
    bytes = log_header(parameter_);
    bytes.resize(log_->next_append(bytes.size()));
  }
  bytes += encode_batch(told, complete_below);
  // Neither file has bytes of this commit in a unit with synced bytes.
  VARVE_TRY(bins_->sync());
  VARVE_TRY(log_->truncate(log_end_));  // Drops the end of a failed commit.
  const auto at = log_->next_append(log_end_);
  VARVE_TRY(log_->write_at(at, base::as_bytes(bytes)));
  VARVE_TRY(log_->sync());
  if (is_new) VARVE_TRY(files_.sync_directory(directory_));
  log_end_ = at + bytes.size();
  bins_end_ = bins_->next_append(bins_end_);
  bytes_written_ += bytes.size();
  changed_.clear();
  told_ = told_.unite(told);
  complete_below_ = complete_below;
  if (is_new) remove_others();
  return {};
}

bool ZeroFiles::wants_compaction() const {
  const auto live = table_.live_bytes() + table_.size() * (kBinHeaderBytes + kRecordBytes);
  return bins_end_ + log_end_ > 2 * live + kGarbageMin;
}

Result<void> ZeroFiles::compact(const base::IdRuns& told,
                                const std::function<std::string(std::string)>& change) {
  ZeroFiles fresh(files_, directory_, parameter_);
  fresh.generation_ = generation_ + 1;
  for (BinNumber bin = 0; bin < table_.size(); ++bin) {
    fresh.add(table_[bin].hook);
    auto content = read(bin);
    // A damaged bin is left out.
    VARVE_TRY(fresh.write(bin, content ? change(std::move(*content)) : std::string()));
  }
  VARVE_TRY(fresh.commit(told, complete_below_));
  generation_ = fresh.generation_;
  bins_ = std::move(fresh.bins_);
  log_ = std::move(fresh.log_);
  bins_end_ = fresh.bins_end_;
  log_end_ = fresh.log_end_;
  table_ = std::move(fresh.table_);
  told_ = std::move(fresh.told_);
  changed_.clear();
  bytes_written_ += fresh.bytes_written_;
  return {};
}

std::size_t ZeroFiles::memory_bytes() const {
  return table_.memory_bytes() + changed_.capacity() * sizeof(BinNumber) +
         told_.runs().capacity() * sizeof(base::IdRun);
}

}  // namespace varve::index
