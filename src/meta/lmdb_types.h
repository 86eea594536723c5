// SPDX-License-Identifier: Apache-2.0
// The names of LMDB's handles, so that only sources of this room need LMDB's header.
#pragma once

struct MDB_env;
struct MDB_txn;
struct MDB_cursor;

namespace varve::meta {

/// An open table: LMDB's MDB_dbi.
using TableHandle = unsigned int;

}  // namespace varve::meta
