// SPDX-License-Identifier: Apache-2.0
#include "parity/galois.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace varve::parity::portable {
namespace {

constexpr unsigned kPolynomial = 0x11d;
constexpr std::size_t kProductTableBytes = 32;

constexpr unsigned char multiply(unsigned a, unsigned b) {
  unsigned product = 0;
  for (; b != 0; b >>= 1) {
    if ((b & 1) != 0) product ^= a;
    a <<= 1;
    if ((a & 0x100) != 0) a ^= kPolynomial;
  }
  return static_cast<unsigned char>(product);
}

constexpr std::array<unsigned char, 256> make_inverses() {
  std::array<unsigned char, 256> inverses{};
  for (unsigned a = 1; a < 256; ++a) {
    // The product of all powers a^2, a^4 … a^128 is a^254, the inverse.
    unsigned char power = multiply(a, a);
    unsigned char inverse = power;
    for (int i = 2; i < 8; ++i) {
      power = multiply(power, power);
      inverse = multiply(inverse, power);
    }
    inverses[a] = inverse;
  }
  return inverses;
}
constexpr auto kInverses = make_inverses();

std::size_t index(int row, int columns, int column) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
         static_cast<std::size_t>(column);
}

void add_product(std::size_t bytes, const unsigned char* table, const unsigned char* block,
                 unsigned char* out) {
  for (std::size_t i = 0; i < bytes; ++i) {
    const auto low = static_cast<std::size_t>(block[i] & 15);
    const auto high = static_cast<std::size_t>(block[i] >> 4);
    out[i] = static_cast<unsigned char>(out[i] ^ table[low] ^ table[16 + high]);
  }
}

}  // namespace

void gf_gen_cauchy1_matrix(unsigned char* matrix, int rows, int columns) {
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const bool one = row == column;
      matrix[index(row, columns, column)] =
          row < columns ? (one ? 1 : 0) : kInverses[static_cast<std::size_t>(row ^ column)];
    }
  }
}

// Gauss-Jordan elimination, with the same steps on the identity.
int gf_invert_matrix(unsigned char* in, unsigned char* out, int count) {
  for (int row = 0; row < count; ++row) {
    for (int column = 0; column < count; ++column) {
      out[index(row, count, column)] = row == column ? 1 : 0;
    }
  }
  for (int step = 0; step < count; ++step) {
    int pivot = step;
    while (pivot < count && in[index(pivot, count, step)] == 0) ++pivot;
    if (pivot == count) return -1;
    for (int column = 0; column < count; ++column) {
      std::swap(in[index(step, count, column)], in[index(pivot, count, column)]);
      std::swap(out[index(step, count, column)], out[index(pivot, count, column)]);
    }
    const unsigned char scale = kInverses[in[index(step, count, step)]];
    for (int column = 0; column < count; ++column) {
      auto& left = in[index(step, count, column)];
      auto& right = out[index(step, count, column)];
      left = multiply(left, scale);
      right = multiply(right, scale);
    }
    for (int row = 0; row < count; ++row) {
      const unsigned char factor = in[index(row, count, step)];
      if (row == step || factor == 0) continue;
      for (int column = 0; column < count; ++column) {
        in[index(row, count, column)] ^= multiply(factor, in[index(step, count, column)]);
        out[index(row, count, column)] ^= multiply(factor, out[index(step, count, column)]);
      }
    }
  }
  return 0;
}

// A coefficient's table has its products with 0 … 15 and with the multiples of 16.
void ec_init_tables(int sources, int count, unsigned char* coefficients, unsigned char* tables) {
  const auto all = static_cast<std::size_t>(sources) * static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < all; ++i) {
    for (unsigned digit = 0; digit < 16; ++digit) {
      tables[i * kProductTableBytes + digit] = multiply(coefficients[i], digit);
      tables[i * kProductTableBytes + 16 + digit] = multiply(coefficients[i], digit << 4);
    }
  }
}

void ec_encode_data_update(int bytes, int sources, int count, int source, unsigned char* tables,
                           unsigned char* block, unsigned char** out) {
  for (int i = 0; i < count; ++i) {
    add_product(static_cast<std::size_t>(bytes),
                tables + index(i, sources, source) * kProductTableBytes, block, out[i]);
  }
}

void ec_encode_data(int bytes, int sources, int count, unsigned char* tables,
                    unsigned char** blocks, unsigned char** out) {
  for (int i = 0; i < count; ++i) {
    std::fill_n(out[i], bytes, static_cast<unsigned char>(0));
    for (int source = 0; source < sources; ++source) {
      add_product(static_cast<std::size_t>(bytes),
                  tables + index(i, sources, source) * kProductTableBytes, blocks[source], out[i]);
    }
  }
}

}  // namespace varve::parity::portable
