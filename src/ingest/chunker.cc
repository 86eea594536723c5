// SPDX-License-Identifier: Apache-2.0
#include "ingest/chunker.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "format/container.h"
#include "ingest/fastcdc_chunker.h"
#include "ingest/gear_chunker.h"
#include "ingest/keyed_tables.h"

namespace varve::ingest {
namespace {

constexpr std::uint32_t kRepositoryMinBytes = 256;
constexpr std::uint32_t kRepositoryAvgBytes = 4096;

Result<std::unique_ptr<Chunker>> make_plain_gear16(ChunkSizes sizes, const crypto::KeyRing*) {
  return std::unique_ptr<Chunker>(std::make_unique<Gear16Chunker>(sizes, Gear16Form::kFastest));
}

Result<std::unique_ptr<Chunker>> make_gear16_of(ChunkSizes sizes, const crypto::KeyRing* keys) {
  return make_keyed_gear16(sizes, Gear16Form::kFastest, *keys);
}

Result<std::unique_ptr<Chunker>> make_plain_fastcdc(ChunkSizes sizes, const crypto::KeyRing*) {
  return std::unique_ptr<Chunker>(std::make_unique<FastCdcChunker>(sizes));
}

Result<std::unique_ptr<Chunker>> make_fastcdc_of(ChunkSizes sizes, const crypto::KeyRing* keys) {
  return make_keyed_fastcdc(sizes, *keys);
}

// The default rule holds for all: the SIMD form of gear16 evaluates 64 positions a step, and the
// strong mask of its 16-bit hash ends at an average of 16 KiB.
constexpr std::array kChunkers{
    ChunkerKind{Gear16Chunker::kId, "a Gear hash of 16 bytes, with AVX-512 where available",
                ChunkSizeRule{}, kKeyedGear16Id, make_plain_gear16},
    ChunkerKind{FastCdcChunker::kId, "FastCDC as published in 2020", ChunkSizeRule{},
                kKeyedFastCdcId, make_plain_fastcdc},
    ChunkerKind{kKeyedGear16Id, "the same with a table from the repository's key", ChunkSizeRule{},
                kKeyedGear16Id, make_gear16_of},
    ChunkerKind{kKeyedFastCdcId, "the same with a table from the repository's key", ChunkSizeRule{},
                kKeyedFastCdcId, make_fastcdc_of},
};
static_assert(std::ranges::all_of(kChunkers, [](const ChunkerKind& kind) {
  return kind.sizes.max_most <= format::kFrameRawBytesMax;
}));

}  // namespace

std::span<const ChunkerKind> chunker_kinds() { return kChunkers; }

Result<const ChunkerKind*> find_chunker(std::string_view id) {
  std::string known;
  for (const ChunkerKind& kind : kChunkers) {
    if (kind.id == id) return &kind;
    known += (known.empty() ? "" : ", ") + std::string(kind.id);
  }
  return Error(ErrorCode::kUnsupported,
               fmt::format("unknown chunker `{}`: {} are known", id, known));
}

Result<void> check_chunk_sizes(const ChunkSizeRule& rule, ChunkSizes sizes) {
  const bool ok = sizes.min >= rule.min_least && sizes.min % rule.step == 0 &&
                  sizes.max % rule.step == 0 && sizes.min < sizes.avg && sizes.avg < sizes.max &&
                  std::has_single_bit(sizes.avg) && sizes.avg >= rule.avg_least &&
                  sizes.avg <= rule.avg_most && sizes.max <= rule.max_most;
  if (ok) return {};
  return Error(ErrorCode::kInvalid,
               fmt::format("chunks of {}:{}:{} bytes (minimum, average, maximum) are not allowed: "
                           "the average must be a power of two from {} to {}; minimum and maximum "
                           "must be multiples of {}; the minimum must be at least {} and below the "
                           "average, the maximum above the average and at most {}",
                           sizes.min, sizes.avg, sizes.max, rule.avg_least, rule.avg_most,
                           rule.step, rule.min_least, rule.max_most));
}

Result<void> check_chunker_key(const ChunkerKind& kind, bool has_keys) {
  if (has_keys || !kind.is_keyed()) return {};
  return Error(ErrorCode::kInvalid,
               fmt::format("the chunker `{}` is for encrypted repositories only", kind.id));
}

ChunkSizeRule repository_sizes(const ChunkerKind& kind) {
  ChunkSizeRule rule = kind.sizes;
  rule.min_least = std::max(rule.min_least, kRepositoryMinBytes);
  rule.avg_least = std::max(rule.avg_least, kRepositoryAvgBytes);
  return rule;
}

Result<std::unique_ptr<Chunker>> make_chunker(std::string_view id, ChunkSizes sizes,
                                              const crypto::KeyRing* keys) {
  VARVE_TRY_ASSIGN(const ChunkerKind* const kind, find_chunker(id));
  VARVE_TRY(check_chunk_sizes(kind->sizes, sizes));
  VARVE_TRY(check_chunker_key(*kind, keys != nullptr));
  return kind->make(sizes, keys);
}

}  // namespace varve::ingest
