// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "base/system_error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "control/place_folder.h"
#include "fs/mount_main.h"
#include "varve/restore.h"

namespace varve::cli {
namespace {

struct MountArguments {
  std::string repository;
  std::string directory;
  std::vector<std::string> lists;
  bool foreground = false;
  bool debug = false;
  bool single_thread = false;
  bool json = false;
};

// Creates a missing mount point. mount(8) and fstab do not use this function: for both, a missing
// folder is a mistake.
Result<void> make_mount_point(const MountArguments& options) {
  std::error_code failed;
  // Without a repository, the mount will fail, so no folder is created.
  if (!control::names_store(options.repository) &&
      !std::filesystem::is_directory(options.repository, failed))
    return {};
  const auto state = std::filesystem::symlink_status(options.directory, failed);
  if (state.type() != std::filesystem::file_type::not_found) return {};
  VARVE_TRY(check_outside_repositories(options.directory, PlaceKind::kRepository, {},
                                       "choose a mount point outside the repository"));
  std::filesystem::create_directories(options.directory, failed);
  if (!failed) return {};
  return base::system_error("cannot create the mount point " + options.directory, failed.value());
}

int run_mount(MountArguments options, const Context& context) {
  if (const auto given =
          take_words({{"REPO", &options.repository},
                      {"DIR", &options.directory, context.instance.value("VARVE_MOUNT")}});
      !given) {
    return fail(given.error());
  }
  fs::MountOptions mount_options;
  for (const std::string& list : options.lists) {
    if (const auto parsed = as_usage(fs::parse_mount_options(list, false, mount_options));
        !parsed) {
      return fail(parsed.error());
    }
  }
  if (const auto fit = as_usage(fs::check_mount_options(mount_options)); !fit) {
    return fail(fit.error());
  }
  if (context.has_key && !mount_options.key.empty()) {
    return fail(usage_error(
        "--passphrase-file, --key-file or --key-command names the key, and an option in -o names "
        "it, too; give it in one way"));
  }
  mount_options.foreground |= options.foreground;
  mount_options.debug |= options.debug;
  if (const auto made = make_mount_point(options); !made) return fail(made.error());
  const auto mounted = fs::mount(options.repository, options.directory, mount_options);
  if (!mounted) return fail(mounted.error());
  if (options.json) {
    Json object = Json::object();
    put_name(object, "repository", options.repository);
    put_name(object, "directory", options.directory);
    print_json("repository", std::move(object));
  }
  return kExitOk;
}

}  // namespace

void add_mount_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<MountArguments>();
  auto command = line.add_command("mount", "Show a repository's series and versions as files");
  command.add_repository(options->repository);
  command.add_option("DIR", options->directory, "Mount point; created if it is missing");
  command
      .add_option("-o", options->lists,
                  "Mount options, comma-separated: ro, allow_other, default_permissions, uid=N, "
                  "gid=N, umask=OCTAL, series=NAME, version=NAME, cache=SIZE, engine=NAME, "
                  "spin=MICROSECONDS; "
                  "see mount.varve(8)")
      .type_name("OPTIONS")
      .one_value_each();
  auto foreground = command.add_flag("-f,--foreground", options->foreground,
                                     "Stay in the foreground until the repository is unmounted");
  auto debug = command.add_flag("-d,--debug", options->debug, "Print every request; implies -f");
  command.add_json_flag(options->json, "the repository and where it is mounted")
      .excludes(foreground)
      .excludes(debug);
  command.add_flag("-s", options->single_thread, "Accepted for other programs; has no effect");
  command.run([options, &context] { return run_mount(*options, context); });
}

}  // namespace varve::cli
