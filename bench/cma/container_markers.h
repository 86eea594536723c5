// SPDX-License-Identifier: Apache-2.0
// The container-marker algorithm as its paper has it (Fu et al., ATC'14 §5), to compare: the last
// backup of each dataset that refers to a container. It can delete only the oldest backups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/coding.h"
#include "cma/pool_content.h"

namespace varve::bench {

class ContainerMarkers {
 public:
  using Dataset = std::uint32_t;

  /// Records the next backup of a dataset, which refers to the containers of `used`.
  void add_backup(Dataset dataset, const Marks& used) {
    auto& manifest = manifests_[dataset];
    for (const auto& [container, bitmap] : used) {
      manifest.last_backup[container] = manifest.backups;
      datasets_of_[container].insert(dataset);
    }
    ++manifest.backups;
  }

  /// Deletes the oldest backups of a dataset. Returns the containers that no dataset refers to any
  /// more.
  std::vector<Container> delete_oldest(Dataset dataset, std::uint32_t count) {
    auto& manifest = manifests_[dataset];
    std::vector<Container> reclaimed;
    for (auto at = manifest.last_backup.begin(); at != manifest.last_backup.end();) {
      if (at->second >= count) {
        at->second -= count;
        ++at;
        continue;
      }
      auto& datasets = datasets_of_[at->first];
      datasets.erase(dataset);
      if (datasets.empty()) {
        datasets_of_.erase(at->first);
        reclaimed.push_back(at->first);
      }
      at = manifest.last_backup.erase(at);
    }
    manifest.backups -= count;
    return reclaimed;
  }

  /// Returns the container manifest of a dataset: for each container its number in four bytes, and
  /// the backup in one byte, or in two if the dataset has more than 256.
  [[nodiscard]] std::string encode_manifest(Dataset dataset) const {
    const auto& manifest = manifests_.at(dataset);
    std::string out;
    base::ByteWriter writer(out);
    for (const auto& [container, backup] : manifest.last_backup) {
      writer.u32(container);
      if (manifest.backups <= 256) {
        writer.u8(static_cast<std::uint8_t>(backup));
      } else {
        writer.u16(static_cast<std::uint16_t>(backup));
      }
    }
    return out;
  }
  /// Returns the size of all manifests and of the datasets' lists, four bytes for each entry.
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [dataset, manifest] : manifests_) sum += encode_manifest(dataset).size();
    for (const auto& [container, datasets] : datasets_of_) sum += 4 * datasets.size();
    return sum;
  }

 private:
  struct Manifest {
    std::map<Container, std::uint32_t> last_backup;  // The oldest backup is 0.
    std::uint32_t backups = 0;
  };
  std::map<Dataset, Manifest> manifests_;
  std::map<Container, std::set<Dataset>> datasets_of_;
};

}  // namespace varve::bench
