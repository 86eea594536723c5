// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "fake_version.h"
#include "file_tree.h"
#include "varve/restore.h"

namespace varve::testing {
namespace {

std::string random_bytes(std::size_t size) {
  std::mt19937_64 random(20261121);
  std::string bytes(size, '\0');
  // Without zeros, so that data differs from holes.
  for (char& byte : bytes) byte = static_cast<char>(1 + random() % 255);
  return bytes;
}

struct Case {
  std::uint64_t begin;
  std::uint64_t end;
};

class RestoreOfDamagedFile : public ::testing::TestWithParam<Case> {};

TEST_P(RestoreOfDamagedFile, LosesExactlyTheDamagedBytes) {
  const auto [begin, end] = GetParam();
  const std::string data = random_bytes(3'000'000);
  auto root = make_directory();
  auto file = make_file(data);
  file->damaged = {{begin, end}};
  root->children = {{"damaged", file}, {"sound", make_file("sound")}};
  FakeReader version(root);
  const TemporaryDirectory place;
  const auto report = restore_version(version, place / "out", {}, {});
  ASSERT_TRUE(report) << report.error().message();
  std::string expected = data;
  for (std::uint64_t i = begin; i < end; ++i) expected[i] = '\0';
  EXPECT_TRUE(read_file(place / "out/damaged") == expected);
  EXPECT_EQ(read_file(place / "out/sound"), "sound");
  ASSERT_EQ(report->problems.size(), 1U);
  EXPECT_NE(report->problems[0].find("damaged: damaged: " + std::to_string(end - begin) +
                                     " bytes in 1 places from offset " + std::to_string(begin)),
            std::string::npos)
      << report->problems[0];
}

INSTANTIATE_TEST_SUITE_P(Ranges, RestoreOfDamagedFile,
                         ::testing::Values(Case{0, 1}, Case{0, 8192}, Case{1'000'000, 1'131'072},
                                           Case{1'048'575, 1'048'577}, Case{5000, 5001},
                                           Case{4096, 8192}, Case{2'999'999, 3'000'000},
                                           Case{0, 3'000'000}));

TEST(RestoreOfDamagedFile, TwoDamagedRangesInOneBlockLoseWhatIsBetweenToo) {
  const std::string data = random_bytes(4096);
  auto root = make_directory();
  auto file = make_file(data);
  file->damaged = {{100, 200}, {300, 400}};
  root->children = {{"f", file}};
  FakeReader version(root);
  const TemporaryDirectory place;
  const auto report = restore_version(version, place / "out", {}, {});
  ASSERT_TRUE(report) << report.error().message();
  std::string expected = data;
  for (std::size_t i = 100; i < 400; ++i) expected[i] = '\0';
  EXPECT_TRUE(read_file(place / "out/f") == expected);
}

TEST(RestoreOfDamagedFile, FileThatIsThereIsKept) {
  auto root = make_directory();
  auto file = make_file(random_bytes(4096));
  file->damaged = {{100, 200}};
  root->children = {{"f", file}};
  FakeReader version(root);
  const TemporaryDirectory place;
  write_file(place / "f", "mine");
  const auto report = restore_version(version, place.path(), {}, {});
  ASSERT_TRUE(report) << report.error().message();
  ASSERT_EQ(report->problems.size(), 1U);
  EXPECT_NE(report->problems[0].find("kept the existing file"), std::string::npos);
  EXPECT_EQ(read_file(place / "f"), "mine");
}

/// Each restore must report the lost data, not only the first one.
TEST(RestoreOfDamagedFile, SecondRestoreTellsOfTheDamageToo) {
  auto root = make_directory();
  auto file = make_file(random_bytes(4096));
  file->damaged = {{100, 200}};
  root->children = {{"f", file}};
  FakeReader version(root);
  const TemporaryDirectory place;
  for (int i = 0; i < 2; ++i) {
    const auto report = restore_version(version, place / "out", {}, {});
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_EQ(report->problems.size(), 1U);
  }
}

}  // namespace
}  // namespace varve::testing
