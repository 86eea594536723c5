// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/arrange_policy.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/repository_access.h"
#include "varve/repository.h"

namespace varve::cli {
namespace {

struct Options {
  std::string repository;
  std::string compression = "zstd:1";
  std::string chunker = "gear16";
  std::string chunk_size = "8K";
  std::string policy;
  std::optional<std::uint32_t> parity;
};

constexpr int kZstdLevelMax = 19;

Result<void> parse_compression(std::string_view text, RepositoryParameters& parameters) {
  if (text == "none") {
    parameters.codec = Codec::kNone;
    return {};
  }
  parameters.codec = Codec::kZstd;
  if (text == "zstd") return {};
  constexpr std::string_view kPrefix = "zstd:";
  if (text.starts_with(kPrefix)) {
    const std::string_view level = text.substr(kPrefix.size());
    const char* end = level.data() + level.size();
    const auto [stop, failure] = std::from_chars(level.data(), end, parameters.zstd_level);
    if (failure == std::errc() && stop == end && parameters.zstd_level >= 1 &&
        parameters.zstd_level <= kZstdLevelMax) {
      return {};
    }
  }
  return Error(ErrorCode::kInvalid,
               "--compression must be none, zstd or zstd:LEVEL, with LEVEL from 1 to 19");
}

/// Stores the settings in the catalog. Unlike the parameters, they can change later.
Result<void> choose_settings(const std::string& path, const ArrangeSettings& settings) {
  VARVE_TRY_ASSIGN(const auto repository, open_to_write(path));
  VARVE_TRY(repository->set_arrange_settings(settings));
  return repository->close();
}

int run_init(Options options, const Context& context) {
  if (const auto given = take_repository({&options.repository}); !given) {
    return fail(given.error());
  }
  RepositoryParameters parameters;
  if (const auto parsed = parse_compression(options.compression, parameters); !parsed) {
    return fail(parsed.error());
  }
  ArrangeSettings settings;
  if (!options.policy.empty()) {
    const auto parsed = parse_policy(options.policy);
    if (!parsed) return fail(parsed.error());
    settings.policy = *parsed;
  }
  settings.parity_percent = options.parity.value_or(0);
  parameters.chunker = options.chunker;
  // The smallest chunk is a quarter of the average, the largest eight times the average.
  parameters.chunk_bytes_avg = options.chunk_size == "4K"    ? 4096
                               : options.chunk_size == "16K" ? 16384
                                                             : 8192;
  parameters.chunk_bytes_min = parameters.chunk_bytes_avg / 4;
  parameters.chunk_bytes_max = parameters.chunk_bytes_avg * 8;
  if (const auto made =
          Repository::create(options.repository, parameters, is_trusted(options.repository));
      !made) {
    return fail(made.error());
  }
  if (settings.policy != ArrangeSettings().policy || settings.parity_percent != 0) {
    if (const auto chosen = choose_settings(options.repository, settings); !chosen) {
      return fail(chosen.error());
    }
  }
  note(context, "created a repository in " + options.repository);
  return kExitOk;
}

}  // namespace

void add_init_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<Options>();
  auto command = line.add_command("init", "Create a repository in an empty or new folder");
  command.add_repository(options->repository);
  command.add_option(
      "--compression", options->compression,
      "none, zstd or zstd:LEVEL, with LEVEL from 1 (fast, the default) to 19 (small)");
  command.add_option("--chunker", options->chunker, "Algorithm that cuts files into chunks")
      .one_of({"gear16", "fastcdc2020"})
      .show_default();
  command.add_option("--chunk-size", options->chunk_size, "Average size of a chunk")
      .one_of({"4K", "8K", "16K"})
      .show_default();
  command.add_option("--arrange-policy", options->policy, kPolicyHelp);
  command
      .add_option("--parity", options->parity,
                  "Parity to keep, as a percentage of the data: 0 (default) to 25; repairs damage "
                  "without a second copy")
      .in(NumberRange<std::uint32_t>{0, kParityPercentMax});
  command.run([options, &context] { return run_init(*options, context); });
}

}  // namespace varve::cli
