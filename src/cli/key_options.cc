// SPDX-License-Identifier: Apache-2.0
#include "cli/key_options.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "cli/command.h"
#include "cli/quantity.h"
#include "varve/keys.h"

namespace varve::cli {
namespace {

void put_variable(const char* name, const std::string& value) {
  if (value.empty()) {
    ::unsetenv(name);
  } else {
    ::setenv(name, value.c_str(), 1);
  }
}

/// Reads a number of at most 32 bits. Returns false for any text behind the number.
bool read_number(std::string_view text, std::uint32_t& value) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stop == text.data() + text.size();
}

/// Returns the cost of a text such as "64M:3:4".
Result<PassphraseCost> parse_cost(const std::string& text) {
  const Error wrong = usage_error("\"" + text +
                                  "\" is no cost of a passphrase; write MEMORY:PASSES:LANES, such "
                                  "as 64M:3:4");
  const auto first = text.find(':');
  const auto second = text.find(':', first == std::string::npos ? first : first + 1);
  if (second == std::string::npos) return wrong;
  const auto bytes = parse_bytes(std::string_view(text).substr(0, first));
  PassphraseCost cost;
  if (!bytes || *bytes % 1024 != 0 ||
      !read_number(std::string_view(text).substr(first + 1, second - first - 1), cost.passes) ||
      !read_number(std::string_view(text).substr(second + 1), cost.lanes)) {
    return wrong;
  }
  // check_passphrase_cost() refuses a larger memory in any case.
  constexpr std::uint64_t kKibMax = std::numeric_limits<std::uint32_t>::max();
  cost.memory_kib = static_cast<std::uint32_t>(std::min(*bytes / 1024, kKibMax));
  VARVE_TRY(as_usage(check_passphrase_cost(cost)));
  return cost;
}

}  // namespace

void add_key_options(CommandLine& line, control::KeyPlace& place) {
  line.add_option("--passphrase-file", place.passphrase_file,
                  "File with the passphrase of an encrypted repository; - for standard input")
      .type_name("FILE");
  line.add_option("--key-file", place.key_file,
                  "File that is the key of an encrypted repository; - for standard input")
      .type_name("FILE");
  line.add_option("--key-command", place.key_command,
                  "Command that prints the passphrase of an encrypted repository")
      .type_name("COMMAND");
}

void add_new_key_options(Command& command, control::KeyPlace& place) {
  command
      .add_option("--new-passphrase-file", place.passphrase_file,
                  "File with the new passphrase; - for standard input")
      .type_name("FILE");
  command
      .add_option("--new-key-file", place.key_file,
                  "File that is the new key; - for standard input")
      .type_name("FILE");
  command
      .add_option("--new-key-command", place.key_command, "Command that prints the new passphrase")
      .type_name("COMMAND");
}

Option add_key_cost_option(Command& command, std::string& cost) {
  return command
      .add_option("--key-cost", cost,
                  "Memory, passes and lanes that each try of the passphrase costs (default: "
                  "64M:3:4)")
      .type_name("MEMORY:PASSES:LANES");
}

Result<PassphraseCost> parse_key_cost(const std::string& cost, const control::KeyPlace& place) {
  if (cost.empty()) return PassphraseCost();
  if (!place.key_file.empty()) {
    return usage_error("--key-cost is for passphrases; a key file is random, and costs nothing");
  }
  return parse_cost(cost);
}

void add_target_key_options(Command& command, control::KeyPlace& place) {
  command
      .add_option("--target-passphrase-file", place.passphrase_file,
                  "File with the passphrase of DEST; by default the key of REPO")
      .type_name("FILE");
  command.add_option("--target-key-file", place.key_file, "File that is the key of DEST")
      .type_name("FILE");
  command
      .add_option("--target-key-command", place.key_command,
                  "Command that prints the passphrase of DEST")
      .type_name("COMMAND");
}

Result<void> check_key_options(const control::KeyPlace& place, const std::string& prefix) {
  const auto file = "--" + prefix + "passphrase-file";
  const auto key = "--" + prefix + "key-file";
  const auto command = "--" + prefix + "key-command";
  return control::check_one_place(place, {file, key, command});
}

void put_key_into_environment(const control::KeyPlace& place) {
  if (place.empty()) return;
  put_variable("VARVE_PASSPHRASE_FILE", place.passphrase_file);
  put_variable("VARVE_KEY_FILE", place.key_file);
  put_variable("VARVE_KEY_COMMAND", place.key_command);
}

}  // namespace varve::cli
