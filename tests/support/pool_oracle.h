// SPDX-License-Identifier: Apache-2.0
// Recounts the users of the pool's containers from the versions' chunks, independently of the
// records that count them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "catalog/alias_table.h"
#include "catalog/location_table.h"
#include "catalog/object_store.h"
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "io/posix_file_system.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "store/repository_paths.h"
#include "support/closed_catalog.h"
#include "support/temp_repository.h"
#include "support/test_encryption.h"
#include "version/open_references.h"

namespace varve::test {

/// Returns the sum of the sizes of all files below a folder, in bytes; 0 if there is no folder.
inline std::uint64_t bytes_below(const std::string& folder) {
  std::uint64_t sum = 0;
  std::error_code missing;
  for (const auto& at : std::filesystem::recursive_directory_iterator(folder, missing)) {
    if (at.is_regular_file()) sum += at.file_size();
  }
  return sum;
}

/// Checks the pool of a repository that no process has open.
class PoolOracle {
 public:
  explicit PoolOracle(const std::string& path)
      : path_(path), catalog_(open_catalog(path + "/catalog", keys_of(path))) {
    const auto txn = must(meta::ReadTxn::begin(catalog_));
    find_chunks(txn);
    count_users(txn);
    compare(txn);
  }

  /// Returns the defects: chunks of a version that are lost, and wrong records of users.
  [[nodiscard]] const std::vector<std::string>& wrong() const { return wrong_; }
  [[nodiscard]] std::size_t containers() const { return containers_.size(); }
  /// Returns the number of containers that more than one version uses.
  [[nodiscard]] std::size_t shared() const { return shared_; }

  /// Returns the number of aliases that lead to a chunk.
  [[nodiscard]] std::size_t aliases() const { return aliases_; }

  /// Returns the containers that no sealed or open version uses, and the files of the pool that
  /// hold no container. A repository that was closed after a clean opening has none.
  [[nodiscard]] std::vector<std::string> unused() const {
    std::vector<std::string> found;
    for (const auto& [number, file] : containers_) {
      if (!users_.contains(number) && !held_.contains(number)) {
        found.push_back("container " + text(number) + " has no user");
      }
    }
    std::set<std::string> files;
    for (const auto& [number, file] : containers_) files.insert(file);
    std::error_code missing;
    for (const auto& at : std::filesystem::directory_iterator(path_ + "/pool/active", missing)) {
      const auto name = at.path().filename().string();
      if (!files.contains(name)) found.push_back("file " + name + " has no container");
    }
    return found;
  }

 private:
  static std::string text(ContainerNumber number) {
    return std::to_string(static_cast<std::uint32_t>(number));
  }

  void find_chunks(const meta::Txn& txn) {
    must(catalog::for_each_container(
        txn, kPoolStore, [&](const format::ContainerRecord& record) -> Result<bool> {
          char name[32];
          std::snprintf(name, sizeof name, "%08x.seg", static_cast<unsigned>(record.segment));
          containers_[record.number] = name;
          if (!is_pool(record.number)) wrong_.push_back("a container of the pool lacks its bit");
          if (!std::filesystem::exists(path_ + "/pool/active/" + name)) {
            wrong_.push_back("container " + text(record.number) + " has no file " + name);
          }
          return true;
        }));
    must(catalog::for_each_location(txn, kPoolStore, ChunkId{},
                                    [&](const catalog::LocationRecord& at) -> Result<bool> {
                                      if (!is_pool(at.first))
                                        wrong_.push_back("a chunk of the pool lacks its bit");
                                      for (std::uint32_t i = 0; i < at.count; ++i)
                                        place_[at.first.plus(i)] = at.container;
                                      return true;
                                    }));
    std::map<ChunkId, ContainerNumber> aliases;
    must(catalog::for_each_alias(txn, [&](const catalog::AliasRecord& alias) -> Result<bool> {
      for (std::uint32_t i = 0; i < alias.run.count; ++i) {
        const auto id = alias.run.first.plus(i);
        if (place_.contains(id)) wrong_.push_back("an alias is stored");
        const auto target = place_.find(alias.run.target.plus(i));
        if (target != place_.end()) aliases[id] = target->second;
      }
      return true;
    }));
    aliases_ = aliases.size();
    place_.insert(aliases.begin(), aliases.end());
    for (const auto& [id, container] : place_) {
      if (!containers_.contains(container)) {
        wrong_.push_back("a chunk is located in the missing container " + text(container));
      }
    }
  }

