// SPDX-License-Identifier: Apache-2.0
// The records of the container-marker algorithm (Fu et al., ATC'14 §5) take 3 bytes a container.
#include <gtest/gtest.h>

#include <random>

#include "cma/container_markers.h"

namespace varve::bench {
namespace {

constexpr std::uint32_t kBackups = 20;
constexpr Container kContainers = 200;

// Backups that use nine of ten earlier containers, and add some.
ContainerMarkers markers_of(std::uint32_t datasets) {
  ContainerMarkers markers;
  std::mt19937_64 random(5);
  for (std::uint32_t backup = 0; backup < kBackups; ++backup) {
    for (std::uint32_t dataset = 1; dataset <= datasets; ++dataset) {
      Marks used;
      for (Container i = 0; i < kContainers / kBackups * (backup + 1); ++i) {
        if (random() % 10 != 0) used[i] = Bitmap(400, true);
      }
      markers.add_backup(dataset, used);
    }
  }
  return markers;
}

TEST(ContainerMarkersGate, RecordsOfOneDatasetTakeThreeBytes) {
  const auto markers = markers_of(1);
  const auto records = markers.published_bytes() / 9;
  EXPECT_LE(markers.encode().size(), records * 3 + 16);
  // Table 3 of the paper: 1/90 of the marks of each kept backup.
  const std::uint64_t marks = kBackups * records * 400 / 8;
  EXPECT_GE(marks, 90 * markers.encode().size());
}

TEST(ContainerMarkersGate, DecodedMarkersFreeTheSameContainers) {
  auto markers = markers_of(3);
  EXPECT_LT(markers.encode().size(), markers.published_bytes() / 2);
  auto decoded = ContainerMarkers::decode(markers.encode());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, markers);
  for (const std::uint32_t dataset : {2U, 1U, 3U}) {
    EXPECT_EQ(decoded->delete_oldest(dataset, 12), markers.delete_oldest(dataset, 12));
  }
  EXPECT_EQ(ContainerMarkers::decode(markers.encode()), markers);
}

TEST(ContainerMarkersGate, CutBytesAreNoMarkers) {
  const auto bytes = markers_of(2).encode();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ContainerMarkers::decode(bytes.substr(0, size))) << size;
  }
}

}  // namespace
}  // namespace varve::bench
