// SPDX-License-Identifier: Apache-2.0
#include "control/key_source.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/system_error.h"
#include "base/unique_fd.h"
#include "control/command_output.h"
#include "control/terminal_prompt.h"
#include "varve/keys.h"

namespace varve::control {
namespace {

constexpr int kTriesMax = 3;
constexpr KeyPlaceNames kVariables = {"VARVE_PASSPHRASE_FILE", "VARVE_KEY_FILE",
                                      "VARVE_KEY_COMMAND"};

std::string variable(std::string_view name) {
  const char* const value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::string() : std::string(value);
}

/// Returns the path of the named credential of the systemd unit; "" without such a credential.
std::string credential(const char* name) {
  const std::string folder = variable("CREDENTIALS_DIRECTORY");
  if (folder.empty()) return {};
  std::string path = folder + "/" + name;
  return ::access(path.c_str(), R_OK) == 0 ? path : std::string();
}

/// Removes a newline from the end, added by editors and commands.
Result<Secret> without_newline(const Secret& secret) {
  auto bytes = secret.bytes();
  if (!bytes.empty() && bytes.back() == std::byte{'\n'}) bytes = bytes.first(bytes.size() - 1);
  if (!bytes.empty() && bytes.back() == std::byte{'\r'}) bytes = bytes.first(bytes.size() - 1);
  return Secret::copy_of(bytes);
}

// Pipes and deleted files have no name, so no other user can open them.
Result<void> check_private(const std::string& path, const struct stat& status) {
  if (!S_ISREG(status.st_mode) || status.st_nlink == 0) return {};
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return Error(ErrorCode::kInvalid,
                 fmt::format("{}, which has a key, belongs to another user (uid {}), who may read "
                             "and change it; run `chown {} {}`, then `chmod 600 {}`",
                             path, status.st_uid, ::geteuid(), path, path));
  }
  // systemd lets the unit's user read by an access list, visible as the group's right to read.
  const std::string folder = variable("CREDENTIALS_DIRECTORY");
  const bool is_credential = !folder.empty() && path.starts_with(folder + "/");
  const mode_t refused = is_credential ? 0037 : 0077;
  if ((status.st_mode & refused) == 0) return {};
  return Error(ErrorCode::kInvalid, fmt::format("other users may read or change {}, which has a "
                                                "key; run `chmod 600 {}`",
                                                path, path));
}

Result<Secret> read_secret_file(const std::string& path) {
  if (path == "-") return read_to_end(STDIN_FILENO, "standard input");
  // A FIFO may be a substitution of the shell; a key is never the controlling terminal.
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return base::system_error(path, errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return base::system_error(path, errno);
  if (S_ISDIR(status.st_mode)) return Error(ErrorCode::kInvalid, path + " is a directory");
  VARVE_TRY(check_private(path, status));
  return read_to_end(fd.get(), path);
}

/// Reads a key from a place that is not empty.
Result<UserKey> read_from(const KeyPlace& place) {
  // Checks only the environment: the callers have checked the places of the command line.
  VARVE_TRY(check_one_place(place, kVariables));
  UserKey key;
  if (!place.key_file.empty()) {
    key.kind = KeyKind::kKeyFile;
    VARVE_TRY_ASSIGN(key.secret, read_secret_file(place.key_file));
  } else if (!place.passphrase_file.empty()) {
    VARVE_TRY_ASSIGN(const auto text, read_secret_file(place.passphrase_file));
    VARVE_TRY_ASSIGN(key.secret, without_newline(text));
  } else {
    key.kind = KeyKind::kCommand;
    VARVE_TRY_ASSIGN(const auto text,
                     output_of_command(place.key_command, "the command for the key"));
    VARVE_TRY_ASSIGN(key.secret, without_newline(text));
  }
  if (key.secret.empty()) return Error(ErrorCode::kInvalid, "the key is empty");
  return key;
}

/// Returns the number of the only key slot to try; 0 for all slots.
Result<std::uint32_t> slot_of_environment() {
  const std::string text = variable("VARVE_KEY_SLOT");
  if (text.empty()) return std::uint32_t{0};
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end && number != 0) return number;
  return Error(ErrorCode::kUsage,
               "VARVE_KEY_SLOT is not the number of a key; `varve key list` shows the numbers");
}

Result<UserKey> ask(const base::UniqueFd& terminal, const std::string& prompt) {
  UserKey key;
  VARVE_TRY_ASSIGN(key.secret, ask_terminal(terminal, prompt));
  if (key.secret.empty()) return Error(ErrorCode::kInvalid, "the passphrase is empty");
  return key;
}

Error no_key(const std::string& repository) {
  return {
      ErrorCode::kWrongKey,
      repository +
          " is encrypted; give its key with --passphrase-file, --key-file or --key-command (mount "
          "options: passphrase_file=, keyfile= or key_command=)"};
}

// Expanded keys and contents of files are in ordinary memory.
void hide_memory() {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  const bool hidden =
      ::setrlimit(RLIMIT_CORE, &none) == 0 && ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
  if (!hidden) base::log(base::LogLevel::kWarning, "cannot turn off core dumps");
}

}  // namespace

