// SPDX-License-Identifier: Apache-2.0
// LMDB trusts the pages of its file: a wrong one can end the process that reads or writes it.
// This reads the file without LMDB, each length bounded before it is used, and tells whether
// everything holds that LMDB 0.9 takes for granted. Whatever is true of a file that it accepts:
//
// - both meta pages are there, of neighbouring commits; the newer one names the roots;
// - each page is used once: by one tree, or by the list of free pages, below the last page;
// - the trees are as deep as their records say; the counts of pages and entries are right;
// - a page has its own number and the flags of its place, none of those that live in memory only;
// - its nodes fill its upper part without gap or overlap and are of a size that LMDB makes;
// - keys ascend, within a page and between the keys of the pages above it;
// - long values lie in as many pages as they need; lists of free pages descend.
//
// Values are read, for errors of the disk, but not judged: each has a checksum (meta/lmdb.h).
#pragma once

#include <span>
#include <string>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::meta {

/// Of the open environment files, to which nobody writes meanwhile. `tables` as in EnvOptions:
/// one of them may be missing, but not where there is one of another name. kCorrupt with what is
/// wrong of which page, or if the file is missing; kIo where the disk cannot read one. Reads each
/// used page once.
[[nodiscard]] Result<void> check_pages(const EnvFiles& files, std::span<const char* const> tables);
/// Opens DIRECTORY/data.mdb for it, and nothing else.
[[nodiscard]] Result<void> check_pages(io::FileSystem& files, const std::string& directory,
                                       std::span<const char* const> tables);
[[nodiscard]] Result<void> check_pages(const std::string& directory,
                                       std::span<const char* const> tables);

/// The same, of what is committed in an open environment; others may write to it meanwhile.
[[nodiscard]] Result<void> check_pages(const Env& env, std::span<const char* const> tables);

}  // namespace varve::meta
