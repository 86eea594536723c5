// SPDX-License-Identifier: Apache-2.0
#include "repo/derived_files.h"

#include <utility>

#include "maintain/manifest_file.h"
#include "series/index_files.h"
#include "store/repository_names.h"
#include "store/repository_paths.h"
#include "transfer/source_states.h"

namespace varve::repo {

namespace {

using maintain::DerivedFault;

template <typename IndexFaults>
void add(IndexFaults found, std::vector<DerivedFault>& faults) {
  for (auto& [path, error, dependent] : found) {
    faults.push_back({std::move(path), std::move(error), std::move(dependent)});
  }
}

Result<void> add_source_states(io::FileSystem& files, const std::string& directory,
                               std::vector<DerivedFault>& faults) {
  VARVE_TRY_ASSIGN(const auto names, files.list(directory));
  for (const auto& name : names) {
    if (!store::parse_sources_name(name)) continue;
    const auto path = directory + "/" + name;
    const auto states = transfer::SourceStates::open(files, path);
    const auto sound = states ? (*states)->verify() : Result<void>(states.error());
    if (sound || sound.error().code() == ErrorCode::kNotFound) continue;
    faults.push_back({path, sound.error(), {}, true});
  }
  return {};
}

}  // namespace

Result<std::vector<DerivedFault>> find_derived_faults(io::FileSystem& files,
                                                      const std::string& repository,
                                                      maintain::DerivedFiles which) {
  std::vector<DerivedFault> faults;
  const store::RepositoryPaths paths(repository);
  add(series::faults_of_pool_files(files, paths.pool()), faults);
  VARVE_TRY_ASSIGN(const auto folders, maintain::series_folders(files, repository));
  for (const auto id : folders) {
    const auto directory = paths.series(id);
    if (which == maintain::DerivedFiles::kAll) {
      VARVE_TRY_ASSIGN(auto found, series::faults_of_index_files(files, directory, id));
      add(std::move(found), faults);
    }
    auto added = add_source_states(files, directory, faults);
    if (!added && added.error().code() != ErrorCode::kNotFound) return std::move(added).error();
  }
  return faults;
}

}  // namespace varve::repo
