// SPDX-License-Identifier: Apache-2.0
// Gear hashing over a window of 16 bytes, in a scalar and a SIMD form with equal boundaries.
//
// h(i) = sum over k in [0, 16) of T[data[i-k]] << k, modulo 2^16: the Gear hash, whose window is as
// long as the hash has bits. A position i >= min ends a chunk of i+1 bytes where the top bits of
// h(i) are zero: avg_bits+2 bits before avg, avg_bits-2 bits from avg on (normalised chunking,
// FastCDC, ATC'16 §3.4). h sees through the skipped bytes before `min`, so h is a function of the
// last 16 bytes alone and many positions can be computed at once.
//
// Format: T, the masks and `min` decide where files are cut. All three belong to the chunker's id
// and never change under an id. The keyed form has a separate T for each repository
// (keyed_tables.h).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "crypto/key_ring.h"
#include "ingest/chunker.h"
#include "varve/result.h"

namespace varve::ingest {

inline constexpr std::size_t kGear16WindowBytes = 16;
/// Positions evaluated by the SIMD form in one iteration. Sizes are multiples of the step.
inline constexpr std::size_t kGear16StepBytes = 64;

// T[b] is made of two affine images of b's inverse in GF(2^8) with the polynomial 0x11b, the
// function of the instruction GF2P8AFFINEINVQB: the SIMD form needs no table. The numbers come from
// a seeded search for invertible matrices with an invertible sum. Under the chosen numbers, a run
// of one byte value never ends a chunk (so zeros make the longest chunks).
inline constexpr std::uint64_t kGear16MatrixLow = 0x81e72c46d345bbf4;
inline constexpr std::uint64_t kGear16MatrixHigh = 0x6b9068dd5986e63e;
inline constexpr std::uint8_t kGear16AddLow = 0x7a;
inline constexpr std::uint8_t kGear16AddHigh = 0xb2;

/// The table T: the matrices for the SIMD form, the entries for the scalar form.
struct Gear16Table {
  std::uint64_t matrix_low = 0;
  std::uint64_t matrix_high = 0;
  std::array<std::uint16_t, 256> entries{};
};

/// Returns the table of two matrices, with kGear16AddLow and kGear16AddHigh.
[[nodiscard]] Gear16Table make_gear16_table(std::uint64_t matrix_low, std::uint64_t matrix_high);
/// The table of the chunker without a key.
extern const Gear16Table kGear16Table;

/// Parameters of a scan. `strong` and `loose` are masks of top bits.
struct Gear16Rule {
  const Gear16Table* table = nullptr;
  std::size_t min = 0;
  std::size_t avg = 0;
  std::size_t max = 0;
  std::uint16_t strong = 0;
  std::uint16_t loose = 0;
};

/// Returns the rule for sizes obeying the chunker's ChunkSizeRule. The table must outlive the rule.
[[nodiscard]] Gear16Rule make_gear16_rule(ChunkSizes sizes,
                                          const Gear16Table& table = kGear16Table);

/// Returns the length of the chunk at data[0]. Reads nothing outside `data`.
using Gear16Scan = std::size_t (*)(const Gear16Rule& rule, std::span<const std::byte> data);

[[nodiscard]] std::size_t gear16_scan_scalar(const Gear16Rule& rule,
                                             std::span<const std::byte> data);
/// Runs the scalar loop over [from, end), for ends shorter than a SIMD step. Returns the length of
/// the chunk ending there, or `end`. Needs from >= kGear16WindowBytes.
[[nodiscard]] std::size_t gear16_scan_range(const Gear16Rule& rule, std::span<const std::byte> data,
                                            std::size_t from, std::size_t end);

/// Returns the AVX-512BW + GFNI form, or null if the build or the processor lacks the form.
[[nodiscard]] Gear16Scan gear16_avx512_scan();

enum class Gear16Form : std::uint8_t {
  kFastest,  ///< The SIMD form where supported by the processor.
  kScalar,
};

class Gear16Chunker final : public Chunker {
 public:
  static constexpr std::string_view kId = "gear16";

  /// Creates the chunker. `sizes` must obey its ChunkSizeRule.
  Gear16Chunker(ChunkSizes sizes, Gear16Form form);
  /// Creates a keyed chunker, under its own id.
  Gear16Chunker(std::string_view keyed_id, ChunkSizes sizes, Gear16Form form,
                const Gear16Table& table);

  [[nodiscard]] std::size_t next(std::span<const std::byte> data) const override {
    return scan_(rule_, data);
  }
  [[nodiscard]] ChunkSizes sizes() const override { return sizes_; }
  [[nodiscard]] std::string_view id() const override { return id_; }
  [[nodiscard]] bool is_simd() const { return scan_ != &gear16_scan_scalar; }

 private:
  std::string_view id_;
  std::unique_ptr<const Gear16Table> keyed_;  // Null without a key.
  ChunkSizes sizes_;
  Gear16Rule rule_;
  Gear16Scan scan_;
};

/// Creates a gear16 chunker of a certain form, for tests and benchmarks; a keyed chunker if `keys`
/// is set.
/// Errors: those of make_chunker().
[[nodiscard]] Result<std::unique_ptr<Chunker>> make_gear16(ChunkSizes sizes, Gear16Form form,
                                                           const crypto::KeyRing* keys = nullptr);

}  // namespace varve::ingest
