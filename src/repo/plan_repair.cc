// SPDX-License-Identifier: Apache-2.0
// Connects a repair with the rooms for indexes and object stores.
#include <utility>

#include "io/client_memory.h"
#include "maintain/repairer.h"
#include "remote/promotion.h"
#include "remote/reader_repairer.h"
#include "remote/store_repairer.h"
#include "remote/whole_folder.h"
#include "repo/derived_files.h"
#include "repo/store_repository.h"
#include "series/unstored_files.h"

namespace varve::repo {

Result<std::unique_ptr<Repair>> plan_repair(
    const std::string& folder, const RepairOptions& options, bool scan_only,
    const std::function<void(const CheckProgress&)>& progress, const remote::BucketHooks& hooks) {
  VARVE_TRY_ASSIGN(const bool is_reader, remote::is_reader_folder(folder, options.trust_owner));
  if (is_reader) return remote::plan_reader_repair(folder, options, scan_only, hooks);
  OpenOptions how;
  how.trust_owner = options.trust_owner;
  how.read_only = scan_only;
  how.store.access = options.store_access;
  VARVE_TRY_ASSIGN(auto whole, remote::open_whole_folder(folder, how, hooks));
  maintain::RepairHelpers helpers;
  helpers.open_store = std::move(whole.open_store);
  helpers.find_derived = find_derived_faults;
  helpers.find_unstored = series::find_unstored_files;
  helpers.compare_sequence = [&](const std::string& id, const auto& present) {
    return io::refuse_older(io::ClientMemory(options.memory_folder, id), folder, present);
  };
  VARVE_TRY_ASSIGN(auto plan, maintain::Repairer::plan(folder, options, std::move(whole.files),
                                                       scan_only, progress, helpers));
  return remote::with_store_repair(std::move(plan), folder, how, hooks, options.read_store);
}

}  // namespace varve::repo

namespace varve {

Result<std::unique_ptr<Repair>> Repair::plan(
    const std::string& path, const RepairOptions& options, bool scan_only,
    const std::function<void(const CheckProgress&)>& progress) {
  return repo::plan_repair(path, options, scan_only, progress, {});
}

}  // namespace varve
