// SPDX-License-Identifier: Apache-2.0
#include "varve/choices.h"

#include "format/compression.h"
#include "ingest/chunker.h"
#include "ingest/parameters.h"
#include "restore/restore_engine.h"

namespace varve {

std::vector<Choice> chunker_choices() {
  std::vector<Choice> all;
  for (const auto& kind : ingest::chunker_kinds()) {
    all.push_back({std::string(kind.id), std::string(kind.help)});
  }
  return all;
}

std::vector<Choice> compression_choices() {
  std::vector<Choice> all;
  for (const auto& method : format::compression_methods()) {
    all.push_back({std::string(method.name), std::string(method.help)});
  }
  return all;
}

std::vector<Choice> engine_choices() {
  std::vector<Choice> all;
  for (const auto& engine : restore::engine_infos()) {
    all.push_back({std::string(engine.name), std::string(engine.help)});
  }
  return all;
}

Result<void> choose_compression(std::string_view text, RepositoryParameters& parameters) {
  const auto compression = format::parse_compression(text);
  if (!compression) return Error(ErrorCode::kInvalid, compression.error().message());
  parameters.codec = compression->codec;
  if (compression->level != 0) parameters.zstd_level = compression->level;
  return {};
}

std::string compression_text(const RepositoryParameters& parameters) {
  return format::compression_text(format::compression_of(parameters));
}

Result<void> check_parameters(const RepositoryParameters& parameters) {
  return ingest::check_parameters(parameters);
}

}  // namespace varve
