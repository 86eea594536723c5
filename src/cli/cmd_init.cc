// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/arrange_policy.h"
#include "cli/command.h"
#include "cli/key_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/replication.h"
#include "cli/repository_access.h"
#include "cli/repository_settings_words.h"
#include "control/key_source.h"
#include "control/mounted_path.h"
#include "control/place_folder.h"
#include "control/store_access.h"
#include "varve/choices.h"
#include "varve/placement.h"
#include "varve/pool_index.h"
#include "varve/repository.h"
#include "varve/restore.h"

namespace varve::cli {
namespace {

struct InitArguments {
  std::string repository;
  std::string compression = compression_text(RepositoryParameters());
  std::string chunker = RepositoryParameters().chunker;
  std::string chunk_size = "8K";
  std::string placement = std::string(placement_name(Placement::kLineage));
  std::string rewrite = std::string(rewrite_name(Rewrite::kNone));
  std::string pool_index = pool_index_text(PoolIndexChoice());
  std::string policy;
  std::optional<std::uint32_t> parity;
  bool json = false;
  bool encrypt = false;
  std::string cipher;
  std::string key_cost;
  std::string local;  ///< Folder of a repository in an object store.
  std::string object_lock;
  PlaceOptions store;
};

std::vector<std::string> chunker_names() {
  std::vector<std::string> names;
  for (auto& choice : chunker_choices()) names.push_back(std::move(choice.name));
  return names;
}

/// Returns the values of --compression, for the help and the error message.
std::string compression_help() {
  std::string help;
  for (const auto& choice : compression_choices()) {
    help += (help.empty() ? "" : ", ") + choice.help;
  }
  return help;
}

/// Returns the choices for an encrypted repository, with the first key.
Result<std::optional<Encryption>> choose_encryption(const InitArguments& options) {
  const auto place = control::key_place_of_environment();
  if (!options.encrypt && !place.empty()) {
    return usage_error(
        "a key is given, but not --encrypt: the repository would store its data in the clear");
  }
  if (!options.encrypt) return std::optional<Encryption>();
  // Before a terminal is asked for a passphrase.
  if (control::is_repository(options.repository)) {
    return Error(ErrorCode::kExists, options.repository + " is a Varve repository already");
  }
  Encryption encryption;
  encryption.cipher = options.cipher;
  VARVE_TRY_ASSIGN(encryption.first_key.cost, parse_key_cost(options.key_cost, place));
  VARVE_TRY_ASSIGN(encryption.first_key.key, control::read_new_key(place, ""));
  return std::optional(std::move(encryption));
}

/// Takes a place in an object store out of the arguments, if the arguments name a place.
Result<void> take_store(InitArguments& options) {
  if (!control::names_store(options.repository)) {
    if (options.local.empty() && options.store.cache_size.empty() &&
        options.store.staging_size.empty() && options.object_lock.empty()) {
      return {};
    }
    return usage_error(
        "--local, --cache-size, --staging-size and --object-lock are for a repository in "
        "s3://BUCKET/PREFIX");
  }
  if (options.local.empty()) {
    return usage_error("give the folder on this machine too: --local=DIR");
  }
  options.store.place.place = std::exchange(options.repository, options.local);
  VARVE_TRY(take_sizes(options.store));
  put_into_environment(options.store);
  return {};
}

int run_init(InitArguments options, const Context& context) {
  if (const auto given = take_words({{"REPO", &options.repository}}); !given) {
    return fail(given.error());
  }
  if (const auto taken = take_store(options); !taken) return fail(taken.error());
  RepositoryParameters parameters;
  if (!choose_compression(options.compression, parameters)) {
    return fail(usage_error("--compression is " + compression_help()));
  }
  const auto placement = as_usage(parse_placement(options.placement));
  if (!placement) return fail(placement.error());
  parameters.placement = *placement;
  const auto rewrite = as_usage(parse_rewrite(options.rewrite));
  if (!rewrite) return fail(rewrite.error());
  FirstSettings settings;
  settings.new_series = {*placement, *rewrite};
  const auto pool_index = as_usage(parse_pool_index(options.pool_index));
  if (!pool_index) return fail(pool_index.error());
  settings.pool_index = *pool_index;
  if (!options.policy.empty() || options.parity) {
    settings.arrange.emplace();
    if (!options.policy.empty()) {
      const auto parsed = parse_policy(options.policy);
      if (!parsed) return fail(parsed.error());
      settings.arrange->policy = *parsed;
    }
    settings.arrange->parity_percent = options.parity.value_or(0);
  }
  parameters.chunker = options.chunker;
  if (!options.encrypt && options.chunker.ends_with("-keyed")) {
    return fail(usage_error("--chunker " + options.chunker + " needs --encrypt: it cuts by a key"));
  }
  // The smallest chunk is a quarter of the average, the largest eight times the average.
  parameters.chunk_bytes_avg = options.chunk_size == "4K"    ? 4096
                               : options.chunk_size == "16K" ? 16384
                                                             : 8192;
  parameters.chunk_bytes_min = parameters.chunk_bytes_avg / 4;
  parameters.chunk_bytes_max = parameters.chunk_bytes_avg * 8;
  const auto lock =
      options.object_lock.empty() ? Result(ObjectLock()) : parse_object_lock(options.object_lock);
  if (!lock) return fail(lock.error());
  const auto outside =
      check_outside_repositories(options.repository, PlaceKind::kRepository, own_folders(""),
                                 "create the repository in a folder outside it");
  if (!outside) return fail(outside.error());
  CreateOptions how;
  how.settings = settings;
  how.trust_owner = is_trusted(options.repository);
  how.store_access = control::store_access_of_environment();
  auto encryption = choose_encryption(options);
  if (!encryption) return fail(encryption.error());
  how.encryption = *std::move(encryption);
  const auto made = options.local.empty() ? Repository::create(options.repository, parameters, how)
                                          : create_in_store(options.store.place, options.repository,
                                                            parameters, how, *lock);
  if (!made) return fail(made.error());
  if (!options.local.empty()) {
    remember_store_folder(options_to_read(options.repository).memory_folder,
                          options.store.place.place, options.repository);
  }
  if (options.json) {
    Json object = Json::object();
    put_name(object, "repository", options.repository);
    print_json("repository", std::move(object));
  } else {
    note(context, "created a repository in " + options.repository);
    if (options.encrypt) {
      note(context,
           "without a key, all that it stores is lost; keep a recovery code on paper: varve "
           "key recovery " +
               options.repository);
    }
  }
  return kExitOk;
}

}  // namespace

void add_init_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<InitArguments>();
  auto command = line.add_command("init", "Create a repository in an empty or new folder");
  command.add_repository(options->repository);
  command.add_option("--compression", options->compression, compression_help());
  command.add_option("--chunker", options->chunker, "Algorithm that cuts files into chunks")
      .one_of(chunker_names())
      .show_default();
  command.add_option("--chunk-size", options->chunk_size, "Average size of a chunk")
      .one_of({"4K", "8K", "16K"})
      .show_default();
  command
      .add_option("--placement", options->placement,
                  "Where new series store their data: lineage, lineage+pool or pool")
      .show_default();
  command
      .add_option("--rewrite", options->rewrite,
                  "Duplicates in the pool that new series store again: none, har, cap, cbr, "
                  "har+cap or har+cbr")
      .show_default();
  command
      .add_option("--pool-index", options->pool_index,
                  "How chunks of the pool are found: exact, stream, zero-chunk or zero-chunk:N")
      .show_default();
  command.add_option("--arrange-policy", options->policy, policy_help());
  command
      .add_option("--parity", options->parity,
                  "Parity to keep, as a percentage of the data: 0 (default) to 25; repairs damage "
                  "without a second copy")
      .in(NumberRange<std::uint32_t>{0, kParityPercentMax});
  command
      .add_option("--local", options->local,
                  "Folder on this machine of a repository in an object store (REPO is "
                  "s3://BUCKET/PREFIX)")
      .type_name("DIR");
  command
      .add_option("--volume-class", options->store.place.volume_class,
                  "Storage class of volumes in an object store, such as STANDARD_IA (default: that "
                  "of the store)")
      .type_name("CLASS");
  command
      .add_option("--object-lock", options->object_lock,
                  "Lock all objects in the store for so many days, and extend the locks at seals; "
                  "see varve-config(1)")
      .type_name("DAYS[,governance]");
  add_store_options(command, options->store);
  command.add_json_flag(options->json, "the repository");
  const auto encrypt = command.add_flag("--encrypt", options->encrypt,
                                        "Encrypt all that the repository stores; see varve-key(1)");
  command
      .add_option("--cipher", options->cipher, "Cipher; the faster one on this machine by default")
      .one_of({"aes-256-gcm", "chacha20-poly1305"})
      .needs(encrypt);
  add_key_cost_option(command, options->key_cost).needs(encrypt);
  command.run([options, &context] { return run_init(*options, context); });
}

}  // namespace varve::cli
