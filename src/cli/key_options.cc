// SPDX-License-Identifier: Apache-2.0
#include "cli/key_options.h"

#include <cstdlib>

#include "cli/command.h"

namespace varve::cli {
namespace {

void put_variable(const char* name, const std::string& value) {
  if (value.empty()) {
    ::unsetenv(name);
  } else {
    ::setenv(name, value.c_str(), 1);
  }
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

Result<void> check_key_options(const control::KeyPlace& place) {
  const int named = static_cast<int>(!place.passphrase_file.empty()) +
                    static_cast<int>(!place.key_file.empty()) +
                    static_cast<int>(!place.key_command.empty());
  if (named <= 1) return {};
  return usage_error("give the key in one way: a passphrase file, a key file or a command");
}

void put_key_into_environment(const control::KeyPlace& place) {
  if (place.empty()) return;
  put_variable("VARVE_PASSPHRASE_FILE", place.passphrase_file);
  put_variable("VARVE_KEY_FILE", place.key_file);
  put_variable("VARVE_KEY_COMMAND", place.key_command);
}

}  // namespace varve::cli
