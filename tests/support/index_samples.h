// SPDX-License-Identifier: Apache-2.0
// Fingerprints, runs and snapshots for tests of the index.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/id_runs.h"
#include "index/run_set.h"
#include "io/file_system.h"
#include "store/repository_names.h"

namespace varve::index {

inline Fingerprint random_fingerprint(std::uint64_t number) {
  std::uint64_t seed = number * 0xd1342543de82ef95U;
  Fingerprint out;
  for (std::size_t i = 0; i < out.size(); i += sizeof(std::uint64_t)) {
    // SplitMix64 (Steele et al., OOPSLA'14).
    seed += 0x9e3779b97f4a7c15U;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    base::store_le(out.data() + i, z ^ (z >> 31));
  }
  return out;
}

inline RunFolder test_folder(io::FileSystem& files, SeriesId series) {
  static_cast<void>(files.make_directory("/s"));
  return {&files, "/s", series, store::index_run_name};
}

/// Encodes a snapshot of layout 1. Entries must ascend by tag.
inline std::string old_snapshot(SeriesId series, VersionNumber version, const base::IdRuns& ids,
                                const std::vector<Entry>& entries) {
  std::string runs;
  ids.encode(runs);
  std::string out;
  base::ByteWriter w(out);
  w.u32(0x58495656);
  w.u32(1);
  w.u32(static_cast<std::uint32_t>(series));
  w.u32(static_cast<std::uint32_t>(version));
  w.u64(entries.size());
  w.u64(runs.size());
  w.text(runs);
  for (const Entry& entry : entries) {
    w.bytes(entry.tag);
    w.u32(static_cast<std::uint32_t>(ids.rank(entry.id()).value_or(0)));
  }
  w.u64(base::checksum64(base::as_bytes(out)));
  return out;
}

}  // namespace varve::index
