// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/nearest_name.h"
#include "cli/command.h"
#include "cli/output.h"

namespace varve::cli {
namespace {

constexpr const char* kRepositoryHelp = "Folder of the repository (default: $VARVE_REPO)";

/// CLI11 lists excluded options in the order of addresses, an order that differs between runs.
class HelpFormatter final : public CLI::Formatter {
 public:
  [[nodiscard]] std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    const auto& excluded = option->get_excludes();
    if (excluded.size() < 2) return text;
    std::vector<std::string> names;
    for (const CLI::Option* one : excluded) names.push_back(one->get_name());
    std::ranges::sort(names);
    std::size_t bytes = 0;
    for (const auto& name : names) bytes += name.size() + 1;
    text.resize(text.size() - bytes);
    for (const auto& name : names) text += " " + name;
    return text;
  }
};

void print_usage_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string reason = error.what();
  constexpr std::string_view kNoNumber = "Could not convert: ";
  if (reason.starts_with(kNoNumber)) {  // Only options with numbers convert values.
    reason = reason.substr(kNoNumber.size()) + ": the option takes a whole number";
  }
  const std::vector<std::string> unknown = app.remaining(true);
  if (error.get_exit_code() == 0 && !unknown.empty()) {  // With --help.
    reason = "The following argument was not expected: " + unknown.front();
  }
  if (app.get_subcommands().empty() && !app.remaining().empty()) {
    const std::string word = app.remaining().front();
    std::vector<std::string> names;
    for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(one->get_name());
    }
    reason = "there is no command \"" + word + "\"" + base::nearest_name_hint(word, names);
  }
  std::string command = app.get_name();
  for (const CLI::App* chosen : app.get_subcommands()) command += " " + chosen->get_name();
  const std::string text =
      "varve: " + printable(reason) + "\nvarve: see `" + command + " --help`\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

int usage_code(const CLI::App& app, const std::map<std::string, int>& codes) {
  for (const CLI::App* chosen : app.get_subcommands()) {
    if (const auto own = codes.find(chosen->get_name()); own != codes.end()) return own->second;
  }
  return kExitUsage;
}

template <typename Value>
struct NumberOf {
  using Type = Value;
};
template <typename Value>
struct NumberOf<std::optional<Value>> {
  using Type = Value;
};
template <typename Value>
using NumberIn = typename NumberOf<Value>::Type;

// Returns the error text for a number with a sign or too many digits, because the conversion would
// return a different number. The conversion reports any other text.
template <typename Number>
std::string fault_of_number(const std::string& text) {
  Number number{};
  const bool negative = text.starts_with('-');
  const char* const begin = text.data() + (negative || text.starts_with('+') ? 1 : 0);
  const auto read = std::from_chars(begin, text.data() + text.size(), number);
  if (read.ec == std::errc::invalid_argument || (read.ec == std::errc() && !negative)) return "";
  return text + ": the option takes a whole number from 0 to " +
         std::to_string(std::numeric_limits<Number>::max());
}

}  // namespace

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option& Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

Option& Option::type_name(const char* name) {
  option_->type_name(name);
  return *this;
}

Option& Option::one_value_each() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::show_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::one_of(std::vector<std::string> values) {
  option_->check(CLI::IsMember(std::move(values)));
  return *this;
}

template <typename Number>
Option& Option::in(const NumberRange<Number>& range) {
  option_->check(CLI::Range(range.least, range.most));
  return *this;
}
template Option& Option::in(const NumberRange<int>&);
template Option& Option::in(const NumberRange<std::uint32_t>&);
template Option& Option::in(const NumberRange<std::uint64_t>&);

Option& Option::not_empty() {
  option_->check(CLI::Validator(
      [](const std::string& value) { return std::string(value.empty() ? "an empty value" : ""); },
      ""));
  return *this;
}

Option& Option::as_size() {
  option_->transform(CLI::AsSizeValue(false));
  return *this;
}

template <typename Value>
Option Command::add_option(const std::string& names, Value& value, const std::string& help) {
  CLI::Option* const option = app_->add_option(names, value, help);
  if constexpr (!std::is_same_v<Value, std::vector<std::string>>) option->take_last();
  if constexpr (std::is_unsigned_v<NumberIn<Value>>) {
    option->check(CLI::Validator(&fault_of_number<NumberIn<Value>>, ""));
  }
  return Option(*option);
}
template Option Command::add_option(const std::string&, std::string&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::string>&,
                                    const std::string&);
