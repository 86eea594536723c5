// SPDX-License-Identifier: Apache-2.0
#include "cli/instance.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/nearest_name.h"
#include "base/system_error.h"
#include "base/unique_fd.h"
#include "cli/command.h"
#include "control/place_folder.h"

namespace varve::cli {
namespace {

constexpr std::size_t kFileBytesMax = 64U << 10;
constexpr const char* kSystemFolder = "/etc/varve";
constexpr std::array<std::string_view, 14> kKeys = {"VARVE_REPO",
                                                    "VARVE_SOURCE",
                                                    "VARVE_SERIES",
                                                    "VARVE_MOUNT",
                                                    "VARVE_STORE",
                                                    "VARVE_KEEP",
                                                    "VARVE_STATUS",
                                                    "VARVE_OPTIONS",
                                                    "VARVE_SCRUB",
                                                    "VARVE_PASSPHRASE_FILE",
                                                    "VARVE_KEY_FILE",
                                                    "VARVE_KEY_COMMAND",
                                                    "VARVE_CREDENTIALS_COMMAND",
                                                    "VARVE_PRICES"};

constexpr std::array<std::string_view, 6> kPaths = {"VARVE_PRICES",          "VARVE_REPO",
                                                    "VARVE_SOURCE",          "VARVE_MOUNT",
                                                    "VARVE_PASSPHRASE_FILE", "VARVE_KEY_FILE"};
/// Keys copied into the environment, for all code that opens the repository.
constexpr std::array<const char*, 5> kVariables = {"VARVE_REPO", "VARVE_PASSPHRASE_FILE",
                                                   "VARVE_CREDENTIALS_COMMAND", "VARVE_KEY_FILE",
                                                   "VARVE_KEY_COMMAND"};

/// Prefix of further keys copied into the environment: the access to an object store.
constexpr std::string_view kStoreKeys = "AWS_";

struct OptionsOfCommand {
  std::string_view command;
  const char* key;
};
constexpr std::array<OptionsOfCommand, 6> kOptions = {{{"store", "VARVE_STORE"},
                                                       {"backup", "VARVE_STORE"},
                                                       {"prune", "VARVE_KEEP"},
                                                       {"forget", "VARVE_KEEP"},
                                                       {"status", "VARVE_STATUS"},
                                                       {"scrub", "VARVE_SCRUB"}}};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

bool is_quote(char c) { return c == '"' || c == '\''; }

/// Removes the quotes around a whole value.
std::string_view unquoted(std::string_view value) {
  const bool quoted = value.size() >= 2 && is_quote(value.front()) && value.back() == value.front();
  if (!quoted) return value;
  const std::string_view inside = value.substr(1, value.size() - 2);
  return inside.find(value.front()) == std::string_view::npos ? inside : value;
}

bool is_name(std::string_view name) {
  constexpr std::string_view kNameLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.@:-";
  return !name.empty() && name.size() <= 200 && name.front() != '.' && name.front() != '-' &&
         name.find_first_not_of(kNameLetters) == std::string_view::npos;
}

/// Checks that only root and the caller can change a file or folder, because the file decides about
/// stored and deleted data.
Result<void> check_owner(const std::string& path, const struct stat& status) {
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return Error(ErrorCode::kNotPermitted,
                 fmt::format("{} belongs to user {}, who could change what is stored and deleted; "
                             "it must belong to you or to root",
                             path, status.st_uid));
  }
  const bool is_sticky = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;
  if ((status.st_mode & 0022) != 0 && !is_sticky) {
    return Error(ErrorCode::kNotPermitted,
                 fmt::format("{} is writable by group or others, who could change what is stored "
                             "and deleted; run `chmod go-w {}`",
                             path, path));
  }
  return {};
}

Result<std::string> read_text(const std::string& path, int fd) {
  std::string text(kFileBytesMax + 1, '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = ::read(fd, text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::system_error(path, errno);
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  if (have > kFileBytesMax) {
    return Error(ErrorCode::kInvalid, path + " has more than 64 KiB; it is no file of an instance");
  }
  text.resize(have);
  if (text.find('\0') != std::string::npos) {
    return Error(ErrorCode::kInvalid, path + " has NUL bytes; it is no text");
  }
  return text;
}

/// Reads the file of an instance in a folder. Returns nullopt without a file.
Result<std::optional<Instance>> read_in(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name + ".conf";
  // A FIFO must not block.
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid() && (errno == ENOENT || errno == ENOTDIR)) return std::optional<Instance>();
  if (!fd.valid()) return base::system_error(path, errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return base::system_error(path, errno);
  if (!S_ISREG(status.st_mode)) return Error(ErrorCode::kInvalid, path + " is not a regular file");
  VARVE_TRY(check_owner(path, status));
  if (::stat(folder.c_str(), &status) != 0) return base::system_error(folder, errno);
  VARVE_TRY(check_owner(folder, status));
  VARVE_TRY_ASSIGN(const std::string text, read_text(path, fd.get()));
  auto values = parse_instance(text);
  if (!values) return std::move(values).error().with_context(path);
  return std::optional<Instance>(Instance{path, *std::move(values)});
}

/// Returns the folders, in the order of search.
std::vector<std::string> folders() {
  std::vector<std::string> found;
  const char* const config = std::getenv("XDG_CONFIG_HOME");
  const char* const home = std::getenv("HOME");
  if (config != nullptr && *config == '/') {
    found.push_back(std::string(config) + "/varve");
  } else if (home != nullptr && *home == '/') {
    found.push_back(std::string(home) + "/.config/varve");
  }
  found.emplace_back(kSystemFolder);
  return found;
}

}  // namespace

std::string Instance::value(const std::string& key) const {
  if (path.empty()) return {};
  if (const auto own = values.find(key); own != values.end()) return own->second;
  const char* const from_environment = std::getenv(key.c_str());
  return from_environment == nullptr ? std::string() : std::string(from_environment);
}

Result<std::vector<std::string>> Instance::words_for(
    std::string_view command, const std::vector<std::string>& of_user) const {
  if (command == "mount") {
    const std::string options = value("VARVE_OPTIONS");
    if (options.empty()) return std::vector<std::string>();
    return std::vector<std::string>{"-o", options};
  }
  const auto* const place = std::ranges::find(kOptions, command, &OptionsOfCommand::command);
  if (place == kOptions.end()) return std::vector<std::string>();
  const bool has_rule = std::ranges::any_of(
      of_user, [](const std::string& word) { return word.starts_with("--keep"); });
  if (std::string_view(place->key) == "VARVE_KEEP" && has_rule) return std::vector<std::string>();
  auto words = split_words(value(place->key));
  if (!words) {
    return std::move(words).error().with_context(path + ": " + place->key);
  }
  return words;
}

Result<std::map<std::string, std::string>> parse_instance(std::string_view text) {
  std::map<std::string, std::string> values;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    const auto refuse = [&](const std::string& why) {
      return Error(ErrorCode::kInvalid, fmt::format("line {}: {}", number, why));
    };
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return refuse("write KEY=VALUE, such as VARVE_REPO=/srv/backup");
    }
    if (line.ends_with('\\')) return refuse("a value must be on one line");
    const std::string key(trimmed(line.substr(0, equals)));
    if (std::ranges::find(kKeys, key) == kKeys.end() && !key.starts_with(kStoreKeys)) {
      if (!key.starts_with("VARVE_")) continue;  // For other programs.
      const std::vector<std::string> known(kKeys.begin(), kKeys.end());
      return refuse(fmt::format("unknown key {}{}", key, base::nearest_name_hint(key, known)));
    }
    const std::string_view value = unquoted(trimmed(line.substr(equals + 1)));
    const bool is_path = std::ranges::find(kPaths, key) != kPaths.end();
    const bool is_place = key == "VARVE_REPO" && control::names_store(value);
    if (is_path && !is_place && !value.starts_with('/')) {
      return refuse(key + " must be an absolute path, since commands run anywhere");
    }
    if (!values.emplace(key, value).second) return refuse(key + " is given twice");
  }
  return values;
}

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && is_quote(c)) {
      quote = c;
      if (!word) word.emplace();
    } else if (quote == 0 && (c == ' ' || c == '\t')) {
      if (word) words.push_back(*std::move(word));
      word.reset();
    } else {
      if (!word) word.emplace();
      *word += c;
    }
  }
  if (quote != 0) return Error(ErrorCode::kInvalid, fmt::format("a quote {} has no end", quote));
  if (word) words.push_back(*std::move(word));
  return words;
}

