// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>
#include <utility>

#include "io/file_system.h"

namespace varve::test {

/// Removes a random file of a folder, cuts it, or flips bytes of it. Does nothing if there is none.
inline void damage_a_file(io::FileSystem& files, const std::string& folder,
                          std::mt19937_64& random) {
  const auto names = *files.list(folder);
  if (names.empty()) return;
  const auto path = folder + "/" + names[random() % names.size()];
  if (random() % 3 == 0) {
    ASSERT_TRUE(files.remove(path));
    return;
  }
  const auto file = std::move(*files.open(path, io::OpenMode::kReadWrite));
  const auto size = *file->size();
  if (random() % 3 == 0) {
    ASSERT_TRUE(file->truncate(random() % (size + 1)));
    return;
  }
  for (int i = 0; i < 30 && size != 0; ++i) {
    std::byte byte{};
    const auto at = random() % size;
    ASSERT_TRUE(file->read_at(at, {&byte, 1}));
    byte ^= std::byte{0x55};
    ASSERT_TRUE(file->write_at(at, {&byte, 1}));
  }
}

}  // namespace varve::test
