// SPDX-License-Identifier: Apache-2.0
// Gear16 at 64 positions an iteration.
//
// Sums over windows of 1, 2, 4, 8 and 16 bytes are built by doubling: with s_w(i) the sum over
// the last w bytes, s_2w(i) = s_w(i) + (s_w(i-w) << w). A vector holds s_w at 32 consecutive
// positions, and s_w(i-w) is it moved by w elements, filled up from the 32 positions before.
#include "ingest/gear_chunker.h"

#if defined(__x86_64__)

#if !defined(__clang__)
// GCC 12 reports the undefined pass-through operands in GCC's own intrinsics as a mistake.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <algorithm>
#include <bit>

// The functions carry the target attribute, so that the program runs on any x86-64.
#define VARVE_AVX512 __attribute__((target("avx512f,avx512bw,gfni")))
#define VARVE_AVX512_INLINE __attribute__((target("avx512f,avx512bw,gfni"), always_inline)) inline

namespace varve::ingest {
namespace {

/// 64 consecutive positions as 16-bit elements.
struct Positions {
  __m512i first;
  __m512i second;
};

/// s_1, s_2, s_4 and s_8 of the latest 32 positions.
struct Carry {
  __m512i sum1;
  __m512i sum2;
  __m512i sum4;
  __m512i sum8;
};

VARVE_AVX512_INLINE Positions look_up(const Gear16Table& table, const std::byte* at) {
  // Unpacking works within lanes of 16 bytes: arranging the quarters first yields the positions in
  // order.
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  const __m512i bytes = _mm512_permutexvar_epi64(order, _mm512_loadu_si512(at));
  const __m512i low = _mm512_gf2p8affineinv_epi64_epi8(
      bytes, _mm512_set1_epi64(static_cast<long long>(table.matrix_low)), kGear16AddLow);
  const __m512i high = _mm512_gf2p8affineinv_epi64_epi8(
      bytes, _mm512_set1_epi64(static_cast<long long>(table.matrix_high)), kGear16AddHigh);
  return {_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)};
}

/// `current` moved up by one element, with the last of `before` in front.
VARVE_AVX512_INLINE __m512i move_one(__m512i current, __m512i before) {
  return _mm512_alignr_epi8(current, _mm512_alignr_epi64(current, before, 6), 14);
}

/// s_16 of the 32 positions after the positions in `carry`.
VARVE_AVX512_INLINE __m512i advance(Carry& carry, __m512i sum1) {
  const __m512i sum2 = _mm512_add_epi16(sum1, _mm512_slli_epi16(move_one(sum1, carry.sum1), 1));
  const __m512i sum4 =
      _mm512_add_epi16(sum2, _mm512_slli_epi16(_mm512_alignr_epi32(sum2, carry.sum2, 15), 2));
  const __m512i sum8 =
      _mm512_add_epi16(sum4, _mm512_slli_epi16(_mm512_alignr_epi32(sum4, carry.sum4, 14), 4));
  const __m512i sum16 =
      _mm512_add_epi16(sum8, _mm512_slli_epi16(_mm512_alignr_epi32(sum8, carry.sum8, 12), 8));
  carry = {sum1, sum2, sum4, sum8};
  return sum16;
}

/// First i in [from, end) whose hash is zero under `mask`, or the first i less than a step before
/// `end`. `found` tells the two apart.
VARVE_AVX512_INLINE std::size_t find(const Gear16Table& table, const std::byte* data,
                                     std::size_t from, std::size_t end, __m512i mask, Carry& carry,
                                     bool& found) {
  std::size_t i = from;
  for (; end - i >= kGear16StepBytes; i += kGear16StepBytes) {
    const Positions sums = look_up(table, data + i);
    const std::uint64_t first = _mm512_testn_epi16_mask(advance(carry, sums.first), mask);
    const std::uint64_t second = _mm512_testn_epi16_mask(advance(carry, sums.second), mask);
    const std::uint64_t hits = first | (second << 32);
    if (hits != 0) {
      found = true;
      return i + static_cast<std::size_t>(std::countr_zero(hits));
    }
  }
  found = false;
  return i;
}

VARVE_AVX512 std::size_t scan_avx512(const Gear16Rule& rule, std::span<const std::byte> data) {
  if (data.size() <= rule.min) return data.size();
  const std::size_t end = std::min(rule.max, data.size());
  const std::size_t avg = std::min(rule.avg, end);

  const Gear16Table& table = *rule.table;
  // The 64 bytes before `min` exist (min >= 64), and the sums of the second half are right: the
  // second half looks back no further than the first half.
  Carry carry{_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
              _mm512_setzero_si512()};
  const Positions before = look_up(table, data.data() + rule.min - kGear16StepBytes);
  advance(carry, before.first);
  advance(carry, before.second);

  bool found = false;
  std::size_t i = find(table, data.data(), rule.min, avg,
                       _mm512_set1_epi16(static_cast<short>(rule.strong)), carry, found);
  if (found) return i + 1;
  // Sizes are multiples of a step, so a rest before `avg` means the end of the data.
  if (i == rule.avg) {
    i = find(table, data.data(), i, end, _mm512_set1_epi16(static_cast<short>(rule.loose)), carry,
             found);
    if (found) return i + 1;
  }
  return i == end ? end : gear16_scan_range(rule, data, i, end);
}

}  // namespace

Gear16Scan gear16_avx512_scan() {
  const bool usable = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("gfni");
  return usable ? &scan_avx512 : nullptr;
}

}  // namespace varve::ingest

#else

namespace varve::ingest {

Gear16Scan gear16_avx512_scan() { return nullptr; }

}  // namespace varve::ingest

#endif
