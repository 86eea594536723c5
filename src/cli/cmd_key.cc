// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "cli/command.h"
#include "cli/key_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/replication.h"
#include "cli/repository_access.h"
#include "control/client.h"
#include "control/key_source.h"
#include "varve/keys.h"

namespace varve::cli {
namespace {

struct KeyArguments {
  std::string action;
  std::string repository;
  std::string number;
  std::string label;
  std::string cost;
  control::KeyPlace new_key;
  bool json = false;
};

std::string cost_text(const KeySlotInfo& slot) {
  if (slot.cost.passes == 0) return "-";
  return fmt::format("{}, {} passes, {} lanes",
                     size_text(std::uint64_t{slot.cost.memory_kib} << 10, false), slot.cost.passes,
                     slot.cost.lanes);
}

/// `is_authentic`: a key has proved that a program with the keys of the repository wrote the slot.
void print_slot_json(const KeySlotInfo& slot, bool is_authentic) {
  Json object;
  object["number"] = slot.number;
  object["kind"] = std::string(key_kind_name(slot.kind));
  object["label"] = slot.label;
  object["authenticated"] = is_authentic;
  put_time(object, "created", {.seconds = slot.created_s});
  if (slot.cost.passes != 0) {
    object["memory_bytes"] = std::uint64_t{slot.cost.memory_kib} << 10;
    object["passes"] = slot.cost.passes;
    object["lanes"] = slot.cost.lanes;
  }
  print_json("key", std::move(object));
}

Error is_plain(const std::string& path) {
  return {ErrorCode::kInvalid, path + " is not encrypted, and has no keys"};
}

void print_slots(const EncryptionInfo& info, bool json, bool is_authentic) {
  if (json) {
    for (const auto& slot : info.slots) print_slot_json(slot, is_authentic);
    return;
  }
  const char* const label = is_authentic ? "LABEL" : "LABEL (NOT AUTHENTICATED)";
  std::vector<std::vector<std::string>> rows = {{"KEY", "KIND", "CREATED", "COST", label}};
  for (const auto& slot : info.slots) {
    rows.push_back({std::to_string(slot.number), std::string(key_kind_name(slot.kind)),
                    time_text({.seconds = slot.created_s}), cost_text(slot),
                    printable(slot.label)});
  }
  print(table(rows, "rllll"));
}

/// Prints the keys. With a key of the user, checks that the listed keys are authentic.
Result<void> list(const KeyArguments& options, const Context& context) {
  VARVE_TRY_ASSIGN(const auto path, repository_at(options.repository, control::Purpose::kLook));
  VARVE_TRY_ASSIGN(const auto info, read_encryption(path, is_trusted(path)));
  if (!info) return is_plain(path);
  Result<EncryptionInfo> authentic = *info;
  const auto place = control::key_place_of_environment();
  if (!place.empty()) {
    const auto key = control::key_source(place, {path, printable(path), is_trusted(path)});
    authentic = read_authentic_encryption(path, key, is_trusted(path));
  }
  print_slots(authentic ? *authentic : *info, options.json, authentic && !place.empty());
  if (!authentic) return Error(authentic.error()).with_more("; the list is not authentic");
  if (place.empty()) {
    note(context,
         "nothing has checked these lines: anyone who can write to the repository can change them. "
         "Name a key, as for other commands, to have them checked");
  }
  return {};
}

void tell(const KeyArguments& options, const Context& context, const KeySlotInfo& slot,
          const char* done) {
  if (options.json) {
    print_slot_json(slot, true);
  } else {
    note(context, fmt::format("{} key {} ({})", done, slot.number, key_kind_name(slot.kind)));
  }
}

/// Makes a recovery code, adds the code as a key, and prints the code. Varve does not store the
/// code.
Result<void> add_recovery(KeySlots& keys, const KeyArguments& options, const Context& context) {
  NewKey key;
  key.label = options.label;
  key.key.kind = KeyKind::kRecovery;
  VARVE_TRY_ASSIGN(key.key.secret, make_recovery_code());
  VARVE_TRY_ASSIGN(const auto slot, keys.add(key));
  const auto code = base::as_text(key.key.secret.bytes());
  if (options.json) {
    Json object;
    object["number"] = slot.number;
    object["code"] = std::string(code);
    print_json("recovery_code", std::move(object));
    return {};
  }
  print(code);
  print("\n");
  note(context,
       fmt::format("this code opens the repository, as key {}; keep it on paper, because it "
                   "is stored nowhere and never shown again",
                   slot.number));
  return {};
}

Result<std::uint32_t> number_of(const KeyArguments& options) {
  const auto& text = options.number;
  const bool is_number = !text.empty() && text.size() <= 9 &&
                         text.find_first_not_of("0123456789") == std::string::npos;
  if (is_number) return static_cast<std::uint32_t>(std::stoul(text));
  return usage_error("give the number of a key; `varve key list` shows them");
}

/// Returns the label of the key with this number; "" if there is no such key.
std::string label_of(const EncryptionInfo& info, std::uint32_t number) {
  for (const auto& slot : info.slots) {
    if (slot.number == number) return slot.label;
  }
  return {};
}

/// Opens the slots, beside the daemon if a daemon has the repository mounted.
Result<std::unique_ptr<KeySlots>> open_slots(const std::string& path) {
  auto options = options_to_write(path);
  auto opened =
      control::open_when_unlocked(path, lock_wait(), [&] { return KeySlots::open(path, options); });
  if (opened || opened.error().code() != ErrorCode::kLocked) return opened;
  auto connected = control::Client::connect(path);
  if (!connected && connected.error().code() != ErrorCode::kNotFound) return connected.error();
  if (!connected) {
    return Error(opened.error())
        .with_more(
            "; run this command again once the other command has ended. `varve key list` "
            "works meanwhile");
  }
  const auto client = std::make_shared<control::Client>(*std::move(connected));
  return KeySlots::open_beside(path, options, [client](const std::string& superblock) {
    return client->ask<control::Operation::kKeys>(control::KeysRequest{.superblock = superblock});
  });
}

/// Changes the keys of the repository in the folder `path`, and returns the slots for closing.
Result<std::unique_ptr<KeySlots>> change_keys(const KeyArguments& options, const Context& context,
                                              const std::string& path) {
  VARVE_TRY_ASSIGN(const auto cost, parse_key_cost(options.cost, options.new_key));
  std::optional<std::uint32_t> number;
  if (options.action == "rm" || options.action == "change") {
    VARVE_TRY_ASSIGN(number, number_of(options));
  }
  VARVE_TRY_ASSIGN(const auto info, read_encryption(path, is_trusted(path)));
  if (!info) return is_plain(path);
  VARVE_TRY_ASSIGN(auto keys, open_slots(path));
  if (options.action == "rm") {
    VARVE_TRY(keys->remove(*number));
    if (!options.json) note(context, fmt::format("removed key {}", *number));
  } else if (options.action == "recovery") {
    VARVE_TRY(add_recovery(*keys, options, context));
  } else {
    NewKey key;
    key.label = number && options.label.empty() ? label_of(keys->info(), *number) : options.label;
    key.cost = cost;
    VARVE_TRY_ASSIGN(key.key, control::read_new_key(options.new_key, "new-"));
    VARVE_TRY_ASSIGN(const auto slot, number ? keys->replace(*number, key) : keys->add(key));
    tell(options, context, slot, number ? "changed to" : "added");
  }
  return keys;
}

Result<void> change(const KeyArguments& options, const Context& context) {
  VARVE_TRY_ASSIGN(const auto path, repository_at(options.repository, control::Purpose::kChange));
  VARVE_TRY_ASSIGN(auto keys, change_keys(options, context, path));
  const auto done = keys->close();
  keys.reset();
  // The object store may lack the change: after an error, or because a daemon uploads it.
  const auto missing = note_on_keys(path);
  if (!done) return Error(done.error()).with_more(missing);
  if (!missing.empty()) note(context, "the daemon uploads the change" + missing);
  return {};
}

/// Checks that the action makes a key of the user's choice, if an option describes a new key.
Result<void> check_new_key(const KeyArguments& options) {
  VARVE_TRY(check_key_options(options.new_key, "new-"));
  const bool makes = options.action == "add" || options.action == "change";
  if (makes || (options.new_key.empty() && options.cost.empty())) return {};
  return usage_error("`varve key " + options.action +
                     "` takes no new key; the options for one belong to add and change");
}

int run_key(KeyArguments options, const Context& context) {
  if (const auto fit = check_new_key(options); !fit) return fail(fit.error());
  const bool takes_number = options.action == "rm" || options.action == "change";
  const auto purpose =
      options.action == "list" ? control::Purpose::kLook : control::Purpose::kChange;
  const auto given =
      takes_number
          ? take_repository({{"REPO", &options.repository}, {"NUMBER", &options.number}}, purpose)
          : take_repository({{"REPO", &options.repository}}, purpose);
  if (!given) return fail(given.error());
  const auto done = options.action == "list" ? list(options, context) : change(options, context);
  return done ? kExitOk : fail(done.error());
}

}  // namespace

void add_key_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<KeyArguments>();
  auto command = line.add_command("key", "List and change the keys of an encrypted repository");
  command
      .add_option("ACTION", options->action,
                  "list, add, rm, change, or recovery, which prints a code to keep on paper")
      .one_of({"list", "add", "rm", "change", "recovery"})
      .required();
  command.add_repository(options->repository);
  command.add_option("NUMBER", options->number, "Number of the key to remove or change");
  command.add_option("--label", options->label, "Text that lists show with the new key");
  add_new_key_options(command, options->new_key);
  add_key_cost_option(command, options->cost);
  command.add_json_flag(options->json, "the keys");
  command.run([options, &context] { return run_key(*options, context); });
}

}  // namespace varve::cli
