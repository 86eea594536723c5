// SPDX-License-Identifier: Apache-2.0
// The named choices known to libvarve's build, for help texts and completions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "varve/options.h"
#include "varve/result.h"

namespace varve {

/// A value of an option, and an explaining phrase.
struct Choice {
  std::string name;
  std::string help;
};

/// Returns the values of RepositoryParameters::chunker for users to choose from.
[[nodiscard]] std::vector<Choice> chunker_choices();
/// Returns the compression methods accepted by choose_compression(). The help tells the levels.
[[nodiscard]] std::vector<Choice> compression_choices();
/// Returns the values of OpenOptions::engine.
[[nodiscard]] std::vector<Choice> engine_choices();

/// Sets the compression from a method's name and optional level, such as "zstd:3".
/// Errors: kInvalid for another text.
[[nodiscard]] Result<void> choose_compression(std::string_view text,
                                              RepositoryParameters& parameters);

/// Returns the parameters' compression in the form read by choose_compression().
[[nodiscard]] std::string compression_text(const RepositoryParameters& parameters);

/// Checks parameters as Repository::create() and Repository::open() do.
/// Errors: kUnsupported for an unknown chunker or codec; kInvalid for values out of their bounds.
/// The message names the allowed values.
[[nodiscard]] Result<void> check_parameters(const RepositoryParameters& parameters);

}  // namespace varve
