// SPDX-License-Identifier: Apache-2.0
#include "maintain/check_record.h"

#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <map>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "store/repository_paths.h"

namespace varve {

namespace {

constexpr std::array<std::string_view, 3> kDepthNames{"structure", "data", "chunks"};

}  // namespace

std::string_view name_of(CheckDepth depth) {
  return kDepthNames[static_cast<std::size_t>(depth) - 1];
}

}  // namespace varve

namespace varve::maintain {

namespace {

constexpr const char* kRecordName = "checked";
constexpr std::size_t kCheckRecordBytesMax = std::size_t{1} << 20;
constexpr const char* kLostKey = "lost";
constexpr std::uint64_t kOrdinalsEnd = std::uint64_t{1} << 32;
constexpr const char* kCheckRecordHead =
    "# When checks ended (Unix seconds), and damages that they found.\n";

// Returns nullopt if no chunk can have the ids.
std::optional<base::IdRun> run_of(const std::string& first, std::uint64_t count) {
  base::IdRun run;
  const char* const end = first.data() + first.size();
  const auto [stop, error] = std::from_chars(first.data(), end, run.first.value, 16);
  const std::uint64_t ordinal = run.first.value % kOrdinalsEnd;
  if (error != std::errc() || stop != end || count == 0) return std::nullopt;
  if (count >= kOrdinalsEnd || ordinal + count > kOrdinalsEnd) return std::nullopt;
  run.count = static_cast<std::uint32_t>(count);
  return run;
}

// Decodes the words behind the key of a line about damaged chunks. Returns false for malformed
// words.
bool take_lost(std::istringstream& words, std::map<StoreId, std::vector<base::IdRun>>& lost) {
  std::string equals;
  std::uint32_t store = 0;
  std::string first;
  std::uint64_t count = 0;
  words >> equals >> store >> first >> count;
  const auto run = words ? run_of(first, count) : std::nullopt;
  if (run) lost[static_cast<StoreId>(store)].push_back(*run);
  return run.has_value();
}

// Returns an empty record if the file is missing. Errors: kCorrupt for a damaged file; the errors
// of reading.
Result<RecordOfChecks> load_record(io::FileSystem& files, const std::string& repository_path) {
  const auto path = repository_path + "/" + kRecordName;
  const auto text = files.read_file(path, kCheckRecordBytesMax);
  if (text) {
    if (auto record = decode_check_record(*text)) return *std::move(record);
    return Error(ErrorCode::kCorrupt, path + " is damaged");
  }
  const auto code = text.error().code();
  if (code == ErrorCode::kNotFound) return RecordOfChecks();
  if (code == ErrorCode::kTooLarge) return Error(ErrorCode::kCorrupt, path + " is damaged");
  return text.error();
}

bool is_damaged(const Result<RecordOfChecks>& record) {
  return !record && record.error().code() == ErrorCode::kCorrupt;
}

// Returns nullopt for a damaged file. A file that cannot be read counts as missing.
std::optional<RecordOfChecks> read_record(io::FileSystem& files,
                                          const std::string& repository_path) {
  auto record = load_record(files, repository_path);
  if (record) return *std::move(record);
  return is_damaged(record) ? std::nullopt : std::optional(RecordOfChecks());
}

// The record in place of a damaged file: the damage found by an earlier check may still exist.
RecordOfChecks record_after_damage() { return {{{CheckDepth::kStructure, 0, 1}}, {}}; }

Result<void> write_record(io::FileSystem& files, const std::string& repository_path,
                          const RecordOfChecks& record) {
  return files.write_file_atomically(repository_path, kRecordName,
                                     base::as_bytes(encode_check_record(record)));
}

/// Held while a process reads and replaces the record: several readers may find damage at once. The
/// lock is a flock of the superblock, which every repository has. Each user with the right to read
/// the superblock can hold the lock. So the wait is short, and the work goes on without the lock.
class RecordLock {
 public:
  RecordLock(io::FileSystem& files, const std::string& repository_path) {
    auto file =
        files.descriptor(store::RepositoryPaths(repository_path).superblock(), io::OpenMode::kRead);
    if (!file) return;  // The folder of a replica, or files in memory.
    file_ = std::move(*file);
    for (int tries = 0; tries < kLockTries && ::flock(file_.get(), LOCK_EX | LOCK_NB) != 0;
         ++tries) {
      std::this_thread::sleep_for(kLockPause);
    }
  }
  /// Returns whether another user owns the repository.
  [[nodiscard]] bool is_foreign() const {
    struct stat status {};
    return file_.valid() && ::fstat(file_.get(), &status) == 0 && status.st_uid != ::geteuid();
  }

 private:
  static constexpr int kLockTries = 200;
  static constexpr std::chrono::milliseconds kLockPause{5};

