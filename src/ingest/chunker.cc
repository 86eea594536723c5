// SPDX-License-Identifier: Apache-2.0
#include "ingest/chunker.h"

#include <fmt/format.h>

#include <bit>
#include <string>

#include "ingest/fastcdc_chunker.h"
#include "ingest/gear_chunker.h"

namespace varve::ingest {
namespace {

constexpr std::uint32_t kAvgBytesMin = 1U << 10;
constexpr std::uint32_t kAvgBytesMax = 16U << 10;  // The strong mask of a 16-bit hash ends here.
constexpr std::uint32_t kMaxBytesMax = 128U << 10;

Gear16Scan select_scan(Gear16Form form) {
  const Gear16Scan simd = form == Gear16Form::kFastest ? gear16_avx512_scan() : nullptr;
  return simd != nullptr ? simd : &gear16_scan_scalar;
}

}  // namespace

Result<void> check_chunk_sizes(ChunkSizes sizes) {
  const bool ok = sizes.min >= kGear16StepBytes && sizes.min % kGear16StepBytes == 0 &&
                  sizes.max % kGear16StepBytes == 0 && sizes.min < sizes.avg &&
                  sizes.avg < sizes.max && std::has_single_bit(sizes.avg) &&
                  sizes.avg >= kAvgBytesMin && sizes.avg <= kAvgBytesMax &&
                  sizes.max <= kMaxBytesMax;
  if (ok) return {};
  return Error(
      ErrorCode::kInvalid,
      fmt::format("chunk sizes {}:{}:{} do not fit: the average must be a power of two from "
                  "{} to {}, between the minimum and the maximum, which are multiples of "
                  "{}; the maximum may be {}",
                  sizes.min, sizes.avg, sizes.max, kAvgBytesMin, kAvgBytesMax, kGear16StepBytes,
                  kMaxBytesMax));
}

Gear16Chunker::Gear16Chunker(ChunkSizes sizes, Gear16Form form)
    : sizes_(sizes), rule_(make_gear16_rule(sizes)), scan_(select_scan(form)) {}

Result<std::unique_ptr<Chunker>> make_gear16(ChunkSizes sizes, Gear16Form form) {
  VARVE_TRY(check_chunk_sizes(sizes));
  return std::unique_ptr<Chunker>(std::make_unique<Gear16Chunker>(sizes, form));
}

Result<std::unique_ptr<Chunker>> make_chunker(std::string_view id, ChunkSizes sizes) {
  if (id == Gear16Chunker::kId) return make_gear16(sizes, Gear16Form::kFastest);
  if (id == FastCdcChunker::kId) {
    VARVE_TRY(check_chunk_sizes(sizes));
    return std::unique_ptr<Chunker>(std::make_unique<FastCdcChunker>(sizes));
  }
  return Error(ErrorCode::kUnsupported,
               fmt::format("this build does not have the chunker '{}'", std::string(id)));
}

}  // namespace varve::ingest
