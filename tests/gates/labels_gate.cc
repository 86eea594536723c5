// SPDX-License-Identifier: Apache-2.0
// The labels that one seal writes have a constant size, however many versions the series has.
#include <gtest/gtest.h>

#include <string>

#include "support/records_read.h"
#include "support/temp_repository.h"

namespace varve {
namespace {

using test::must;

constexpr int kVersions = 20;
constexpr std::uint64_t kBytesPerSealMax = 2500;

TEST(LabelsGate, ASealWritesLabelsOfAConstantSize) {
  const test::TempDirectory directory;
  const std::string path = directory.path() + "/r";
  must(Repository::create(path, test::small_chunks(Codec::kNone)));
  const auto repository = test::reopen(path);
  const auto series = must(repository->create_series("s")).id;
  struct Cost {
    std::uint64_t bytes, rewrites;
  };
  int stored = 0;
  const auto store = [&](int versions) {
    const auto now = [&] {
      return Cost{test::metric(*repository, "varve_labels_written_bytes_total"),
                  test::metric(*repository, "varve_labels_rewrites_total")};
    };
    const Cost before = now();
    for (int i = 0; i < versions; ++i) {
      const auto name = "v" + std::to_string(++stored);
      const auto number = must(repository->open_version(series, name, test::folder())).number;
      test::write_file(*must(repository->writer(series)), kRootIno, "f", name);
      must(repository->seal(series, number, ""));
    }
    const Cost after = now();
    return Cost{after.bytes - before.bytes, after.rewrites - before.rewrites};
  };
  const Cost few = store(kVersions);
  const Cost many = store(3 * kVersions);
  EXPECT_LE(few.bytes, kBytesPerSealMax * kVersions);
  EXPECT_LE(many.bytes, kBytesPerSealMax * 3 * kVersions);
  // Rewriting becomes rarer as the labels grow. Otherwise each of the changes is one append.
  EXPECT_LE(few.rewrites, kVersions / 3);
  EXPECT_LE(many.rewrites, 3 * kVersions / 6);
}

}  // namespace
}  // namespace varve
