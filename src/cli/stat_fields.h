// SPDX-License-Identifier: Apache-2.0
// The fields of RepositoryStats with the names in each output.
#pragma once

#include <array>
#include <cstdint>

#include "varve/repository.h"

namespace varve::cli {

/// One field of RepositoryStats. A name is null in outputs without the field.
struct StatField {
  std::uint64_t RepositoryStats::*value;
  const char* json;             ///< Name in the line of `varve stats --json`.
  const char* web = nullptr;    ///< Name in the overview of `varve web`.
  const char* gauge = nullptr;  ///< Name of the Prometheus gauge.
  const char* help = nullptr;   ///< Help of the gauge.
};

/// All fields except `sequence`, which has a value only in encrypted repositories.
inline constexpr std::array<StatField, 21> kStatFields = {{
    {&RepositoryStats::series, "series_count"},
    {&RepositoryStats::versions_sealed, "versions_sealed"},
    {&RepositoryStats::versions_open, "versions_open"},
    {&RepositoryStats::logical_bytes, "logical_bytes", "logical", "varve_repository_logical_bytes",
     "File data of all sealed versions."},
    {&RepositoryStats::unique_bytes, "chunk_bytes", "unique", "varve_repository_unique_bytes",
     "Raw bytes of all stored chunks."},
    {&RepositoryStats::frame_bytes, "frame_bytes"},
    {&RepositoryStats::container_bytes, "container_bytes", "containers",
     "varve_repository_container_bytes", "Bytes of all containers on disk."},
    {&RepositoryStats::containers, "containers"},
    {&RepositoryStats::pool_bytes, "pool_bytes", nullptr, "varve_repository_pool_bytes",
     "Bytes of the containers in the pool."},
    {&RepositoryStats::pool_aliases, "pool_aliases"},
    {&RepositoryStats::pool_alias_bytes, "pool_alias_bytes", nullptr,
     "varve_repository_pool_alias_bytes",
     "Raw bytes of duplicates whose content has one copy in the pool."},
    {&RepositoryStats::pool_new_bytes, "pool_new_bytes"},
    {&RepositoryStats::chunks, "chunks", nullptr, "varve_repository_chunks", "Stored chunks."},
    {&RepositoryStats::catalog_bytes, "catalog_bytes", "catalog", "varve_repository_catalog_bytes",
     "Bytes of the catalog."},
    {&RepositoryStats::catalog_free_bytes, "catalog_free_bytes"},
    {&RepositoryStats::manifest_bytes, "manifest_bytes", "manifests"},
    {&RepositoryStats::reserve_bytes, "reserve_bytes", "reserve"},
    {&RepositoryStats::repository_bytes, "repository_bytes", "total"},
    {&RepositoryStats::index_bytes, "index_bytes", "index", "varve_repository_index_bytes",
     "Bytes of the index snapshots."},
    {&RepositoryStats::staging_bytes, "staging_bytes", "staging", "varve_repository_staging_bytes",
     "Bytes of open versions."},
    {&RepositoryStats::parity_bytes, "parity_bytes", "parity", "varve_repository_parity_bytes",
     "Bytes of parity files."},
}};
static_assert(sizeof(RepositoryStats) == (kStatFields.size() + 1) * sizeof(std::uint64_t),
              "each field of RepositoryStats has a row");

}  // namespace varve::cli
