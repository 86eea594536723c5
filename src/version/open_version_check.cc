// SPDX-License-Identifier: Apache-2.0
#include "version/open_version_check.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "base/coding.h"
#include "base/system_error.h"
#include "meta/schema.h"
#include "meta/value_check.h"
#include "version/open_inode.h"
#include "version/open_tree.h"

namespace varve::version {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{256} << 10;

// Reads the bytes of the staging file referred to by the inode.
Result<void> read_staged(io::FileSystem& files, const StagedVersion& version,
                         const OpenInode& inode) {
  VARVE_TRY_ASSIGN(
      const auto file,
      open_staging_file(
          files, staging_file_path(version.staging_directory, inode.ino, inode.staging.generation),
          version.keys.get(), {version.series, version.number, inode.ino, inode.staging.generation},
          inode.staging.ranges->file_end()));
  std::vector<std::byte> room(kPieceBytes);
  for (std::uint64_t at = 0; at < inode.staging.ranges->size();) {
    const auto range = inode.staging.ranges->at(at);
    auto from = range.source_offset;
    for (std::uint64_t left = range.end - at;
         range.source == StagedContent::Source::kFile && left != 0;) {
      const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(left, room.size()));
      VARVE_TRY_ASSIGN(const auto got, file->read(from, std::span(room).first(part)));
      if (got != part) return Error(ErrorCode::kCorrupt, "a staging file is too short");
      from += part;
      left -= part;
    }
    at = range.end;
  }
  return {};
}

// Finds names whose inode has no record, and directories with a wrong number of names. The names of
// a directory of the base are not counted, because most of the names are in the base.
Result<void> check_names(const meta::Txn& txn, Ino base_end, std::vector<std::string>& faults) {
  std::map<Ino, std::uint64_t> names;  // Directory -> number of names.
  std::uint64_t without_inode = 0;
  VARVE_TRY(meta::for_each_prefix(
      txn, meta::overlay::kDirents, "",
      [&](std::string_view key, std::string_view value) -> Result<bool> {
        if (key.size() < sizeof(Ino) || value.size() < sizeof(Ino)) {
          return Error(ErrorCode::kCorrupt, "an overlay has a bad name record");
        }
        const Ino ino = base::load_be64(value);
        if (ino == 0) return true;  // A removed name.
        ++names[base::load_be64(key)];
        VARVE_TRY_ASSIGN(const auto inode, txn.get(meta::overlay::kInodes, meta::ino_key(ino)));
        const bool present = inode ? !inode->view().empty() : ino < base_end;
        if (!present) ++without_inode;
        return true;
      }));
  if (without_inode != 0) faults.push_back(fmt::format("{} names have no inode", without_inode));
  return meta::for_each_prefix(
      txn, meta::overlay::kInodes, "",
      [&](std::string_view key, std::string_view value) -> Result<bool> {
        const Ino ino = base::load_be64(key);
        if (value.empty() || ino < base_end) return true;
        VARVE_TRY_ASSIGN(const auto inode, decode_open_inode(ino, value, base_end));
        if (!S_ISDIR(inode->mode) || inode->directory.children == names[ino]) return true;
        faults.push_back(
            fmt::format("the directory with inode number {} has {} names instead of {}", ino,
                        names[ino], inode->directory.children));
        return true;
      });
}

}  // namespace

Result<std::optional<meta::Env>> open_overlay_to_read(io::FileSystem& files,
                                                      const StagedVersion& version) {
  const auto directory = version.staging_directory + "/overlay";
  VARVE_TRY_ASSIGN(const bool present, files.exists(directory));
  if (!present) return std::optional<meta::Env>();
  meta::EnvOptions options;
  options.tables = meta::overlay::kTables;
  options.read_only = true;
  options.must_exist = true;
  options.keys = meta::overlay_keys(version.keys, version.series, version.number);
  VARVE_TRY_ASSIGN(auto env, meta::Env::open(files, directory, options));
  return std::optional(std::move(env));
}

namespace {

Result<StagedState> read_once(io::FileSystem& files, const StagedVersion& version) {
  StagedState state;
  VARVE_TRY_ASSIGN(const auto env, open_overlay_to_read(files, version));
  if (!env) return state;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*env));
  for (meta::TableIndex table = 0; table < meta::overlay::kTables.size(); ++table) {
    VARVE_TRY_ASSIGN(const auto faults, meta::find_value_faults(txn, table));
    if (faults.values == 0) continue;
    state.faults.push_back(fmt::format("{} values of the table `{}`: {}", faults.values,
                                       meta::overlay::kTables[table], faults.first));
  }
  if (!state.faults.empty()) return state;
  const auto counter = read_inode_counter(txn, version.base_end);
  if (!counter) state.faults.push_back(counter.error().message());
  VARVE_TRY(check_names(txn, version.base_end, state.faults));
  VARVE_TRY(meta::for_each_prefix(
      txn, meta::overlay::kInodes, "",
      [&](std::string_view key, std::string_view value) -> Result<bool> {
        if (value.empty()) return true;  // A removed file of the base.
        VARVE_TRY_ASSIGN(const auto inode,
                         decode_open_inode(base::load_be64(key), value, version.base_end));
        if (!inode->staging.is_staged()) return true;
        const auto read = read_staged(files, version, *inode);
        if (!read && base::lacks_resources(read.error())) return read.error();
        if (!read) {
          state.faults.push_back(
              fmt::format("the file with inode number {}: {}", inode->ino, read.error().message()));
        }
        return true;
      }));
  return state;
}

}  // namespace

Result<StagedState> read_staged_state(io::FileSystem& files, const StagedVersion& version) {
  // A writer removes unneeded staging files after each checkpoint. Each try sees another
  // checkpoint.
  constexpr int kTriesMax = 3;
  auto state = read_once(files, version);
  for (int tries = 1; tries < kTriesMax && (!state || !state->faults.empty()); ++tries) {
    state = read_once(files, version);
  }
  return state;
}

}  // namespace varve::version
