// SPDX-License-Identifier: Apache-2.0
// Checks the pages of an LMDB file. LMDB trusts all pages: a wrong page can end the process that
// reads or writes the page. The check reads the file without LMDB, bounds each length before use,
// and verifies everything that LMDB 0.9 takes for granted. In an accepted file:
//
// - both meta pages are present, of neighbouring commits; the newer page names the roots;
// - each page is used once: by one tree, or by the list of free pages, below the last page;
// - the trees are as deep as the records say; the counts of pages and entries are right;
// - a page has its own number and the flags of its place, without flags that exist only in memory;
// - nodes fill the upper part of a page without gap or overlap and are of a size that LMDB makes;
// - keys ascend, within a page and between the keys of the pages above;
// - long values take as many pages as needed; lists of free pages descend.
//
// The check reads values to find errors of the disk, without judging the values: each value has a
// checksum (meta/lmdb.h).
#pragma once

#include <span>
#include <string>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::meta {

/// Checks the pages of the open environment files. No process may write to the files during the
/// check. `tables`: as in EnvOptions. A table may be missing, but not if the environment has a
/// table of another name. Reads each used page once.
/// Errors: kCorrupt with the fault and its page, or if the file is missing; kIo if the disk cannot
/// read a page.
[[nodiscard]] Result<void> check_pages(const EnvFiles& files, std::span<const char* const> tables);
/// Opens only DIRECTORY/data.mdb, and checks the file in the same way.
[[nodiscard]] Result<void> check_pages(io::FileSystem& files, const std::string& directory,
                                       std::span<const char* const> tables);
[[nodiscard]] Result<void> check_pages(const std::string& directory,
                                       std::span<const char* const> tables);

/// Checks the committed pages of an open environment in the same way. Other processes may write to
/// the environment during the check. Errors: also kBusy if the environment changes faster than the
/// check reads.
[[nodiscard]] Result<void> check_pages(const Env& env, std::span<const char* const> tables);

}  // namespace varve::meta
