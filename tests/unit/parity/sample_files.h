// SPDX-License-Identifier: Apache-2.0
// A series' folder in memory, with data files of random bytes.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/coding.h"
#include "io/memory_file_system.h"
#include "parity/group_files.h"
#include "parity/upkeep.h"
#include "store/folder_store.h"
#include "store/segment_files.h"
#include "support/faulty_file_system.h"

namespace varve::parity {

inline constexpr StoreId kStore{1};

class SampleFiles : public testing::Test {
 protected:
  SampleFiles() : faulty(new test::FaultyFileSystem(io::make_memory_file_system())), files(faulty) {
    for (const char* folder : {"s", "s/active", "s/volumes", "s/parity"}) {
      EXPECT_TRUE(files->make_directory(folder));
    }
  }

  static std::string path_of(std::uint32_t segment) {
    return "s/" + store::segment_path(SegmentNumber{segment});
  }

  DataFile add(std::uint32_t segment, std::size_t bytes) {
    std::vector<std::byte> content(bytes);
    for (auto& byte : content) byte = static_cast<std::byte>(random());
    const auto file = files->open(path_of(segment), io::OpenMode::kReadWrite);
    EXPECT_TRUE((*file)->write_at(0, content));
    EXPECT_TRUE((*file)->sync());
    contents[segment] = std::move(content);
    return {SegmentNumber{segment}, bytes, is_volume(SegmentNumber{segment}), 1};
  }

  std::vector<std::byte> content(std::uint32_t segment) {
    const auto text = files->read_file(path_of(segment), std::size_t{1} << 30);
    EXPECT_TRUE(text);
    const auto bytes = base::as_bytes(*text);
    return {bytes.begin(), bytes.end()};
  }

  void write(const std::string& path, std::uint64_t offset, const std::vector<std::byte>& bytes) {
    const auto file = files->open(path, io::OpenMode::kReadWrite);
    EXPECT_TRUE((*file)->write_at(offset, bytes));
  }
  void flip(const std::string& path, std::uint64_t offset) {
    const auto file = files->open(path, io::OpenMode::kReadWrite);
    std::vector<std::byte> one(1);
    EXPECT_TRUE((*file)->read_at(offset, one));
    one[0] ^= std::byte{0x10};
    EXPECT_TRUE((*file)->write_at(offset, one));
  }

  KeepReport keep(const std::vector<DataFile>& present, std::uint32_t percent) {
    KeepOptions options;
    options.percent = percent;
    auto report = keep_parity(store, kStore, present, options);
    EXPECT_TRUE(report) << report.error().message();
    return report ? *report : KeepReport{};
  }
  std::vector<Group> groups() {
    auto listing = list_groups(store, kStore);
    EXPECT_TRUE(listing);
    return listing->groups;
  }

  test::FaultyFileSystem* faulty;  // The same object as `files`.
  std::unique_ptr<io::FileSystem> files;
  store::FolderStore store{*files, "s"};
  std::mt19937 random{1};
  std::map<std::uint32_t, std::vector<std::byte>> contents;
};

}  // namespace varve::parity
