// SPDX-License-Identifier: Apache-2.0
// The single check of a repository's parameters, for creating, opening and repairing a repository.
#pragma once

#include <string_view>

#include "format/superblock.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::ingest {

/// Checks the chunker, the chunk sizes and the compression.
/// Errors: kUnsupported for an unknown chunker or codec; kInvalid for values out of bounds, and for
/// a keyed chunker of a plain repository. The message names the allowed values.
[[nodiscard]] Result<void> check_parameters(const RepositoryParameters& parameters,
                                            bool encrypted = false);

/// Returns the parameters of a new repository: a plain repository gets the plain form of a keyed
/// chunker. So a copy of an encrypted repository can create a plain target.
/// Errors: kUnsupported for an unknown chunker.
[[nodiscard]] Result<RepositoryParameters> parameters_for(RepositoryParameters parameters,
                                                          bool encrypted);

/// Decodes a superblock and checks the parameters.
/// Errors: those of format::decode_superblock(). Parameters refused by check_parameters() are
/// kUnsupported if unknown to the build, otherwise kCorrupt.
[[nodiscard]] Result<format::Superblock> read_superblock(std::string_view text);

}  // namespace varve::ingest