template Option Command::add_option(const std::string&, int&, const std::string&);
template Option Command::add_option(const std::string&, std::uint32_t&, const std::string&);
template Option Command::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<std::uint32_t>&,
                                    const std::string&);
template Option Command::add_option(const std::string&, std::optional<std::uint64_t>&,
                                    const std::string&);
template Option Command::add_option(const std::string&, std::optional<double>&, const std::string&);

template <typename Value>
Option Command::add_flag(const std::string& names, Value& value, const std::string& help) {
  return Option(*app_->add_flag(names, value, help));
}
template Option Command::add_flag(const std::string&, bool&, const std::string&);
template Option Command::add_flag(const std::string&, std::string&, const std::string&);

void Command::add_repository(std::string& value) { add_option("REPO", value, kRepositoryHelp); }

void Command::add_places(std::vector<std::string>& words, const std::string& rest) {
  add_option("REPO", words,
             std::string(kRepositoryHelp) + "; omit it before paths in a mount; then " + rest);
}

Option Command::add_json_flag(bool& value, const std::string& lines) {
  return add_flag("--json", value, "Print JSON lines: " + lines);
}

void Command::add_bytes_flag(bool& value) {
  add_flag("--bytes", value, "Print exact numbers of bytes instead of KiB, MiB, GiB");
}

void Command::add_progress_flag(bool& value) {
  add_flag("--progress", value, "Show progress even if standard error is not a terminal");
}

void Command::usage_exits_with(int code) { (*usage_codes_)[app_->get_name()] = code; }

void Command::add_alias(const std::string& name) { app_->alias(name); }

void Command::run(std::function<int()> work) {
  // The command runs only after the whole line was parsed: flags may follow the command.
  app_->callback([chosen = chosen_, work = std::move(work)] { *chosen = work; });
}

CommandLine::CommandLine(const ProgramTexts& texts)
    : app_(std::make_unique<CLI::App>(texts.description, texts.name)) {
  app_->formatter(std::make_shared<HelpFormatter>());
  app_->require_subcommand(1);
  // Accepts the program's own flags after the command too.
  app_->fallthrough();
  app_->set_version_flag("--version", texts.version);
  app_->footer(texts.footer);
}

CommandLine::~CommandLine() = default;

template <typename Value>
Option CommandLine::add_flag(const std::string& names, Value& value, const std::string& help) {
  return Option(*app_->add_flag(names, value, help));
}
template Option CommandLine::add_flag(const std::string&, bool&, const std::string&);

// Uses add_flag_function(), because CLI11 2.4 gives an absent integer flag the default as a result,
// and then applies the exclusions of the flag.
template <>
Option CommandLine::add_flag(const std::string& names, int& value, const std::string& help) {
  const auto count = [&value](std::int64_t times) { value = static_cast<int>(times); };
  return Option(*app_->add_flag_function(names, count, help));
}

Command CommandLine::add_command(const std::string& name, const std::string& help) {
  CLI::App* const command = app_->add_subcommand(name, help);
  command->group(group_);
  command->footer(app_->get_name() + "-" + name + "(1) tells more, with examples.");
  return Command(*command, chosen_, usage_codes_);
}

bool CommandLine::has_command(const std::string& name) const {
  const CLI::App& app = *app_;
  return !app.get_subcommands([&](const CLI::App* one) { return one->check_name(name); }).empty();
}

Option CommandLine::add_option(const std::string& names, std::string& value,
                               const std::string& help) {
  return Option(*app_->add_option(names, value, help));
}

std::optional<int> CommandLine::parse(const std::vector<std::string>& words) {
  try {
    // The library takes the words from the end.
    app_->parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    // A request for help does not excuse an unknown command or option.
    if (error.get_exit_code() != 0 || !app_->remaining(true).empty()) {
      print_usage_error(*app_, error);
      return usage_code(*app_, usage_codes_);
    }
    (void)app_->exit(error);  // Prints the requested help or version.
    return kExitOk;
  }
  return std::nullopt;
}

}  // namespace varve::cli
