// SPDX-License-Identifier: Apache-2.0
#include "fs/command_handlers.h"

#include <memory>
#include <string_view>
#include <vector>

#include "control/control_handlers.h"
#include "control/local_control.h"
#include "varve/backup.h"
#include "varve/retention.h"

namespace varve::fs {
namespace {

/// Controls the mounted repository. Changes of versions go through VersionCommands, to notify the
/// kernel.
class MountControl final : public control::LocalControl {
 public:
  MountControl(Repository& repository, VersionCommands& commands)
      : LocalControl(repository), commands_(commands) {}

  [[nodiscard]] bool arranges_by_itself() const override { return true; }

 protected:
  Result<void> check_changes() override { return commands_.check_changes(); }
  Result<SealOutcome> seal_version(const VersionInfo& version, const control::SealRequest& request,
                                   const control::StopRequest& stop) override {
    return commands_.seal(version.series, version.number, request, [&] { return stop.stopped(); });
  }
  Result<VersionInfo> open_version(const SeriesInfo& series, std::string_view name,
                                   const NewFile& root) override {
    return commands_.open_version(series, name, root);
  }
  Result<VersionInfo> clone_version(const SeriesInfo& series, VersionNumber source,
                                    std::string_view name) override {
    return commands_.clone_version(series, source, name);
  }
  Result<void> discard_version(SeriesId series, VersionNumber number) override {
    return commands_.discard_version(series, number);
  }
  Result<void> rename_version(const VersionInfo& version, std::string_view new_name) override {
    return commands_.rename_version(version, new_name);
  }
  Result<void> rename_series(const SeriesInfo& series, std::string_view new_name) override {
    return commands_.rename_series(series, new_name);
  }
  Result<DeletionForecast> delete_versions(SeriesId series,
                                           const std::vector<VersionNumber>& numbers,
                                           const DeletionOptions& options) override {
    return commands_.delete_versions(series, numbers, options);
  }

 private:
  VersionCommands& commands_;
};

}  // namespace

void add_command_handlers(Repository& repository, VersionCommands& commands,
                          control::Handlers& handlers) {
  control::add_handlers(std::make_shared<MountControl>(repository, commands), handlers);
}

}  // namespace varve::fs
