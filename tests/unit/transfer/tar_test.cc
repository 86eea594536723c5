// SPDX-License-Identifier: Apache-2.0
// Archives of sparse files, unpacked by the common programs.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "fake_version.h"
#include "file_tree.h"
#include "varve/restore.h"

namespace varve::testing {
namespace {

struct SparseFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> data;
};

std::vector<SparseFile> sparse_files() {
  std::vector<SparseFile> files = {
      {"hole of one byte", 3000, {{0, 700}, {701, 3000}}},
      {"hole at the start", 3000, {{1, 3000}}},
      {"hole at the end", 3000, {{0, 2999}}},
      {"nothing but a hole", 5000, {}},
      {"one byte", 10'000, {{5000, 5001}}},
      {"regions that touch", 20'000, {{600, 1024}, {1024, 1100}, {9000, 9001}}},
      {"regions in one block", 20'000, {{513, 520}, {530, 1000}, {1023, 1025}}},
      {"whole blocks", 20'480, {{512, 1024}, {4096, 8192}}},
      {"last block cut", 20'001, {{512, 1000}, {19'000, 20'001}}},
      {"data before the end", 20'001, {{512, 1000}, {19'000, 19'990}}},
  };
  std::mt19937_64 random(41);
  for (int i = 0; i < 20; ++i) {
    SparseFile file{"random " + std::to_string(i), 0, {}};
    for (int part = 0; part < 30; ++part) {
      const std::uint64_t begin = file.bytes + random() % (random() % 2 == 0 ? 3 : 3000);
      file.bytes = begin + 1 + random() % (random() % 2 == 0 ? 5 : 2000);
      file.data.emplace_back(begin, file.bytes);
    }
    file.bytes += random() % 3 * 333;
    files.push_back(std::move(file));
  }
  return files;
}

class TarOfSparseFiles : public ::testing::TestWithParam<const char*> {};

TEST_P(TarOfSparseFiles, GivesTheSameBytes) {
  const std::string command = GetParam();
  const std::string program = command.substr(0, command.find(' '));
  if (std::system(("command -v " + program + " >/dev/null").c_str()) != 0) {
    GTEST_SKIP() << program << " is not installed";
  }
  std::mt19937_64 random(7);
  auto root = make_directory();
  const auto files = sparse_files();
  for (const SparseFile& file : files) {
    std::string bytes(file.bytes, '\0');
    for (const auto& [begin, end] : file.data) {
      for (auto i = begin; i < end; ++i) bytes[i] = static_cast<char>(1 + random() % 255);
    }
    auto node = make_file(bytes);
    node->written.clear();
    for (const auto& [begin, end] : file.data) node->written[begin] = end;
    root->children.emplace_back(file.name, node);
  }
  // The entry after a sparse file must be found, too.
  root->children.emplace_back("z last", make_file("the last file"));
  std::ranges::sort(root->children, {}, [](const auto& child) { return child.first; });
  FakeReader version(root);
  const TemporaryDirectory place;
  {
    const base::UniqueFd archive(::open((place / "tar").c_str(), O_WRONLY | O_CREAT, 0600));
    const auto report = write_tar(version, archive.get(), {}, {});
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_TRUE(report->problems.empty());
  }
  ASSERT_EQ(std::system(("mkdir '" + (place / "out") + "' && cd '" + (place / "out") + "' && " +
                         command + " <../tar >/dev/null")
                            .c_str()),
            0);
  for (const auto& [name, node] : root->children) {
    EXPECT_TRUE(read_file(place / ("out/" + name)) == node->data) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Programs, TarOfSparseFiles,
    ::testing::Values("tar -xf -", "bsdtar -xf -",
                      "python3 -c 'import sys, tarfile; "
                      "tarfile.open(fileobj=sys.stdin.buffer, mode=\"r|\").extractall()'"),
    [](const auto& values) {
      const std::string command = values.param;
      return command.substr(0, command.find(' '));
    });

TEST(Tar, DamagedBytesOfASparseFileBecomeZerosInTheirPlace) {
  std::string bytes(20'000, '\0');
  for (std::size_t i = 0; i < 700; ++i)
    bytes[i] = bytes[10'000 + i] = static_cast<char>('a' + i % 26);
  auto node = make_file(bytes);
  node->written = {{0, 700}, {10'000, 10'700}};
  node->damaged = {{100, 200}, {10'690, 10'700}};
  auto root = make_directory();
  root->children = {{"f", node}, {"g", make_file("next")}};
  FakeReader version(root);
  const TemporaryDirectory place;
  {
    const base::UniqueFd archive(::open((place / "tar").c_str(), O_WRONLY | O_CREAT, 0600));
    const auto report = write_tar(version, archive.get(), {}, {});
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_EQ(report->problems.size(), 1U);
  }
  ASSERT_EQ(std::system(("cd '" + place.path() + "' && tar -xf tar").c_str()), 0);
  bytes.replace(100, 100, 100, '\0');
  bytes.replace(10'690, 10, 10, '\0');
  EXPECT_TRUE(read_file(place / "f") == bytes);
  EXPECT_EQ(read_file(place / "g"), "next");
}

}  // namespace
}  // namespace varve::testing
