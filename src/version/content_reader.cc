// SPDX-License-Identifier: Apache-2.0
#include "version/content_reader.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/assert.h"
#include "format/container.h"

namespace varve::version {

namespace {

// For recipes of up to kMemoryChunksMax chunks, a read searches memory before the disk.
constexpr std::uint64_t kMemoryChunksMax = 64;

class NoFuture final : public restore::FutureFiles {
 public:
  Result<std::optional<restore::FileContent>> next() override {
    return std::optional<restore::FileContent>();
  }
};

}  // namespace

std::optional<std::size_t> ContentReader::read_from_memory(const format::Recipe& recipe,
                                                           std::uint64_t offset,
                                                           std::span<std::byte> out) {
  std::uint64_t chunks = 0;
  for (const auto& run : recipe.runs) chunks += run.count;
  if (chunks > kMemoryChunksMax) return std::nullopt;
  std::uint64_t at = 0;
  std::size_t done = 0;
  const auto copy = [&](const std::byte* from, std::uint64_t bytes) {
    const std::uint64_t begin = std::max(at, offset);
    const std::uint64_t end = std::min<std::uint64_t>(at + bytes, offset + out.size());
    if (begin < end) {
      auto* to = out.data() + (begin - offset);
      if (from == nullptr) {
        std::memset(to, 0, end - begin);
      } else {
        std::memcpy(to, from + (begin - at), end - begin);
      }
      done = static_cast<std::size_t>(end - offset);
    }
    at += bytes;
  };
  for (const auto& run : recipe.runs) {
    if (run.is_hole()) {
      copy(nullptr, run.bytes);
      continue;
    }
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const auto bytes = layout_.read_unwritten(run.first.plus(i));
      if (!bytes) return std::nullopt;
      copy(bytes->data(), bytes->size());
    }
  }
  return done;
}

// The chunks of one birth are written in ascending order of ids: if the newest chunk of each birth
// has a location, all chunks have a location. Older births of the series' own store are written
// already. An unneeded flush would make many small containers.
Result<void> ContentReader::locate_all(const format::Recipe& recipe) {
  ChunkId newest;
  std::map<VersionNumber, ChunkId> newest_in_pool;
  for (const auto& run : recipe.runs) {
    if (run.is_hole()) continue;
    auto& last = is_pool(run.first) ? newest_in_pool[run.first.birth()] : newest;
    last = std::max(last, run.first.plus(run.count - 1));
  }
  bool all = newest == ChunkId{} || layout_.locate(newest);
  for (const auto& [birth, last] : newest_in_pool) all = all && layout_.locate(last);
  return all ? Result<void>() : layout_.flush();
}

Result<std::size_t> ContentReader::read(const std::shared_ptr<const format::Recipe>& recipe,
                                        std::uint64_t offset, std::span<std::byte> out) {
  OpenRecipe open(recipe);
  return read(open, offset, out);
}

Result<std::shared_ptr<restore::ReadHandle>> ContentReader::open(
    std::shared_ptr<const format::Recipe> recipe) {
  restore::ReadableFile file;
  file.version_key = version_key_;
  file.content.ordinal = last_ordinal_ += kOrdinalDistance;
  file.content.recipe = std::move(recipe);
  file.source = &layout_;
  file.future = [] { return std::make_unique<NoFuture>(); };
  VARVE_TRY_ASSIGN(auto handle, service_.open(std::move(file)));
  return std::shared_ptr<restore::ReadHandle>(std::move(handle));
}

// The layout writes containers in ascending order of chunk ids, so the unwritten chunks are at the
// end of the run.
Result<void> ContentReader::read_run_apart(const format::RecipeRun& run, std::uint64_t offset,
                                           std::span<std::byte> out) {
  auto written = std::make_shared<format::Recipe>();
  written->runs.push_back(run);
  auto& front = written->runs.front();
  while (front.count != 0) {
    const auto bytes = layout_.read_unwritten(front.first.plus(front.count - 1));
    if (!bytes) break;
    --front.count;
    front.bytes -= bytes->size();
    const std::uint64_t begin = std::max(front.bytes, offset);
    const std::uint64_t end =
        std::min<std::uint64_t>(front.bytes + bytes->size(), offset + out.size());
    if (begin < end) {
      std::memcpy(out.data() + (begin - offset), bytes->data() + (begin - front.bytes),
                  end - begin);
    }
  }
  if (offset >= front.bytes) return {};
  const std::uint64_t end = std::min<std::uint64_t>(front.bytes, offset + out.size());
  VARVE_TRY_ASSIGN(const auto handle, open(written));
  VARVE_TRY_ASSIGN(const std::size_t got, handle->read(offset, out.first(end - offset)));
  if (got != end - offset) return Error(ErrorCode::kCorrupt, "a file ends before its size");
  return {};
}

// Reads each chunk from memory or from the disk. Unlike the usual read, read_apart() writes nothing
// and so works on a full disk.
Result<std::size_t> ContentReader::read_apart(const format::Recipe& recipe, std::uint64_t offset,
                                              std::span<std::byte> out) {
  std::uint64_t at = 0;
  std::size_t done = 0;
  for (const auto& run : recipe.runs) {
    const std::uint64_t begin = std::max(at, offset);
    const std::uint64_t end = std::min<std::uint64_t>(at + run.bytes, offset + out.size());
    if (begin < end) {
      const auto part = out.subspan(begin - offset, end - begin);
      if (run.is_hole()) {
        std::memset(part.data(), 0, part.size());
      } else {
        VARVE_TRY(read_run_apart(run, begin - at, part));
      }
      done = static_cast<std::size_t>(end - offset);
    }
    at += run.bytes;
  }
  return done;
}

