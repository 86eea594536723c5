// SPDX-License-Identifier: Apache-2.0
#include "parity/reed_solomon.h"

#ifndef VARVE_STATIC
#include <isa-l/erasure_code.h>
#endif

#include <algorithm>

#include "base/assert.h"
#ifdef VARVE_STATIC
#include "parity/galois.h"
#endif

namespace varve::parity {

#ifdef VARVE_STATIC
using namespace portable;
#endif

namespace {

constexpr std::size_t kTableBytes = 32;  // Size of ISA-L's table for one coefficient.
constexpr std::uint32_t kBlocksMax = 255;

// Casts a block for ISA-L, which takes neither const nor std::byte.
unsigned char* raw(const std::byte* bytes) {
  return const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes));
}

std::vector<unsigned char> tables_of(std::vector<unsigned char>& rows, std::uint32_t sources,
                                     std::uint32_t count) {
  std::vector<unsigned char> tables(kTableBytes * sources * count);
  ec_init_tables(static_cast<int>(sources), static_cast<int>(count), rows.data(), tables.data());
  return tables;
}

}  // namespace

ReedSolomon::ReedSolomon(std::uint32_t data_blocks, std::uint32_t parity_blocks)
    : data_blocks_(data_blocks), parity_blocks_(parity_blocks) {
  const std::uint32_t all = data_blocks + parity_blocks;
  VARVE_ASSERT(data_blocks != 0 && parity_blocks != 0 && all <= kBlocksMax);
  std::vector<unsigned char> matrix(std::size_t{all} * data_blocks);
  gf_gen_cauchy1_matrix(matrix.data(), static_cast<int>(all), static_cast<int>(data_blocks));
  // The rows before the parity rows yield the data blocks themselves.
  rows_.assign(matrix.begin() + static_cast<std::ptrdiff_t>(std::size_t{data_blocks} * data_blocks),
               matrix.end());
  tables_ = tables_of(rows_, data_blocks_, parity_blocks_);
}

void ReedSolomon::add(std::uint32_t position, const std::byte* block,
                      std::span<std::byte* const> parity, std::size_t bytes) const {
  std::vector<unsigned char*> out;
  for (auto* one : parity) out.push_back(raw(one));
  ec_encode_data_update(static_cast<int>(bytes), static_cast<int>(data_blocks_),
                        static_cast<int>(parity_blocks_), static_cast<int>(position),
                        const_cast<unsigned char*>(tables_.data()), raw(block), out.data());
}

// Subtracting the present data blocks from a parity block leaves a linear combination of the lost
// blocks. With a sum for each lost block, multiplying by the inverse matrix of the coefficients
// yields the lost blocks.
bool ReedSolomon::restore(std::span<std::byte* const> data, std::span<const std::uint32_t> lost,
                          std::span<const std::byte* const> parity, std::size_t bytes) const {
  std::vector<std::uint32_t> used;
  for (std::uint32_t row = 0; row < parity.size() && used.size() < lost.size(); ++row) {
    if (parity[row] != nullptr) used.push_back(row);
  }
  const auto count = static_cast<std::uint32_t>(lost.size());
  if (used.size() < lost.size()) return false;
  if (lost.empty()) return true;
  std::vector<unsigned char> square;
  for (const auto row : used) {
    for (const auto column : lost)
      square.push_back(rows_[std::size_t{row} * data_blocks_ + column]);
  }
  std::vector<unsigned char> inverse(square.size());
  if (gf_invert_matrix(square.data(), inverse.data(), static_cast<int>(count)) != 0) return false;

  std::vector<std::byte> sums(std::size_t{count} * bytes);
  std::vector<unsigned char*> sum_of;
  std::vector<unsigned char> coefficients;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::copy_n(parity[used[i]], bytes, &sums[i * bytes]);
    sum_of.push_back(raw(&sums[i * bytes]));
    const auto row =
        rows_.begin() + static_cast<std::ptrdiff_t>(std::size_t{used[i]} * data_blocks_);
    coefficients.insert(coefficients.end(), row, row + data_blocks_);
  }
  auto tables = tables_of(coefficients, data_blocks_, count);
  for (std::uint32_t i = 0; i < data_blocks_; ++i) {
    if (std::find(lost.begin(), lost.end(), i) != lost.end()) continue;
    // Subtraction equals addition in GF(2^8).
    ec_encode_data_update(static_cast<int>(bytes), static_cast<int>(data_blocks_),
                          static_cast<int>(count), static_cast<int>(i), tables.data(), raw(data[i]),
                          sum_of.data());
  }
  auto back = tables_of(inverse, count, count);
  std::vector<unsigned char*> out;
  for (const auto position : lost) out.push_back(raw(data[position]));
  ec_encode_data(static_cast<int>(bytes), static_cast<int>(count), static_cast<int>(count),
                 back.data(), sum_of.data(), out.data());
  return true;
}

}  // namespace varve::parity
