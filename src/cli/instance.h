// SPDX-License-Identifier: Apache-2.0
// A backup with a name: `varve -R NAME` reads the repository, source and options from
// /etc/varve/NAME.conf or the user's own folder.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "varve/result.h"

namespace varve::cli {

/// The content of the file of an instance.
struct Instance {
  std::string path;                           ///< The file.
  std::map<std::string, std::string> values;  ///< By key, such as VARVE_REPO.

  /// Returns the value of a key: from the file, else from the environment, else "".
  [[nodiscard]] std::string value(const std::string& key) const;
  /// Returns the words that the file adds to a command, before the user's words. The user's words
  /// take precedence: the last of two equal options counts, and a rule of the user replaces all
  /// rules of the file.
  /// Errors: kInvalid for quotes that do not end.
  [[nodiscard]] Result<std::vector<std::string>> words_for(
      std::string_view command, const std::vector<std::string>& of_user) const;
};

/// Parses the text of a file: lines KEY=VALUE as in a systemd EnvironmentFile, without expansion.
/// Errors: kInvalid for any other line and for unknown keys that begin with VARVE_; the message
/// names the line.
[[nodiscard]] Result<std::map<std::string, std::string>> parse_instance(std::string_view text);

/// Splits a value at blanks. Removes quotes of both kinds, and keeps blanks between quotes.
/// Errors: kInvalid for a quote without an end.
[[nodiscard]] Result<std::vector<std::string>> split_words(std::string_view text);

/// Reads the file of an instance. For ordinary users, a file in the user's own folder takes
/// precedence.
/// Errors: kUsage for a name that is no file name; kNotFound; kNotPermitted if another user than
/// root or the caller can change the file; kInvalid if the file is no text or too large, and the
/// errors of parse_instance().
[[nodiscard]] Result<Instance> read_instance(const std::string& name);

/// Takes -R NAME from the words before the command, and applies the file of the instance: puts the
/// repository and the key into the environment, and options behind the command. Changes nothing
/// without -R.
/// Errors: the errors of read_instance(); kUsage if the name is missing.
[[nodiscard]] Result<Instance> take_instance(std::vector<std::string>& words);

}  // namespace varve::cli
