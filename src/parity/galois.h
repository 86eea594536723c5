// SPDX-License-Identifier: Apache-2.0
// The functions of ISA-L that ReedSolomon uses, in portable code, for the static program: Debian
// has ISA-L as a shared library only. Arithmetic in GF(2^8) with the polynomial 0x11d.
#pragma once

namespace varve::parity::portable {

/// Fills `matrix`, of `rows` rows and `columns` columns, with the identity and, below it, a Cauchy
/// matrix: 1 / (row xor column).
void gf_gen_cauchy1_matrix(unsigned char* matrix, int rows, int columns);

/// Sets `out` to the inverse of a matrix with `count` rows and columns. Changes `in`. Returns 0, or
/// -1 if there is no inverse.
int gf_invert_matrix(unsigned char* in, unsigned char* out, int count);

/// Fills `tables`, 32 bytes for each of the `sources` times `count` coefficients, for the functions
/// below.
void ec_init_tables(int sources, int count, unsigned char* coefficients, unsigned char* tables);

/// Adds a source block times its coefficients to the `count` blocks of `out`. All blocks have
/// `bytes` bytes.
void ec_encode_data_update(int bytes, int sources, int count, int source, unsigned char* tables,
                           unsigned char* block, unsigned char** out);

/// Sets the `count` blocks of `out` to the sums of the source blocks times their coefficients.
void ec_encode_data(int bytes, int sources, int count, unsigned char* tables,
                    unsigned char** blocks, unsigned char** out);

}  // namespace varve::parity::portable
