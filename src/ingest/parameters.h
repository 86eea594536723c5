// SPDX-License-Identifier: Apache-2.0
// The one check of a repository's parameters, for creating, opening and repairing it.
#pragma once

#include <string_view>

#include "format/superblock.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::ingest {

/// Checks the chunker, its sizes and the compression.
/// Errors: kUnsupported for an unknown chunker or codec; kInvalid for values out of their bounds,
/// and for a keyed chunker of a plain repository. The message names the allowed values.
[[nodiscard]] Result<void> check_parameters(const RepositoryParameters& parameters,
                                            bool encrypted = false);

/// Returns the parameters that a new repository has: a plain one has the plain form of a keyed
/// chunker. So a copy of an encrypted repository can create it.
/// Errors: kUnsupported for an unknown chunker.
[[nodiscard]] Result<RepositoryParameters> parameters_for(RepositoryParameters parameters,
                                                          bool encrypted);

/// Decodes a superblock and checks its parameters.
/// Errors: those of format::decode_superblock(). Parameters that check_parameters() refuses are
/// kUnsupported if this build does not know them, otherwise kCorrupt.
[[nodiscard]] Result<format::Superblock> read_superblock(std::string_view text);

}  // namespace varve::ingest
