// SPDX-License-Identifier: Apache-2.0
// Declares the commands and options of the command line, and parses it.
//
// options.cc is the only file to include the parsing library: the library's header takes longer to
// compile than any command. All handles here are small and may be copied. A handle is valid as long
// as its CommandLine.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace varve::cli {

/// The range of an option's numbers, both ends included.
template <typename Number>
struct NumberRange {
  Number least;
  Number most;
};

/// A declared option, flag or positional argument. Each function returns the option itself.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option& required();
  /// Refuses a command line with both this option and `other`.
  Option& excludes(const Option& other);
  /// Refuses a command line with this option, but without `other`.
  Option& needs(const Option& other);
  /// Sets the word for the value in --help.
  Option& type_name(const char* name);
  /// Takes a single value each time the option is given, although the option collects a list.
  Option& one_value_each();
  /// Shows the present value of the variable as the default in --help.
  Option& show_default();
  /// Refuses "".
  Option& not_empty();
  Option& one_of(std::vector<std::string> values);
  /// `Number` is int, std::uint32_t or std::uint64_t.
  template <typename Number>
  Option& in(const NumberRange<Number>& range);
  /// Accepts sizes such as 64K and 1G.
  Option& as_size();

 private:
  CLI::Option* option_;
};

/// A command of the program.
class Command {
 public:
  Command(CLI::App& app, std::function<int()>& chosen, std::map<std::string, int>& usage_codes)
      : app_(&app), chosen_(&chosen), usage_codes_(&usage_codes) {}

  /// Adds an option ("--rate", or "-l,--long"), or a positional argument ("REPO"). Parsing sets
  /// `value`, so `value` must live until parsing. `Value` is a string, a list of strings, a number
  /// or an optional number; options.cc lists the types.
  template <typename Value>
  Option add_option(const std::string& names, Value& value, const std::string& help);

  /// Adds a flag. `Value` is bool, int (the number of times that the flag was given) or std::string
  /// (the flag's value; "--wait{forever}" gives a bare --wait the value "forever").
  template <typename Value>
  Option add_flag(const std::string& names, Value& value, const std::string& help);

  /// Adds the argument REPO, the folder of the repository. take_repository() fills in VARVE_REPO.
  void add_repository(std::string& value);
  /// Adds the argument REPO, with all words behind REPO, for find_places(). `rest` describes the
  /// words.
  void add_places(std::vector<std::string>& words, const std::string& rest);
  /// Adds --json. `lines` describes the printed lines.
  Option add_json_flag(bool& value, const std::string& lines);
  /// Adds --bytes, for exact sizes.
  void add_bytes_flag(bool& value);
  void add_progress_flag(bool& value);

  /// Sets the exit code after a parsing error in a command line of this command.
  void usage_exits_with(int code);

  /// Accepts another name for the command.
  void add_alias(const std::string& name);

  /// Sets the function for the command's work, which returns the exit code of the process.
  void run(std::function<int()> work);

 private:
  CLI::App* app_;
  std::function<int()>* chosen_;
  std::map<std::string, int>* usage_codes_;
};

/// Texts about the whole program, for --help and --version.
struct ProgramTexts {
  std::string name;
  std::string description;
  std::string footer;
  std::string version;
};

/// The command line of a program with commands.
class CommandLine {
 public:
  explicit CommandLine(const ProgramTexts& texts);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Adds an option allowed before and after the command.
  Option add_option(const std::string& names, std::string& value, const std::string& help);
  /// Adds a flag allowed before and after the command.
  template <typename Value>
  Option add_flag(const std::string& names, Value& value, const std::string& help);

  /// Puts all commands added later under this title in the program's help.
  void begin_group(const std::string& title) { group_ = title; }
  Command add_command(const std::string& name, const std::string& help);
  /// Returns true for the name or the alias of a command.
  [[nodiscard]] bool has_command(const std::string& name) const;

  /// Sets the variables of the options from the words behind the name of the program. The last of
  /// two equal options counts, except for an option that collects a list. Returns nullopt if a
  /// command was chosen, and otherwise the exit code: after printing the requested help to stdout,
  /// or the error to stderr.
  [[nodiscard]] std::optional<int> parse(const std::vector<std::string>& words);

  /// Runs the chosen command after parse(). Returns the exit code.
  [[nodiscard]] int run() const { return chosen_(); }

 private:
  std::unique_ptr<CLI::App> app_;
  std::function<int()> chosen_;
  std::string group_ = "Commands";
  std::map<std::string, int> usage_codes_;  // By command; kExitUsage for absent commands.
};

/// Sets `value` to the number of times that the flag was given.
template <>
Option CommandLine::add_flag(const std::string& names, int& value, const std::string& help);

}  // namespace varve::cli
