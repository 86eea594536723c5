// SPDX-License-Identifier: Apache-2.0
// Reads the key of an encrypted repository from a file, a command or the terminal.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "varve/encryption.h"
#include "varve/result.h"

namespace varve::control {

/// The places that a user named for a key. read_key() reports an error if more than one is set.
struct KeyPlace {
  std::string passphrase_file{};  ///< A file with a passphrase, or "-" for standard input.
  std::string key_file{};         ///< A file whose bytes are the key, or "-" for standard input.
  std::string key_command{};      ///< A command of the shell that prints a passphrase.

  [[nodiscard]] bool empty() const {
    return passphrase_file.empty() && key_file.empty() && key_command.empty();
  }
};

/// The names of the places, as the user gives them, in the order of KeyPlace.
using KeyPlaceNames = std::array<std::string_view, 3>;
/// Checks that at most one place is set. Errors: kUsage, with the names of two places in conflict.
[[nodiscard]] Result<void> check_one_place(const KeyPlace& place, const KeyPlaceNames& names);

/// Returns the place named by the environment: VARVE_PASSPHRASE_FILE, VARVE_KEY_FILE or
/// VARVE_KEY_COMMAND; otherwise the credential `varve.passphrase` or `varve.key-file` of the
/// systemd unit.
[[nodiscard]] KeyPlace key_place_of_environment();

/// A repository whose passphrase the user types on a terminal.
struct AskedRepository {
  std::string path{};
  std::string name{};  ///< The path as the prompt shows it, printable.
  bool trust_owner = false;
};

/// Reads the key from the place. Without a place, asks for the passphrase of the repository on a
/// terminal; see open_terminal(). Asks at most three times, as long as the passphrase opens no key
/// slot. VARVE_KEY_SLOT in the environment names the only key slot to try.
/// From then on, the process and its children write no core dumps, and other processes of the same
/// user cannot read the memory of the process.
/// A file must belong to the process's user or to root, without access for any other user; the
/// service manager may open a credential to the group. Pipes and files without a name are not
/// checked.
/// Errors: kWrongKey without a place and a terminal; kInterrupted if the user gives up; kInvalid
/// for a file open to other users, and for an empty or too large key; kUsage if the environment
/// names two places or an invalid number of a slot; kIo if the command fails; the errors of opening
/// the file.
[[nodiscard]] Result<UserKey> read_key(const KeyPlace& place, const AskedRepository& repository);
/// As read_key(), for a new key of a repository: asks for a passphrase twice. `options` begins the
/// names of the options for the key, such as "new-".
/// Errors: as read_key(); kInvalid if the two passphrases differ.
[[nodiscard]] Result<UserKey> read_new_key(const KeyPlace& place, const std::string& options);

/// Returns a source that calls read_key() once, at the first use, and later returns the same key.
[[nodiscard]] KeySource key_source(KeyPlace place, AskedRepository repository);

}  // namespace varve::control
