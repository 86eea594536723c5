// SPDX-License-Identifier: Apache-2.0
#include "control/identity.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include "control/identity_json.h"
#include "control/json_fields.h"

namespace varve::control {

Json identity_to_json(const Identity& identity) {
  return {{"protocol", identity.protocol},
          {"process", identity.process},
          {"repository", text_to_json(identity.repository)},
          {"device", identity.device},
          {"inode", identity.inode},
          {"mount_device", identity.mount_device},
          {"mount_root", text_to_json(identity.mount_root)},
          {"mount_namespace", identity.mount_namespace}};
}

std::optional<Identity> identity_from_json(const Json& object) {
  Fields fields(object);
  Identity identity;
  identity.protocol = fields.u32("protocol");
  if (fields.ok() && identity.protocol != kProtocol) return identity;
  identity.process = fields.integer("process");
  identity.repository = fields.text("repository");
  identity.device = fields.count("device");
  identity.inode = fields.count("inode");
  identity.mount_device = fields.count("mount_device");
  identity.mount_root = fields.text("mount_root");
  if (fields.has("mount_namespace")) identity.mount_namespace = fields.count("mount_namespace");
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
