// SPDX-License-Identifier: Apache-2.0
// Options of a repository: what is fixed at init and what is chosen at open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace varve {

enum class Codec : std::uint8_t { kNone = 0, kZstd = 1 };

/// Fixed when the repository is made; stands in the superblock.
struct RepositoryParameters {
  std::string chunker = "gear16";  ///< Chunker id.
  std::uint32_t chunk_bytes_min = 2048;
  std::uint32_t chunk_bytes_avg = 8192;  ///< Power of two, 4096 to 16384.
  std::uint32_t chunk_bytes_max = 65536;
  Codec codec = Codec::kZstd;
  int zstd_level = 1;  ///< 1 to 19; only for kZstd.
};

/// Chosen each time a repository is opened.
struct OpenOptions {
  bool read_only = false;
  std::uint64_t cache_bytes = 64ULL << 20;  ///< Memory budget of the restore engine.
  std::string engine = "alacc";             ///< Restore engine.
  std::uint32_t ingest_threads = 0;         ///< Fingerprint workers; 0 = one a core, at most 8.
  std::uint32_t checkpoint_interval_ms = 4000;
  /// Opening or cloning a version seals the open one of the series if nothing was written to it for
  /// so many seconds; nullopt: never.
  std::optional<std::uint32_t> autoseal_s = 60;
  /// Arrange in the background after each seal, at idle priority.
  bool arrange = true;
  /// Most bytes a second that background arranging reads and writes; 0 = no limit.
  std::uint64_t arrange_bytes_per_second = 64ULL << 20;
  /// Check all pages of the catalog first, for damage that would end this process. Those of a
  /// small catalog always are.
  bool probe_catalog = false;
  /// Use the repository though another user than the caller or root owns it, or part of it, or
  /// others may write to it. They can then alter what is stored; links that they put into the
  /// folder are refused all the same.
  bool trust_owner = false;
};

}  // namespace varve
