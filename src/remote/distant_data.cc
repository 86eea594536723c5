// SPDX-License-Identifier: Apache-2.0
#include "remote/distant_data.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

namespace varve::remote {

namespace {

// Calls `visit` for each part of a range stored in one object, with the part's offset in the range.
template <typename Visit>
void for_each_part(const std::vector<Extent>& extents, std::uint64_t offset, std::uint64_t bytes,
                   const Visit& visit) {
  std::uint64_t start = 0;
  for (const auto& extent : extents) {
    const auto begin = std::max(offset, start);
    const auto end = std::min(offset + bytes, start + extent.bytes);
    if (begin < end) {
      visit(ObjectRange{extent.object, extent.object_bytes, begin - start, end - begin},
            begin - offset);
    }
    start += extent.bytes;
  }
}

// Returns the length of the part of a range that lies within a file.
std::uint64_t length_in(const Extents& file, std::uint64_t offset, std::uint64_t bytes) {
  const auto end = bytes_of(*file);
  return offset >= end ? 0 : std::min(bytes, end - offset);
}

// The reads of one batch; each read may have several ranges.
struct Batch {
  struct Read {
    std::size_t bytes = 0;
    std::size_t left = 0;  // Ranges still to be read.
    std::optional<Error> error{};
  };
  DistantCompletion done;
  std::vector<std::size_t> read_of;  // The read of each range.
  std::mutex mutex;                  // Guards the reads.
  std::vector<Read> reads;

  void end(std::size_t range, const std::optional<Error>& error) {
    const auto at = read_of[range];
    std::optional<Result<std::size_t>> ended;
    {
      const std::lock_guard lock(mutex);
      auto& read = reads[at];
      if (error && !read.error) read.error = error;
      if (--read.left != 0) return;
      ended = read.error ? Result<std::size_t>(*read.error) : Result<std::size_t>(read.bytes);
    }
    done(at, *std::move(ended));
  }
};

}  // namespace

Result<void> DistantData::load(bool again) {
  if (loaded_ && !again) return {};
  VARVE_TRY_ASSIGN(auto map, load_());
  for (auto at = map_.begin(); at != map_.end();) {
    at = map.contains(at->first) ? std::next(at) : map_.erase(at);
  }
  for (auto& [path, extents] : map) {
    map_[path] = std::make_shared<const std::vector<Extent>>(std::move(extents));
  }
  loaded_ = true;
  return {};
}

Result<Extents> DistantData::find(const std::string& path) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY(load(false));
  auto found = map_.find(path);
  if (found == map_.end()) {
    VARVE_TRY(load(true));
    found = map_.find(path);
  }
  if (found != map_.end()) return found->second;
  return Error(ErrorCode::kNotFound, path + " is not in the object store");
}

Extents DistantData::known(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto found = map_.find(path);
  return found == map_.end() ? Extents() : found->second;
}

Result<void> DistantData::reload() {
  const std::lock_guard lock(mutex_);
  return load(true);
}

Result<std::vector<std::string>> DistantData::list(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY(load(true));
  std::vector<std::string> names;
  const auto prefix = folder + "/";
  for (auto at = map_.lower_bound(prefix); at != map_.end() && at->first.starts_with(prefix);
       ++at) {
    auto name = at->first.substr(prefix.size());
    if (name.find('/') == std::string::npos) names.push_back(std::move(name));
  }
  return names;
}

Result<std::size_t> DistantData::read(const Extents& file, std::uint64_t offset,
                                      std::span<std::byte> out) {
  struct Waiting {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Result<std::size_t>> result;
  };
  const auto waiting = std::make_shared<Waiting>();
  const auto ended = [waiting](std::size_t, Result<std::size_t> got) {
    const std::lock_guard lock(waiting->mutex);
    waiting->result = std::move(got);
    waiting->changed.notify_all();
  };
  read_many({{file, offset, out}}, ended, true);  // A planned read comes in a batch.
  std::unique_lock lock(waiting->mutex);
  waiting->changed.wait(lock, [&] { return waiting->result.has_value(); });
  return *waiting->result;
}

void DistantData::read_many(std::vector<DistantRead> reads, const DistantCompletion& done) {
  read_many(std::move(reads), done, false);
}

void DistantData::read_many(std::vector<DistantRead> reads, const DistantCompletion& done,
                            bool is_random) {
  const auto batch = std::make_shared<Batch>();
  batch->done = done;
  batch->reads.resize(reads.size());
  std::vector<RangeToRead> ranges;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const auto& read = reads[i];
    const auto length = length_in(read.file, read.offset, read.out.size());
    batch->reads[i].bytes = static_cast<std::size_t>(length);
    for_each_part(*read.file, read.offset, length, [&](ObjectRange range, std::uint64_t at) {
      const auto out =
          read.out.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(range.bytes));
      // A part of a read's bytes cannot be lent.
      auto* const lent = range.bytes == length ? read.lent : nullptr;
      ranges.push_back({std::move(range), out, lent});
      batch->read_of.push_back(i);
      ++batch->reads[i].left;
    });
  }
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (batch->reads[i].left == 0) done(i, batch->reads[i].bytes);
  }
  if (ranges.empty()) return;
  const auto ended = [batch](std::size_t range, const std::optional<Error>& error) {
    batch->end(range, error);
  };
  if (is_random) {
    cells_.read_at_random(std::move(ranges), ended);
  } else {
    cells_.read(std::move(ranges), ended);
  }
}

void DistantData::will_read(const Extents& file, std::uint64_t offset, std::uint64_t bytes) {
  for_each_part(*file, offset, length_in(file, offset, bytes),
                [this](const ObjectRange& range, std::uint64_t) { cells_.will_read(range); });
}

void DistantData::drop(const Extents& file, std::uint64_t offset, std::uint64_t bytes) {
  for_each_part(*file, offset, length_in(file, offset, bytes),
                [this](const ObjectRange& range, std::uint64_t) { cells_.drop(range); });
}

}  // namespace varve::remote