Result<Instance> read_instance(const std::string& name) {
  if (!is_name(name)) {
    return usage_error("\"" + name +
                       "\" is no name of an instance; -R NAME reads /etc/varve/NAME.conf");
  }
  std::string searched;
  for (const std::string& folder : folders()) {
    VARVE_TRY_ASSIGN(auto found, read_in(folder, name));
    if (found) return *std::move(found);
    searched += (searched.empty() ? "" : " nor ") + folder + "/" + name + ".conf";
  }
  return Error(ErrorCode::kNotFound,
               fmt::format("there is no instance \"{}\": neither {} exists", name, searched));
}

Result<Instance> take_instance(std::vector<std::string>& words) {
  std::optional<std::string> name;
  std::size_t at = 0;
  while (at < words.size() && words[at].starts_with('-')) {
    const std::string& word = words[at];
    if (word == "-R" || word == "--instance") {
      if (at + 1 == words.size()) return usage_error(word + " needs the name of an instance");
      name = words[at + 1];
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(at),
                  words.begin() + static_cast<std::ptrdiff_t>(at) + 2);
    } else if (word.starts_with("--instance=") || word.starts_with("-R")) {
      name = word.substr(word.starts_with("-R") ? 2 : word.find('=') + 1);
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      ++at;
    }
  }
  if (!name) return Instance();
  VARVE_TRY_ASSIGN(Instance instance, read_instance(*name));
  for (const char* const variable : kVariables) {
    const std::string value = instance.value(variable);
    if (!value.empty()) ::setenv(variable, value.c_str(), 1);
  }
  for (const auto& [key, value] : instance.values) {
    if (key.starts_with(kStoreKeys)) ::setenv(key.c_str(), value.c_str(), 1);
  }
  if (at == words.size()) return instance;
  const auto command = words.begin() + static_cast<std::ptrdiff_t>(at);
  const std::vector<std::string> of_user(command + 1, words.end());
  VARVE_TRY_ASSIGN(const auto added, instance.words_for(*command, of_user));
  words.insert(command + 1, added.begin(), added.end());
  return instance;
}

}  // namespace varve::cli