Result<std::size_t> ContentReader::read(OpenRecipe& recipe, std::uint64_t offset,
                                        std::span<std::byte> out) {
  auto handle = recipe.handle();
  if (handle) return handle->read(offset, out);
  if (const auto got = read_from_memory(recipe.recipe(), offset, out)) return *got;
  // Accepted data stays readable while the disk is full.
  if (auto located = locate_all(recipe.recipe()); !located) {
    auto got = read_apart(recipe.recipe(), offset, out);
    if (!got) return std::move(located).error();
    return got;
  }
  VARVE_TRY_ASSIGN(handle, open(recipe.shared()));
  auto got = handle->read(offset, out);
  recipe.keep_handle(std::move(handle));
  return got;
}

Result<RecipeChunk> ContentReader::chunk_at(OpenRecipe& recipe, std::uint64_t offset) {
  const auto place = recipe.find(offset);
  const auto& run = recipe.recipe().runs[place.run];
  VARVE_TRY(locate_all({{run}}));
  VARVE_TRY_ASSIGN(const auto part, recipe.locate(layout_, place));
  VARVE_TRY_ASSIGN(const auto header, layout_.header(part.container));
  RecipeChunk chunk;
  chunk.run = place.run;
  chunk.offset = offset - place.run_offset + part.offset;
  for (std::uint32_t i = 0; i < part.count; ++i) {
    const std::size_t at = part.index + std::size_t{i};
    chunk.index = part.chunk + i;
    if (at >= header->chunks.size() || header->chunks[at].id != part.stored.plus(i)) break;
    chunk.bytes = header->chunks[at].raw_bytes;
    if (offset < chunk.offset + chunk.bytes) return chunk;
    chunk.offset += chunk.bytes;
  }
  return Error(ErrorCode::kCorrupt, "a container does not hold the chunks that it should");
}

Result<std::vector<std::byte>> ContentReader::chunk(ChunkId id) {
  if (auto bytes = layout_.read_unwritten(id)) return std::move(*bytes);
  VARVE_TRY_ASSIGN(const std::uint32_t length, chunk_bytes(id));
  auto recipe = std::make_shared<format::Recipe>();
  recipe->append_chunk(id, length);
  std::vector<std::byte> bytes(length);
  VARVE_TRY_ASSIGN(const std::size_t got, read(recipe, 0, bytes));
  bytes.resize(got);
  return bytes;
}

Result<std::uint32_t> ContentReader::chunk_bytes(ChunkId id) {
  if (const auto bytes = layout_.read_unwritten(id)) {
    return static_cast<std::uint32_t>(bytes->size());
  }
  VARVE_TRY_ASSIGN(const auto where, layout_.locate(id));
  VARVE_TRY_ASSIGN(const auto header, layout_.header(where.container));
  const std::uint64_t index = where.index + (id.value - where.first.value);
  const ChunkId stored = where.stored.plus(id.value - where.first.value);
  if (index >= header->chunks.size() || header->chunks[index].id != stored) {
    return Error(ErrorCode::kCorrupt, "a container does not hold the chunk that it should");
  }
  return header->chunks[index].raw_bytes;
}

Result<std::vector<std::byte>> ContentReader::cut(format::Recipe& recipe, std::uint64_t bytes) {
  format::Recipe kept;
  std::uint64_t at = 0;
  for (const auto& run : recipe.runs) {
    if (at + run.bytes <= bytes) {
      kept.runs.push_back(run);
      at += run.bytes;
      continue;
    }
    std::vector<std::byte> rest;
    if (run.is_hole()) {
      if (bytes > at) kept.append_hole(bytes - at);
    } else {
      ChunkId id = run.first;
      while (at < bytes) {
        VARVE_TRY_ASSIGN(const std::uint32_t length, chunk_bytes(id));
        if (at + length > bytes) {
          VARVE_TRY_ASSIGN(rest, chunk(id));
          rest.resize(bytes - at);
          break;
        }
        kept.append_chunk(id, length);
        at += length;
        id = id.plus(1);
      }
    }
    recipe = std::move(kept);
    return rest;
  }
  return std::vector<std::byte>();
}

Result<std::vector<std::byte>> ContentReader::cut_last_hole(format::Recipe& recipe,
                                                            std::uint64_t bytes) {
  VARVE_ASSERT(!recipe.runs.empty() && recipe.runs.back().is_hole());
  const std::uint64_t begin = recipe.bytes() - recipe.runs.back().bytes;
  recipe.runs.pop_back();
  if (begin < bytes) recipe.append_hole(bytes - begin);
  return take_last_chunk(recipe);
}

Result<std::vector<std::byte>> ContentReader::take_last_chunk(format::Recipe& recipe) {
  if (recipe.runs.empty() || recipe.runs.back().is_hole()) return std::vector<std::byte>();
  auto& run = recipe.runs.back();
  VARVE_TRY_ASSIGN(auto bytes, chunk(run.first.plus(run.count - 1)));
  if (run.count == 1) {
    recipe.runs.pop_back();
  } else {
    --run.count;
    run.bytes -= bytes.size();
  }
  return bytes;
}

}  // namespace varve::version
