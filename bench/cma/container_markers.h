// SPDX-License-Identifier: Apache-2.0
// The container-marker algorithm as its paper has it (Fu et al., ATC'14 §5), to compare: the last
// backup of each dataset that refers to a container. It can delete only the oldest backups. Two
// encodings: the paper's, of 9 bytes, and one of mostly 3 bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
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

  /// Returns the size as published: for each container of a dataset its number in four bytes, and
  /// the backup in one byte, or in two if the dataset has more than 256; and the lists of datasets,
  /// four bytes for each entry.
  [[nodiscard]] std::uint64_t published_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [dataset, manifest] : manifests_) {
      sum += manifest.last_backup.size() * (manifest.backups <= 256 ? 5 : 6);
    }
    for (const auto& [container, datasets] : datasets_of_) sum += 4 * datasets.size();
    return sum;
  }

  /// Returns everything as varints: the different lists of datasets, each once; then for each
  /// container of a dataset the distance to the number of the container before, the backup, and the
  /// place of its list.
  [[nodiscard]] std::string encode() const {
    std::map<std::set<Dataset>, std::uint64_t> lists;
    for (const auto& [container, datasets] : datasets_of_) lists.emplace(datasets, 0);
    std::string out;
    base::ByteWriter writer(out);
    writer.varint(lists.size());
    std::uint64_t place = 0;
    for (auto& [datasets, its] : lists) {
      its = place++;
      writer.varint(datasets.size());
      for (const auto dataset : datasets) writer.varint(dataset);
    }
    writer.varint(manifests_.size());
    for (const auto& [dataset, manifest] : manifests_) {
      writer.varint(dataset);
      writer.varint(manifest.backups);
      writer.varint(manifest.last_backup.size());
      Container before = 0;
      for (const auto& [container, backup] : manifest.last_backup) {
        writer.varint(container - std::exchange(before, container));
        writer.varint(backup);
        writer.varint(lists.at(datasets_of_.at(container)));
      }
    }
    return out;
  }
  /// Returns the markers of encode(); nullopt for other bytes.
  [[nodiscard]] static std::optional<ContainerMarkers> decode(std::string_view bytes) {
    base::ByteReader reader(bytes);
    std::vector<std::set<Dataset>> lists(std::min<std::uint64_t>(reader.varint(), bytes.size()));
    for (auto& datasets : lists) {
      for (auto left = reader.varint(); left != 0 && reader.ok(); --left) {
        datasets.insert(static_cast<Dataset>(reader.varint()));
      }
    }
    ContainerMarkers markers;
    for (auto left = reader.varint(); left != 0 && reader.ok(); --left) {
      auto& manifest = markers.manifests_[static_cast<Dataset>(reader.varint())];
      manifest.backups = static_cast<std::uint32_t>(reader.varint());
      Container container = 0;
      for (auto records = reader.varint(); records != 0 && reader.ok(); --records) {
        container += static_cast<Container>(reader.varint());
        manifest.last_backup[container] = static_cast<std::uint32_t>(reader.varint());
        const auto list = reader.varint();
        if (list >= lists.size()) return std::nullopt;
        markers.datasets_of_[container] = lists[list];
      }
    }
    if (!reader.done()) return std::nullopt;
    return markers;
  }
  bool operator==(const ContainerMarkers&) const = default;

 private:
  struct Manifest {
    std::map<Container, std::uint32_t> last_backup;  // The oldest backup is 0.
    std::uint32_t backups = 0;
    bool operator==(const Manifest&) const = default;
  };
  std::map<Dataset, Manifest> manifests_;
  std::map<Container, std::set<Dataset>> datasets_of_;
};

}  // namespace varve::bench
