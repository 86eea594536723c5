// SPDX-License-Identifier: Apache-2.0
#include "cli/pool_usage_output.h"

#include <fmt/core.h>

#include <cstdint>
#include <vector>

namespace varve::cli {

namespace {

std::string data_text(std::uint64_t chunks, std::uint64_t bytes, bool exact) {
  return fmt::format("{} in {} chunks", size_text(bytes, exact), chunks);
}

std::string histogram_text(const UtilisationHistogram& utilisation) {
  std::vector<std::vector<std::string>> rows{{"UTILISATION", "CONTAINERS"}};
  const std::size_t width = 100 / utilisation.size();
  for (std::size_t i = 0; i < utilisation.size(); ++i) {
    rows.push_back(
        {fmt::format("{}-{} %", i * width, (i + 1) * width), std::to_string(utilisation[i])});
  }
  return table(rows, "rr");
}

}  // namespace

Json pool_usage_json(const PoolUsage& usage) {
  Json object{{"containers", usage.containers}, {"referenced_bytes", usage.referenced_bytes}};
  auto& utilisation = object["utilisation"] = Json::array();
  for (const std::uint64_t containers : usage.utilisation) utilisation.push_back(containers);
  if (usage.counts) {
    const RewriteCounts& counts = *usage.counts;
    object["kept_chunks"] = counts.kept_chunks;
    object["kept_bytes"] = counts.kept_bytes;
    object["rewritten_chunks"] = counts.rewritten_chunks;
    object["rewritten_bytes"] = counts.rewritten_bytes;
    object["promoted_chunks"] = counts.promoted_chunks;
    object["promoted_bytes"] = counts.promoted_bytes;
    object["sparse_containers"] = counts.sparse_containers;
  }
  return object;
}

std::string pool_usage_text(const PoolUsage& usage, bool exact) {
  if (!usage.counts && usage.containers == 0) return "the version does not use the pool\n";
  std::vector<std::vector<std::string>> rows;
  if (usage.counts) {
    const RewriteCounts& counts = *usage.counts;
    rows = {{"kept", data_text(counts.kept_chunks, counts.kept_bytes, exact)},
            {"rewritten", data_text(counts.rewritten_chunks, counts.rewritten_bytes, exact)},
            {"promoted", data_text(counts.promoted_chunks, counts.promoted_bytes, exact)},
            {"sparse containers", fmt::format("{} inherited", counts.sparse_containers)}};
  } else {
    rows = {{"kept, rewritten", "not recorded: the catalog was rebuilt after the seal"}};
  }
  rows.push_back({"uses", fmt::format("{} in {} containers of the pool",
                                      size_text(usage.referenced_bytes, exact), usage.containers)});
  return table(rows, "ll") + "\n" + histogram_text(usage.utilisation);
}

}  // namespace varve::cli