Result<void> check_one_place(const KeyPlace& place, const KeyPlaceNames& names) {
  std::string first;
  const std::array<const std::string*, 3> values = {&place.passphrase_file, &place.key_file,
                                                    &place.key_command};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i]->empty()) continue;
    if (!first.empty()) {
      return Error(ErrorCode::kUsage,
                   fmt::format("{} and {} both name the key; give it in one way", first, names[i]));
    }
    first = names[i];
  }
  return {};
}

KeyPlace key_place_of_environment() {
  KeyPlace place;
  place.passphrase_file = variable(kVariables[0]);
  place.key_file = variable(kVariables[1]);
  place.key_command = variable(kVariables[2]);
  // The first credential counts.
  if (place.empty()) place.passphrase_file = credential("varve.passphrase");
  if (place.empty()) place.key_file = credential("varve.key-file");
  return place;
}

Result<UserKey> read_key(const KeyPlace& place, const AskedRepository& repository) {
  hide_memory();
  VARVE_TRY_ASSIGN(const auto slot, slot_of_environment());
  if (!place.empty()) {
    VARVE_TRY_ASSIGN(auto key, read_from(place));
    key.slot = slot;
    return key;
  }
  const auto terminal = open_terminal();
  if (!terminal.valid()) return no_key(repository.name);
  for (int tries = 1;; ++tries) {
    const std::string again = tries == 1 ? "" : "This passphrase opens no key slot. ";
    VARVE_TRY_ASSIGN(auto key, ask(terminal, again + "Passphrase of " + repository.name + ": "));
    key.slot = slot;
    if (tries == kTriesMax) return key;
    const auto fits = check_key(repository.path, key, repository.trust_owner);
    // Opening the repository reports any error except kWrongKey.
    if (fits || fits.error().code() != ErrorCode::kWrongKey) return key;
  }
}

Result<UserKey> read_new_key(const KeyPlace& place, const std::string& options) {
  hide_memory();
  const auto terminal = place.empty() ? open_terminal() : base::UniqueFd();
  if (place.empty() && !terminal.valid()) {
    return Error(
        ErrorCode::kWrongKey,
        fmt::format("a new key is needed, and there is no terminal to ask for a passphrase; "
                    "name it with --{0}passphrase-file, --{0}key-file or --{0}key-command",
                    options));
  }
  if (!place.empty()) return read_from(place);
  VARVE_TRY_ASSIGN(auto key, ask(terminal, "New passphrase: "));
  VARVE_TRY_ASSIGN(const auto again, ask(terminal, "The same passphrase again: "));
  const auto first = key.secret.bytes();
  const auto second = again.secret.bytes();
  if (std::equal(first.begin(), first.end(), second.begin(), second.end())) return key;
  return Error(ErrorCode::kInvalid, "the two passphrases differ; nothing was changed");
}

KeySource key_source(KeyPlace place, AskedRepository repository) {
  return [place = std::move(place), repository = std::move(repository),
          known = std::make_shared<std::optional<UserKey>>()]() -> Result<UserKey> {
    if (!*known) {
      VARVE_TRY_ASSIGN(*known, read_key(place, repository));
    }
    return **known;
  };
}

}  // namespace varve::control
