// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/replication.h"
#include "cli/repository_access.h"
#include "control/mounted_path.h"
#include "control/place_folder.h"

namespace varve::cli {
namespace {

struct AttachArguments {
  PlaceOptions store;
  std::string folder;
  bool writes = false;
  bool json = false;
};

// A mount shows the folder as an attached one until its end.
Result<void> require_unmounted(const std::string& folder) {
  const auto mounts = control::find_mounts_of(folder);
  if (!mounts && mounts.error().code() != ErrorCode::kNotFound) return mounts.error();
  if (!mounts || mounts->empty()) return {};
  return Error(ErrorCode::kLocked, folder + " is mounted on " + mounts->front().mount_point +
                                       "; unmount it first, then the folder can take over");
}

int run_attach(AttachArguments options, const Context& context) {
  if (!control::names_store(options.store.place.place)) {
    return fail(
        usage_error(options.store.place.place + " is no object store; give s3://BUCKET/PREFIX"));
  }
  if (const auto taken = take_sizes(options.store); !taken) return fail(taken.error());
  put_into_environment(options.store);
  auto how = options_to_write(options.folder);
  how.read_only = true;
  const auto role = options.writes ? AttachRole::kWrites : AttachRole::kReads;
  const auto present = replication_info(options.folder, is_trusted(options.folder));
  const bool is_known = present && *present;
  const bool is_promoted = options.writes && is_known && (*present)->reads_only;
  if (is_promoted) {
    if (const auto unused = require_unmounted(options.folder); !unused) return fail(unused.error());
  }
  const auto attached = attach_to_store(options.store.place, options.folder, how, role);
  if (!attached) return fail(attached.error());
  remember_store_folder(how.memory_folder, options.store.place.place, options.folder);
  if (options.json) {
    Json object = Json::object();
    put_name(object, "repository", options.folder);
    print_json("repository", std::move(object));
  } else {
    note(context, options.folder + (options.writes ? " writes to" : " reads") +
                      " the repository in " + options.store.place.place +
                      (is_promoted ? " from now on; it keeps its settings"
                       : is_known  ? " already; it keeps its settings"
                                   : ""));
  }
  return kExitOk;
}

}  // namespace

void add_attach_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<AttachArguments>();
  auto command =
      line.add_command("attach", "Make a folder that reads a repository in an object store");
  command.add_option("STORE", options->store.place.place, "s3://BUCKET/PREFIX").required();
  command
      .add_option("DIR", options->folder,
                  "An empty or new folder; with --write also a folder that is attached already")
      .required();
  command.add_flag("--write", options->writes,
                   "Take over: make this the only folder that writes to the repository");
  add_store_options(command, options->store);
  command.add_json_flag(options->json, "the folder");
  command.run([options, &context] { return run_attach(*options, context); });
}

}  // namespace varve::cli
