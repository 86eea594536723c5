// SPDX-License-Identifier: Apache-2.0
#include "replica/distant_data.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <utility>

namespace varve::replica {

namespace {

constexpr std::uint64_t kRunBytesMax = std::uint64_t{8} << 20;  // Bytes of one request.

}  // namespace

// A range of an object, and its place in the output of a read.
struct DistantData::Piece {
  std::size_t read = 0;
  std::string object;
  std::uint64_t object_bytes = 0;
  std::uint64_t offset = 0;
  std::span<std::byte> out;
};

// Blocks of an object that one request reads.
struct DistantData::Run {
  std::string object;
  std::uint64_t offset = 0;
  std::vector<std::byte> bytes;
  std::vector<Piece> pieces;
};

namespace {

std::size_t block_length(std::uint64_t object_bytes, std::uint64_t block) {
  return static_cast<std::size_t>(
      std::min(kCacheBlockBytes, object_bytes - block * kCacheBlockBytes));
}

}  // namespace

// Copies the part of a piece that lies in bytes of its object that begin at `offset`.
void DistantData::copy_common(const Piece& piece, std::uint64_t offset,
                              std::span<const std::byte> bytes) {
  const auto begin = std::max(piece.offset, offset);
  const auto end = std::min(piece.offset + piece.out.size(), offset + bytes.size());
  if (begin >= end) return;
  std::memcpy(piece.out.data() + (begin - piece.offset), bytes.data() + (begin - offset),
              static_cast<std::size_t>(end - begin));
}

std::vector<DistantData::Piece> DistantData::pieces_of(std::size_t read,
                                                       const std::vector<Extent>& extents,
                                                       std::uint64_t offset,
                                                       std::span<std::byte> out) {
  std::vector<Piece> pieces;
  std::uint64_t start = 0;
  for (const auto& extent : extents) {
    const auto begin = std::max(offset, start);
    const auto end = std::min(offset + out.size(), start + extent.bytes);
    if (begin < end) {
      pieces.push_back({read, extent.object, extent.object_bytes, begin - start,
                        out.subspan(static_cast<std::size_t>(begin - offset),
                                    static_cast<std::size_t>(end - begin))});
    }
    start += extent.bytes;
  }
  return pieces;
}

struct DistantData::Batch {
  struct Read {
    std::size_t bytes = 0;
    std::size_t missing = 0;  // Runs that it still needs.
    std::optional<Error> error;
  };
  DistantCompletion done;
  std::vector<Run> runs;
  std::mutex mutex;  // Guards the reads.
  std::vector<Read> reads;
};

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

Result<std::uint64_t> DistantData::tree_bytes(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY(load(false));
  std::uint64_t bytes = 0;
  const auto prefix = folder.empty() ? folder : folder + "/";
  for (auto at = map_.lower_bound(prefix); at != map_.end() && at->first.starts_with(prefix);
       ++at) {
    bytes += bytes_of(*at->second);
  }
  return bytes;
}

Result<std::size_t> DistantData::read(const Extents& file, std::uint64_t offset,
                                      std::span<std::byte> out) {
  struct Waiting {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Result<std::size_t>> result;
  };
  const auto waiting = std::make_shared<Waiting>();
  read_many({{file, offset, out}}, [waiting](std::size_t, Result<std::size_t> got) {
    const std::lock_guard lock(waiting->mutex);
    waiting->result = std::move(got);
    waiting->changed.notify_all();
  });
  std::unique_lock lock(waiting->mutex);
  waiting->changed.wait(lock, [&] { return waiting->result.has_value(); });
  return *waiting->result;
}

void DistantData::read_many(std::vector<DistantRead> reads, const DistantCompletion& done) {
  auto batch = std::make_shared<Batch>();
  batch->done = done;
  batch->reads.resize(reads.size());
  std::vector<Piece> pieces;
  std::map<std::string, std::set<std::uint64_t>> missing;  // Blocks by object.
  std::map<std::string, std::uint64_t> lengths;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const auto& read = reads[i];
    const auto end = bytes_of(*read.file);
    const auto length =
        read.offset >= end ? 0 : std::min<std::uint64_t>(read.out.size(), end - read.offset);
    batch->reads[i].bytes = static_cast<std::size_t>(length);
    for (auto& piece :
         pieces_of(i, *read.file, read.offset, read.out.first(static_cast<std::size_t>(length)))) {
      lengths[piece.object] = piece.object_bytes;
      const auto last = (piece.offset + piece.out.size() - 1) / kCacheBlockBytes;
      bool lacks = false;
      for (auto block = piece.offset / kCacheBlockBytes; block <= last; ++block) {
        auto& lacking = missing[piece.object];
        if (!lacking.contains(block)) {
          const auto cached =
              cache_.find(piece.object, block, block_length(piece.object_bytes, block));
          if (cached) {
            copy_common(piece, block * kCacheBlockBytes,
                        std::as_bytes(std::span(cached->data(), cached->size())));
            continue;
          }
          lacking.insert(block);
        }
        lacks = true;
      }
      if (lacks) pieces.push_back(std::move(piece));
    }
  }
  for (const auto& [object, blocks] : missing) {
    for (auto at = blocks.begin(); at != blocks.end();) {
      const auto first = *at;
      auto bytes = static_cast<std::uint64_t>(block_length(lengths[object], *at));
      for (++at; at != blocks.end() && bytes < kRunBytesMax &&
                 *at * kCacheBlockBytes == first * kCacheBlockBytes + bytes;
           ++at) {
        bytes += block_length(lengths[object], *at);
      }
      Run run{object, first * kCacheBlockBytes, std::vector<std::byte>(bytes), {}};
      for (const auto& piece : pieces) {
        const bool meets = piece.object == object && piece.offset < run.offset + bytes &&
                           run.offset < piece.offset + piece.out.size();
        if (!meets) continue;
        run.pieces.push_back(piece);
        ++batch->reads[piece.read].missing;
      }
      batch->runs.push_back(std::move(run));
    }
  }
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (batch->reads[i].missing == 0) done(i, batch->reads[i].bytes);
  }
  if (batch->runs.empty()) return;
  std::vector<bucket::ObjectRead> requests;
  for (auto& run : batch->runs) requests.push_back({run.object, run.offset, run.bytes});
  bucket_.read_many(std::move(requests), [this, batch](std::size_t at, Result<std::size_t> got) {
    auto& run = batch->runs[at];
    if (got && *got != run.bytes.size()) {
      got = Error(ErrorCode::kCorrupt, run.object + " in the object store is too short");
    }
    if (got) {
      for (const auto& piece : run.pieces) copy_common(piece, run.offset, run.bytes);
      for (std::uint64_t from = 0; from < run.bytes.size(); from += kCacheBlockBytes) {
        cache_.add(run.object, (run.offset + from) / kCacheBlockBytes,
                   std::span(run.bytes).subspan(
                       from, std::min<std::uint64_t>(kCacheBlockBytes, run.bytes.size() - from)));
      }
    }
    for (const auto& piece : run.pieces) {
      std::optional<Result<std::size_t>> ended;
      {
        const std::lock_guard lock(batch->mutex);
        auto& read = batch->reads[piece.read];
        if (!got && !read.error) read.error = got.error();
        if (--read.missing == 0) {
          ended = read.error ? Result<std::size_t>(*read.error) : Result<std::size_t>(read.bytes);
        }
      }
      if (ended) batch->done(piece.read, *std::move(ended));
    }
    std::vector<std::byte>().swap(run.bytes);
  });
}

}  // namespace varve::replica
