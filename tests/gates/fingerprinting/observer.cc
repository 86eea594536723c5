// SPDX-License-Identifier: Apache-2.0
#include "fingerprinting/observer.h"

#include <fcntl.h>
#include <lmdb.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace varve::fingerprinting {
namespace {

namespace fs = std::filesystem;

struct Watched {
  std::mutex mutex;
  std::string folder;  // Empty while nothing is watched.
  std::vector<ReadRange> ranges;
};

Watched& watched() {
  static Watched one;
  return one;
}

void note_read(int fd, std::uint64_t offset, std::uint64_t bytes) {
  Watched& watch = watched();
  const std::lock_guard lock(watch.mutex);
  if (watch.folder.empty() || bytes == 0) return;
  std::array<char, 4096> path{};
  const auto link = "/proc/self/fd/" + std::to_string(fd);
  const auto length = ::readlink(link.c_str(), path.data(), path.size());
  if (length <= 0) return;
  const std::string_view name(path.data(), static_cast<std::size_t>(length));
  if (!name.starts_with(watch.folder)) return;
  watch.ranges.push_back({std::string(name.substr(watch.folder.size())), offset, bytes});
}

void require(int code) {
  if (code != MDB_SUCCESS) throw std::runtime_error(mdb_strerror(code));
}

std::string hex(const MDB_val& value) {
  std::string out;
  for (std::size_t i = 0; i < value.mv_size; ++i) {
    const auto byte = static_cast<const unsigned char*>(value.mv_data)[i];
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

/// Calls `visit` with each record of a table, or of the list of tables without a name.
template <typename Visit>
void for_each_record(MDB_txn* txn, const char* table, Visit&& visit) {
  MDB_dbi dbi = 0;
  require(mdb_dbi_open(txn, table, 0, &dbi));
  MDB_cursor* cursor = nullptr;
  require(mdb_cursor_open(txn, dbi, &cursor));
  MDB_val key{};
  MDB_val value{};
  while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == MDB_SUCCESS) visit(key, value);
  mdb_cursor_close(cursor);
}

}  // namespace

ReadWatch::ReadWatch(std::string folder) {
  const std::lock_guard lock(watched().mutex);
  watched().folder = fs::canonical(folder).string() + "/";
  watched().ranges.clear();
}

ReadWatch::~ReadWatch() {
  const std::lock_guard lock(watched().mutex);
  watched().folder.clear();
}

std::vector<ReadRange> ReadWatch::ranges() const {
  const std::lock_guard lock(watched().mutex);
  auto ranges = watched().ranges;
  std::ranges::sort(ranges);
  return ranges;
}

void add_listing(const std::string& folder, const std::string& stage, Observation& seen) {
  std::vector<std::pair<fs::file_time_type, std::string>> times;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const auto name = fs::relative(entry.path(), folder).string();
    seen[stage + " size " + name] = static_cast<double>(entry.file_size());
    times.emplace_back(entry.last_write_time(), name);
  }
  std::ranges::sort(times);
  for (std::size_t i = 0; i < times.size(); ++i) {
    seen[stage + " order " + times[i].second] = static_cast<double>(i);
  }
}

void add_reads(const std::vector<ReadRange>& ranges, Observation& seen) {
  double bytes = 0;
  std::map<std::string, int> of_file;
  for (const auto& range : ranges) {
    const auto name = "read " + range.path + " " + std::to_string(of_file[range.path]++);
    seen[name + " offset"] = static_cast<double>(range.offset);
    seen[name + " bytes"] = static_cast<double>(range.bytes);
    bytes += static_cast<double>(range.bytes);
  }
  seen["reads"] = static_cast<double>(ranges.size());
  seen["read bytes"] = bytes;
}

void add_catalog(const std::string& folder, Observation& seen) {
  MDB_env* env = nullptr;
  require(mdb_env_create(&env));
  require(mdb_env_set_maxdbs(env, 64));
  require(mdb_env_open(env, (folder + "/catalog").c_str(), MDB_RDONLY | MDB_NOLOCK, 0));
  MDB_txn* txn = nullptr;
  require(mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn));
  std::vector<std::string> tables;
  for_each_record(txn, nullptr, [&](const MDB_val& key, const MDB_val&) {
    tables.emplace_back(static_cast<const char*>(key.mv_data), key.mv_size);
  });
  for (const auto& table : tables) {
    double records = 0;
    double bytes = 0;
    for_each_record(txn, table.c_str(), [&](const MDB_val& key, const MDB_val& value) {
      // Names in keys are hashes: another one in each repository.
      const auto name = table == "names" ? std::to_string(records) : hex(key);
      seen["value " + table + " " + name] = static_cast<double>(value.mv_size);
      records += 1;
      bytes += static_cast<double>(value.mv_size);
    });
    seen["records " + table] = records;
    seen["bytes " + table] = bytes;
  }
  mdb_txn_abort(txn);
  mdb_env_close(env);
}

}  // namespace varve::fingerprinting

// The linker takes these for the calls of Varve's code.
extern "C" ssize_t pread(int fd, void* out, size_t bytes, off_t offset) {
  varve::fingerprinting::note_read(fd, static_cast<std::uint64_t>(offset), bytes);
  return ::syscall(SYS_pread64, fd, out, bytes, offset);
}
extern "C" int posix_fadvise(int fd, off_t offset, off_t bytes, int advice) {
  if (advice == POSIX_FADV_WILLNEED) {
    varve::fingerprinting::note_read(fd, static_cast<std::uint64_t>(offset),
                                     static_cast<std::uint64_t>(bytes));
  }
  return ::syscall(SYS_fadvise64, fd, offset, bytes, advice) == 0 ? 0 : errno;
}
