// SPDX-License-Identifier: Apache-2.0
#include "ingest/gear_chunker.h"

#include "ingest/keyed_tables.h"

namespace varve::ingest {
namespace {

Gear16Scan select_scan(Gear16Form form) {
  const Gear16Scan simd = form == Gear16Form::kFastest ? gear16_avx512_scan() : nullptr;
  return simd != nullptr ? simd : &gear16_scan_scalar;
}

}  // namespace

Gear16Chunker::Gear16Chunker(ChunkSizes sizes, Gear16Form form)
    : id_(kId), sizes_(sizes), rule_(make_gear16_rule(sizes)), scan_(select_scan(form)) {}

Gear16Chunker::Gear16Chunker(std::string_view keyed_id, ChunkSizes sizes, Gear16Form form,
                             const Gear16Table& table)
    : id_(keyed_id),
      keyed_(std::make_unique<const Gear16Table>(table)),
      sizes_(sizes),
      rule_(make_gear16_rule(sizes, *keyed_)),
      scan_(select_scan(form)) {}

Result<std::unique_ptr<Chunker>> make_gear16(ChunkSizes sizes, Gear16Form form,
                                             const crypto::KeyRing* keys) {
  VARVE_TRY(check_chunk_sizes(ChunkSizeRule{}, sizes));
  if (keys != nullptr) return make_keyed_gear16(sizes, form, *keys);
  return std::unique_ptr<Chunker>(std::make_unique<Gear16Chunker>(sizes, form));
}

}  // namespace varve::ingest
