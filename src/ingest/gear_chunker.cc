// SPDX-License-Identifier: Apache-2.0
#include "ingest/gear_chunker.h"

namespace varve::ingest {
namespace {

Gear16Scan select_scan(Gear16Form form) {
  const Gear16Scan simd = form == Gear16Form::kFastest ? gear16_avx512_scan() : nullptr;
  return simd != nullptr ? simd : &gear16_scan_scalar;
}

}  // namespace

Gear16Chunker::Gear16Chunker(ChunkSizes sizes, Gear16Form form)
    : sizes_(sizes), rule_(make_gear16_rule(sizes)), scan_(select_scan(form)) {}

Result<std::unique_ptr<Chunker>> make_gear16(ChunkSizes sizes, Gear16Form form) {
  VARVE_TRY(check_chunk_sizes(ChunkSizeRule{}, sizes));
  return std::unique_ptr<Chunker>(std::make_unique<Gear16Chunker>(sizes, form));
}

}  // namespace varve::ingest
