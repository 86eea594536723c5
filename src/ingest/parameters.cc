// SPDX-License-Identifier: Apache-2.0
#include "ingest/parameters.h"

#include <algorithm>

#include "format/compression.h"
#include "ingest/chunker.h"
#include "varve/placement.h"

namespace varve::ingest {

Result<void> check_parameters(const RepositoryParameters& parameters, bool encrypted) {
  VARVE_TRY_ASSIGN(const auto* const kind, find_chunker(parameters.chunker));
  VARVE_TRY(check_chunker_key(*kind, encrypted));
  VARVE_TRY(check_chunk_sizes(repository_sizes(*kind), chunk_sizes_of(parameters)));
  VARVE_TRY(check_placement(parameters.placement));
  return format::check_compression(format::compression_of(parameters));
}

Result<RepositoryParameters> parameters_for(RepositoryParameters parameters, bool encrypted) {
  VARVE_TRY_ASSIGN(const auto* const kind, find_chunker(parameters.chunker));
  if (encrypted || !kind->is_keyed()) return parameters;
  const auto kinds = chunker_kinds();
  const auto form = std::ranges::find_if(kinds, [&](const ChunkerKind& other) {
    return other.keyed_id == kind->keyed_id && !other.is_keyed();
  });
  if (form != kinds.end()) parameters.chunker = form->id;
  return parameters;
}

Result<format::Superblock> read_superblock(std::string_view text) {
  VARVE_TRY_ASSIGN(auto superblock, format::decode_superblock(text));
  const bool encrypted = superblock.encryption.has_value();
  if (const auto valid = check_parameters(superblock.parameters, encrypted); !valid) {
    return format::superblock_error(valid.error());
  }
  return superblock;
}

}  // namespace varve::ingest
