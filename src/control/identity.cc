// SPDX-License-Identifier: Apache-2.0
#include "control/identity.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <tuple>

#include "control/identity_json.h"

namespace varve::control {

template <>
struct FieldsOf<Identity> {
  static constexpr auto list() {
    using I = Identity;
    return std::tuple{Field{"protocol", &I::protocol},
                      Field{"process", &I::process},
                      Field{"repository", &I::repository},
                      Field{"device", &I::device},
                      Field{"inode", &I::inode},
                      Field{"mount_device", &I::mount_device},
                      Field{"mount_root", &I::mount_root},
                      Field{"mount_namespace", &I::mount_namespace, Presence::kMayLack}};
  }
};

Json JsonOf<Identity>::write(const Identity& identity) {
  Json object = Json::object();
  put_fields(identity, object);
  return object;
}

std::optional<Identity> JsonOf<Identity>::read(const Json& json) {
  Fields fields(json);
  Identity identity;
  identity.protocol = fields.u32("protocol");
  if (fields.ok() && identity.protocol != kProtocol) return identity;
  take_fields(fields, identity);
  if (!fields.ok()) return std::nullopt;
  return identity;
}

std::uint64_t own_mount_namespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/mnt", &status) == 0 ? status.st_ino : 0;
}

Error protocol_refused(std::uint32_t protocol_of_command) {
  return {
      ErrorCode::kUnsupported,
      fmt::format(
          "the daemon uses protocol {} and this command uses protocol {}, because their versions "
          "of Varve differ. Use the daemon's version, or unmount the repository and mount it again",
          kProtocol, protocol_of_command)};
}

Error daemon_refused(std::uint32_t protocol_of_daemon, std::int64_t process) {
  return {ErrorCode::kUnsupported,
          fmt::format("the daemon (process {}) uses protocol {} of {} version of Varve, and this "
                      "command uses protocol {}: unmount the repository and mount it again with "
                      "this version, or use the daemon's version",
                      process, protocol_of_daemon,
                      protocol_of_daemon < kProtocol ? "an older" : "a newer", kProtocol)};
}

}  // namespace varve::control