  std::set<ContainerNumber> containers_of(const base::IdRuns& chunks, const std::string& name) {
    std::set<ContainerNumber> found;
    for (const auto& run : chunks.runs()) {
      if (!is_pool(run.first)) continue;
      for (std::uint32_t i = 0; i < run.count; ++i) {
        const auto at = place_.find(run.first.plus(i));
        if (at == place_.end()) {
          wrong_.push_back(name + " refers to a chunk that the pool does not have");
          break;
        }
        found.insert(at->second);
      }
    }
    return found;
  }

  void count_users(const meta::Txn& txn) {
    const auto files = io::make_posix_file_system();
    const store::RepositoryPaths paths(path_);
    for (const auto& series : must(catalog::list_series(txn))) {
      for (const auto& version : must(catalog::list_versions(txn, series.id))) {
        const auto name = series.name + "/" + version.name;
        if (version.state == VersionState::kSealed) {
          const auto chunks = must(catalog::version_chunks(txn, series.id, version.number));
          const auto found = containers_of(chunks, name);
          for (const auto container : found) ++users_[container];
          std::set<ContainerNumber> recorded;
          for (const auto& use : must(catalog::find_pool_use(txn, series.id, version.number))) {
            recorded.insert(use.container);
          }
          if (recorded != found) wrong_.push_back(name + " uses other containers than recorded");
          continue;
        }
        Ino base_end = 0;
        if (version.base != VersionNumber{}) {
          const auto base = must(catalog::find_version(txn, series.id, version.base));
          if (base) base_end = base->entries + 2;
        }
        const auto held = containers_of(
            must(version::stored_references(
                *files, paths.staging(series.id, version.number),
                meta::overlay_keys(txn.env().keys().ring, series.id, version.number), base_end)),
            name);
        held_.insert(held.begin(), held.end());
      }
    }
  }

  void compare(const meta::Txn& txn) {
    std::map<ContainerNumber, std::uint32_t> recorded;
    must(catalog::for_each_pool_users(
        txn, [&](ContainerNumber container, std::uint32_t users) -> Result<bool> {
          recorded[container] = users;
          return true;
        }));
    if (recorded != users_) wrong_.push_back("the records of users differ from the versions");
    for (const auto& [container, users] : users_) shared_ += users > 1 ? 1 : 0;
    must(catalog::for_each_pool_use(
        txn,
        [&](SeriesId series, VersionNumber number,
            const std::vector<catalog::PoolUse>& uses) -> Result<bool> {
          const auto version = must(catalog::find_version(txn, series, number));
          const bool notes = version && version->state == VersionState::kOpen && uses.empty();
          if (!notes && (!version || version->state != VersionState::kSealed)) {
            wrong_.push_back("a version that is not sealed has a record of its containers");
          }
          return true;
        }));
    must(catalog::for_each_rewrite_counts(
        txn, [&](SeriesId series, VersionNumber number, const RewriteCounts&) -> Result<bool> {
          const auto version = must(catalog::find_version(txn, series, number));
          if (!version || version->state != VersionState::kSealed) {
            wrong_.push_back("a version that is not sealed has counts of rewriting");
          }
          return true;
        }));
  }

  const std::string path_;
  meta::Env catalog_;
  std::map<ContainerNumber, std::string> containers_;  // With their files.
  std::map<ChunkId, ContainerNumber> place_;
  std::map<ContainerNumber, std::uint32_t> users_;  // Sealed versions.
  std::set<ContainerNumber> held_;                  // By the overlays of open versions.
  std::vector<std::string> wrong_;
  std::size_t shared_ = 0;
  std::size_t aliases_ = 0;
};

/// Changes the placement of a series in a repository that no process has open.
inline void set_placement(const std::string& path, SeriesId series, Placement placement) {
  change_closed_catalog(path, [&](meta::WriteTxn& txn) {
    auto record = *must(catalog::find_series(txn, series));
    record.placement = placement;
    must(catalog::put_series(txn, record));
  });
}

}  // namespace varve::test
