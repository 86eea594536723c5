// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "copy/copier.h"
#include "copy/copy_server.h"
#include "copy/local_target.h"
#include "copy/remote_target.h"
#include "varve/copy.h"
#include "varve/replication.h"

namespace varve {

std::shared_ptr<copy::Target> copy_target(Repository& repository) {
  return std::make_shared<copy::LocalTarget>(repository);
}

Result<TargetSetup> target_setup(Repository& source) {
  TargetSetup setup;
  setup.parameters = source.parameters();
  VARVE_TRY_ASSIGN(setup.new_series, source.series_defaults());
  VARVE_TRY_ASSIGN(setup.arrange, source.arrange_settings());
  VARVE_TRY_ASSIGN(setup.pool_index, source.pool_index());
  return setup;
}

Result<void> create_target(const std::string& path, const TargetSetup& setup,
                           const CreateOptions& options) {
  CreateOptions how = options;
  how.settings = {setup.new_series, setup.arrange, setup.pool_index};
  return Repository::create(path, setup.parameters, how);
}

Result<void> create_target(const StorePlace& place, const std::string& path,
                           const TargetSetup& setup, const CreateOptions& options) {
  CreateOptions how = options;
  auto arrange = setup.arrange;
  // The default of a local source is not a choice for a store.
  if (arrange.dead_permille == ArrangeSettings().dead_permille) {
    arrange.dead_permille = kStoreDeadPermille;
  }
  how.settings = {setup.new_series, arrange, setup.pool_index};
  return create_in_store(place, path, setup.parameters, how);
}

Result<ConnectedTarget> connect_target(int in, int out, const TargetSetup& setup, bool dry_run) {
  auto remote = std::make_shared<copy::RemoteTarget>(in, out);
  VARVE_TRY_ASSIGN(const auto id, remote->connect(setup, dry_run));
  ConnectedTarget connected;
  if (!id.empty()) connected.target = std::move(remote);
  return connected;
}

Result<void> serve_copy(const OpenTarget& open, const SourceRights& rights, int in, int out) {
  copy::MessageStream stream(in, out);
  VARVE_TRY(stream.greet());
  return copy::CopyServer(open, rights, stream).run();
}

Result<CopyReport> copy_versions(Repository& source, copy::Target* target,
                                 const CopyOptions& options, const CopyObserver& observer) {
  return copy::Copier(source, target, options, observer).run();
}

}  // namespace varve
