// SPDX-License-Identifier: Apache-2.0
// Where a program takes the key of an encrypted repository from.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "varve/encryption.h"
#include "varve/result.h"

namespace varve::control {

/// The places that a user named for a key. More than one is an error, which read_key() reports.
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
/// Checks that at most one place is set. Errors: kUsage, with the names of two that are.
[[nodiscard]] Result<void> check_one_place(const KeyPlace& place, const KeyPlaceNames& names);

/// Returns what the environment names: VARVE_PASSPHRASE_FILE, VARVE_KEY_FILE or
/// VARVE_KEY_COMMAND; otherwise the credential `varve.passphrase` or `varve.key-file` of the
/// systemd unit.
[[nodiscard]] KeyPlace key_place_of_environment();

/// A repository that a terminal is asked for the passphrase of.
struct AskedRepository {
  std::string path{};
  std::string name{};  ///< The path as the prompt shows it, printable.
  bool trust_owner = false;
};

/// Reads the key from the place. Without a place, asks for the passphrase of the repository on a
/// terminal; see open_terminal(). Asks three times at most, while no key slot takes the answer.
/// VARVE_KEY_SLOT in the environment names the only key slot to try.
/// From then on, the process and its children write no core dumps, and other processes of its user
/// cannot read its memory.
/// A file must belong to the process's user or to root, and be closed to all others; the service
/// manager may open a credential to the group. Pipes and files without a name are taken as they
/// are. Errors: kWrongKey without a place and a terminal; kInterrupted if the user gives up;
/// kInvalid for a file that others may read or change, and for an empty or too large key; kUsage if
/// the environment names two places or no number of a slot; kIo if the command fails; those of
/// opening the file.
[[nodiscard]] Result<UserKey> read_key(const KeyPlace& place, const AskedRepository& repository);
/// As read_key(), for a key that a repository gets: asks for a passphrase twice. `options` begins
/// the names of the options that name the key, such as "new-".
/// Errors: as read_key(); kInvalid if the two differ.
[[nodiscard]] Result<UserKey> read_new_key(const KeyPlace& place, const std::string& options);

/// Returns a source that calls read_key() once, at its first use, and then returns the same key.
[[nodiscard]] KeySource key_source(KeyPlace place, AskedRepository repository);

}  // namespace varve::control
