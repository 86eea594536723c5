// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "cli/check_in_parts.h"
#include "cli/check_output.h"
#include "cli/command.h"
#include "cli/known_damage.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/quantity.h"
#include "cli/repository_access.h"
#include "cli/signal_watch.h"
#include "cli/store_check_output.h"
#include "control/store_access.h"
#include "varve/check.h"
#include "varve/replication.h"

namespace varve::cli {
namespace {

struct CheckArguments {
  std::string repository;
  bool quick = false;
  bool outer = false;
  bool read_store = false;
  std::string read_data;  // Percentage of the containers; "" without the option.
  std::string rate;
  std::optional<std::uint64_t> expect;
  bool resume = false;
  bool json = false;
  bool progress = false;
};

// Returns a number from 1 to 100, written with or without a percent sign.
Result<unsigned> parse_percent(const std::string& text) {
  unsigned percent = 0;
  const char* end = text.data() + text.size() - (text.ends_with('%') ? 1 : 0);
  const auto [stop, error] = std::from_chars(text.data(), end, percent);
  if (error != std::errc() || stop != end || percent < 1 || percent > 100) {
    return usage_error("--read-data must be 1% to 100%, not " + text);
  }
  return percent;
}

Result<CheckReport> check(const CheckArguments& options, const Context& context,
                          StoreCheck& store) {
  const bool shown = options.progress || (Progress::terminal() && !context.quiet);
  Progress progress("checking", shown);
  // A check changes nothing, so the check may end at any point.
  const SignalWatch signals(progress);
  const auto observe = [&](const CheckProgress& done) {
    progress.update(done.bytes_done, done.bytes_total, 0);
  };
  if (options.outer) {
    VARVE_TRY_ASSIGN(const auto path, repository_at(options.repository, control::Purpose::kLook));
    return check_outer(path, {is_trusted(path), {}, control::store_access_of_environment()},
                       observe);
  }
  CheckOptions check_options;
  check_options.read_data = !options.quick;
  check_options.verify_chunks = !options.read_data.empty();
  if (check_options.verify_chunks) {
    VARVE_TRY_ASSIGN(check_options.percent, parse_percent(options.read_data));
  }
  if (!options.rate.empty()) {
    VARVE_TRY_ASSIGN(check_options.bytes_per_second, parse_bytes(options.rate));
  }
  check_options.expected_sequence = options.expect;
  // First: a process can open the state of its store only once at a time.
  VARVE_TRY_ASSIGN(store, check_store_of(options.repository, options.read_store));
  VARVE_TRY_ASSIGN(const auto repository, open_to_read(options.repository, true));
  repository->will_read_once();
  VARVE_TRY_ASSIGN(const auto sequence, repository->sequence());
  if (options.expect && !sequence) {
    return Error(ErrorCode::kInvalid,
                 options.repository + " is not encrypted, and has no sequence number to expect");
  }
  return repository->check(check_options, observe);
}

// A check of a percentage does not record the containers read, so a later check cannot resume.
int resume_check(const CheckArguments& options, const Context& context) {
  const auto percent = parse_percent(options.read_data);
  if (!percent) return fail(percent.error());
  if (*percent != 100) {
    return fail(usage_error("--resume reads all data; omit the percentage of --read-data"));
  }
  PartOptions parts;
  parts.repository = options.repository;
  parts.rate = options.rate;
  parts.json = options.json;
  parts.progress = options.progress;
  return check_in_parts(std::move(parts), context);
}

int run_check(CheckArguments options, const Context& context) {
  if (options.resume) return resume_check(options, context);
  if (const auto given = take_repository({{"REPO", &options.repository}}, control::Purpose::kLook);
      !given) {
    return fail(given.error());
  }
  StoreCheck store;
  auto report = check(options, context, store);
  if (!report) return fail(report.error());
  quarantine_damage(options.repository, *report, context);
  print_check_report(*report, options.json, context,
                     options.outer ? Checked::kFiles : Checked::kVersions);
  const bool is_sound = print_store_check(store, options.json, context);
  return is_sound && report->damages.empty() ? kExitOk : kExitError;
}

}  // namespace

void add_check_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<CheckArguments>();
  auto command =
      line.add_command("check", "Check that all stored data can be read; exit code 1 if not");
  command.add_repository(options->repository);
  auto quick =
      command.add_flag("--quick", options->quick, "Check the structure only; read no data");
  auto read_data = command
                       .add_flag("--read-data{100%}", options->read_data,
                                 "Also compare the SHA-256 of every chunk; =N% reads this "
                                 "percentage of the containers, different ones each time")
                       .excludes(quick);
  auto outer = command.add_flag("--outer", options->outer,
                                "Compare the files with their checksums only, without the keys");
  outer.excludes(quick);
  outer.excludes(read_data);
  const auto resume =
      command
          .add_flag("--resume", options->resume,
                    "Continue where the last check with this option, or the last scrub, stopped")
          .needs(read_data);
  command
      .add_flag("--read-store", options->read_store,
                "Read all objects of the object store, and compare them with their checksums")
      .excludes(outer)
      .excludes(resume);
  command
      .add_option("--expect", options->expect,
                  "Report damage if the sequence number of an encrypted repository is lower")
      .type_name("SEQUENCE")
      .excludes(outer)
      .excludes(resume);
  outer.excludes(command.add_option("--rate", options->rate,
                                    "Maximum number of bytes per second to read, such as 50M"));
  command.add_json_flag(options->json, "the results");
  command.add_progress_flag(options->progress);
  command.run([options, &context] { return run_check(*options, context); });
}

}  // namespace varve::cli