  base::UniqueFd file_;
};

}  // namespace

std::string encode_check_record(const RecordOfChecks& record) {
  std::string text = kCheckRecordHead;
  for (const EarlierCheck& check : record.checks) {
    text += fmt::format("{} = {} {}\n", name_of(check.depth), check.ended_at, check.damages);
  }
  std::size_t runs = 0;
  for (const auto& [store, chunks] : record.lost) {
    for (const auto& run : chunks.runs()) {
      if (++runs > kRecordedRunsMax) break;
      text += fmt::format("{} = {} {:016x} {}\n", kLostKey, store, run.first.value, run.count);
    }
  }
  return text + fmt::format("checksum = {:016x}\n", base::checksum64(base::as_bytes(text)));
}

std::optional<RecordOfChecks> decode_check_record(const std::string& text) {
  RecordOfChecks record;
  std::map<StoreId, std::vector<base::IdRun>> lost;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == kLostKey) {
      if (!take_lost(words, lost)) return std::nullopt;
      continue;
    }
    std::string equals;
    EarlierCheck check;
    words >> equals >> check.ended_at >> check.damages;
    const auto* const name = std::ranges::find(kDepthNames, key);
    if (!words || name == kDepthNames.end()) continue;
    check.depth = static_cast<CheckDepth>(name - kDepthNames.begin() + 1);
    if (!record.checks.empty() && record.checks.back().depth >= check.depth) return std::nullopt;
    record.checks.push_back(check);
  }
  for (auto& [store, runs] : lost) record.lost[store] = base::IdRuns::from(std::move(runs));
  if (encode_check_record(record) != text) return std::nullopt;
  return record;
}

std::string encode_earlier_checks(const std::vector<EarlierCheck>& checks) {
  return encode_check_record({checks, {}});
}

std::vector<EarlierCheck> decode_earlier_checks(const std::string& text) {
  auto record = decode_check_record(text);
  return record ? std::move(record->checks) : std::vector<EarlierCheck>();
}

std::vector<EarlierCheck> read_earlier_checks(io::FileSystem& files,
                                              const std::string& repository_path) {
  return read_record(files, repository_path).value_or(record_after_damage()).checks;
}

LostChunks read_lost_chunks(io::FileSystem& files, const std::string& repository_path) {
  auto record = read_record(files, repository_path);
  return record ? std::move(record->lost) : LostChunks();
}

Result<LostChunks> find_lost_chunks(io::FileSystem& files, const std::string& repository_path) {
  VARVE_TRY_ASSIGN(auto record, load_record(files, repository_path));
  return std::move(record.lost);
}

Result<void> record_lost_chunks(io::FileSystem& files, const std::string& repository_path,
                                const LostChunks& found) {
  const RecordLock lock(files, repository_path);
  if (lock.is_foreign()) {
    return Error(ErrorCode::kNotPermitted, repository_path + " belongs to another user");
  }
  auto record = load_record(files, repository_path);
  if (is_damaged(record)) record = record_after_damage();
  if (!record) return std::move(record).error();
  const auto before = record->lost;
  for (const auto& [store, chunks] : found) record->lost[store] = record->lost[store].unite(chunks);
  if (record->lost == before) return {};
  return write_record(files, repository_path, *record);
}

void forget_lost_chunks(io::FileSystem& files, const std::string& repository_path,
                        const LostChunks& taken) {
  const RecordLock lock(files, repository_path);
  auto record = read_record(files, repository_path);
  if (!record) return;  // The next check replaces the record.
  const auto before = record->lost;
  for (const auto& [store, chunks] : taken) {
    const auto named = record->lost.find(store);
    if (named == record->lost.end()) continue;
    named->second = named->second.subtract(chunks);
    if (named->second.size() == 0) record->lost.erase(named);
  }
  if (record->lost == before) return;
  const auto written = write_record(files, repository_path, *record);
  if (!written) base::log(base::LogLevel::kInfo, written.error().message());
}

bool record_check(io::FileSystem& files, const std::string& repository_path,
                  const base::Clock& clock, const CheckEnd& end) {
  const RecordLock lock(files, repository_path);
  auto record = read_record(files, repository_path).value_or(record_after_damage());
  auto& checks = record.checks;
  std::erase_if(checks, [&](const EarlierCheck& check) { return check.depth <= end.whole; });
  const CheckDepth depth = end.damages == 0 ? end.whole : std::max(end.whole, end.reached);
  std::erase_if(checks, [&](const EarlierCheck& check) { return check.depth == depth; });
  checks.push_back({depth, clock.now().seconds, end.damages});
  std::ranges::sort(checks, {}, &EarlierCheck::depth);
  if (end.damages == 0 && end.whole >= CheckDepth::kData) record.lost.clear();
  for (const auto& [store, chunks] : end.lost) {
    if (chunks.size() != 0) record.lost[store] = record.lost[store].unite(chunks);
  }
  const auto written = write_record(files, repository_path, record);
  if (!written) {
    base::log(base::LogLevel::kInfo,
              "the result of the check is not recorded: " + written.error().message());
  }
  return written.has_value();
}

void set_recorded_damages(io::FileSystem& files, const std::string& repository_path,
                          CheckDepth depth, std::uint64_t damages) {
  const RecordLock lock(files, repository_path);
  auto record = read_record(files, repository_path);
  if (!record) return;
  const auto found = std::ranges::find(record->checks, depth, &EarlierCheck::depth);
  if (found == record->checks.end() || found->damages == damages) return;
  found->damages = damages;
  const auto written = write_record(files, repository_path, *record);
  if (!written) base::log(base::LogLevel::kInfo, written.error().message());
}

}  // namespace varve::maintain
