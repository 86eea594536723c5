// SPDX-License-Identifier: Apache-2.0
#include "format/manifest_size.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "format/data_codecs.h"
#include "format/manifest.h"
#include "support/temp_repository.h"

namespace varve::format {
namespace {

struct Record {
  std::uint32_t group = 0;
  std::size_t key_bytes = 0;
  std::size_t value_bytes = 0;
};

std::uint64_t encoded_bytes(const std::vector<Record>& records, std::uint32_t without,
                            const ManifestTail& tail = {}) {
  const DataCodecs codecs{RepositoryParameters{}};
  ManifestHeader identity;
  identity.kind = ManifestKind::kLabels;
  std::uint64_t bytes = kManifestHeaderBytes;
  ManifestEncoder encoder(identity, codecs.frames(), Compression{},
                          [&](std::string_view part) -> Result<void> {
                            bytes += part.size();
                            return {};
                          });
  for (const auto& record : records) {
    if (without != 0 && record.group == without) continue;
    test::must(encoder.add(ManifestRecord::kSetting, std::string(record.key_bytes, 'k'),
                           std::string(record.value_bytes, 'v')));
  }
  for (std::uint64_t i = 0; i < tail.records; ++i) {
    test::must(encoder.add(ManifestRecord::kRemoved, std::string(tail.key_bytes, 'k'), ""));
  }
  static_cast<void>(test::must(encoder.finish()));
  return bytes;
}

TEST(ManifestSize, AgreesWithTheEncoderForAnyRecords) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const std::size_t largest = round % 3 == 0 ? 300 : round % 3 == 1 ? 20000 : 300000;
    std::vector<Record> records{{0, 0, 500}, {0, 0, 20}};
    const auto groups = static_cast<std::uint32_t>(1 + random() % 60);
    for (std::uint32_t group = 1; group <= groups; ++group) {
      for (auto i = 1 + random() % 3; i > 0; --i) {
        records.push_back({group, 4, random() % 5 == 0 ? random() % largest : 80});
      }
    }
    records.push_back({0, 10, random() % largest});
    ManifestSize size;
    for (const auto& record : records) {
      size.add(record.group, record.key_bytes, record.value_bytes);
    }
    ASSERT_EQ(size.bytes(), encoded_bytes(records, 0));
    for (std::uint32_t group = 1; group <= groups; ++group) {
      ASSERT_EQ(size.bytes_without(group), encoded_bytes(records, group)) << group;
    }
    ASSERT_EQ(size.bytes_without(groups + 1), size.bytes());
    for (const std::uint64_t count : {1U, 3U, 18000U, 60000U}) {
      const ManifestTail tail{count + random() % 1000, 4};
      ASSERT_EQ(size.bytes(tail), encoded_bytes(records, 0, tail)) << count;
      const auto group = static_cast<std::uint32_t>(1 + random() % groups);
      ASSERT_EQ(size.bytes_without(group, tail), encoded_bytes(records, group, tail)) << count;
    }
  }
}

}  // namespace
}  // namespace varve::format
