// SPDX-License-Identifier: Apache-2.0
#include "format/rewrite_counts.h"

#include <algorithm>

#include "base/coding.h"

namespace varve::format {

namespace {

void put_data(base::ByteWriter& w, std::uint64_t chunks, std::uint64_t bytes) {
  w.varint(std::min(chunks, kCountMax));
  w.varint(std::min(bytes, kCountMax));
}

// A chunk has at least one byte.
bool get_data(base::ByteReader& r, std::uint64_t& chunks, std::uint64_t& bytes) {
  chunks = r.varint();
  bytes = r.varint();
  return bytes <= kCountMax && chunks <= bytes && (chunks == 0) == (bytes == 0);
}

}  // namespace

std::string encode_rewrite_counts(const RewriteCounts& counts) {
  std::string out;
  base::ByteWriter w(out);
  put_data(w, counts.kept_chunks, counts.kept_bytes);
  put_data(w, counts.rewritten_chunks, counts.rewritten_bytes);
  put_data(w, counts.promoted_chunks, counts.promoted_bytes);
  w.varint(std::min(counts.sparse_containers, kCountMax));
  return out;
}

Result<RewriteCounts> decode_rewrite_counts(std::string_view bytes) {
  base::ByteReader r(bytes);
  RewriteCounts counts;
  bool sound = get_data(r, counts.kept_chunks, counts.kept_bytes);
  sound = get_data(r, counts.rewritten_chunks, counts.rewritten_bytes) && sound;
  sound = get_data(r, counts.promoted_chunks, counts.promoted_bytes) && sound;
  counts.sparse_containers = r.varint();
  if (!r.done() || !sound || counts.sparse_containers > kCountMax) {
    return Error(ErrorCode::kCorrupt, "damaged record of the counts of rewriting");
  }
  return counts;
}

}  // namespace varve::format
