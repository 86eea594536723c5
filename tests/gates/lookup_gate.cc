// SPDX-License-Identifier: Apache-2.0
// Finding a series or a version by its name reads a few catalog records, however many there are.
#include <gtest/gtest.h>

#include <string>

#include "support/records_read.h"
#include "support/temp_repository.h"

namespace varve {
namespace {

using test::code_of;
using test::must;

constexpr int kVersions = 60;
constexpr int kSeries = 60;
constexpr std::uint64_t kRecordsMax = 8;

TEST(LookupGate, NamesAreFoundInAFewRecords) {
  const test::TempDirectory directory;
  const std::string path = directory.path() + "/r";
  must(Repository::create(path, test::small_chunks(Codec::kNone)));
  auto repository = test::reopen(path);
  const auto first = must(repository->create_series("s")).id;
  for (int i = 1; i < kSeries; ++i) must(repository->create_series("s" + std::to_string(i)));
  for (int i = 0; i < kVersions; ++i) {
    const auto name = "v" + std::to_string(i);
    const auto number = must(repository->open_version(first, name, test::folder())).number;
    test::write_file(*must(repository->writer(first)), kRootIno, "f", name);
    must(repository->seal(first, number, ""));
  }
  const auto expect_few = [&] {
    const auto records = [&](const auto& call) { return test::records_read(*repository, call); };
    EXPECT_LE(records([&] { must(repository->find_series("s30")); }), kRecordsMax);
    EXPECT_LE(records([&] { code_of(repository->find_series("none")); }), kRecordsMax);
    EXPECT_LE(records([&] { must(repository->find_version(first, "v30")); }), kRecordsMax);
    EXPECT_LE(records([&] { code_of(repository->find_version(first, "none")); }), kRecordsMax);
    EXPECT_LE(records([&] { must(repository->find_version(first, "latest")); }), kRecordsMax);
    EXPECT_LE(records([&] { must(repository->reader(first, VersionNumber{30})); }), kRecordsMax);
    EXPECT_LE(records([&] { must(repository->versions(first)); }), kVersions + kRecordsMax);
  };
  expect_few();
  must(repository->close());
  repository.reset();
  auto options = test::quiet_options();
  options.read_only = true;
  repository = test::reopen(path, options);
  expect_few();
}

}  // namespace
}  // namespace varve
