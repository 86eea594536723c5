// SPDX-License-Identifier: Apache-2.0
#include "series/readers.h"

#include <gtest/gtest.h>

#include <memory>

#include "format/dir_node.h"
#include "version/sealed_version.h"

namespace varve::series {
namespace {

constexpr VersionNumber kOne{1};
constexpr VersionNumber kTwo{2};

std::shared_ptr<version::SealedVersion> some_reader() {
  return std::make_shared<version::SealedVersion>(version::SealedVersionParts{}, VersionInfo{},
                                                  format::DirEntry{});
}

TEST(Readers, KeepsAReaderOnlyWhileItIsUsed) {
  Readers readers;
  auto reader = some_reader();
  readers.add(kOne, reader);
  EXPECT_EQ(readers.find(kOne), reader);
  EXPECT_EQ(readers.find(kTwo), nullptr);
  reader.reset();
  EXPECT_EQ(readers.find(kOne), nullptr);
}

TEST(Readers, ARenamedVersionGetsANewReaderAndKeepsItsOpenFiles) {
  Readers readers;
  const auto reader = some_reader();
  const auto files = readers.open_files(kOne);
  readers.add(kOne, reader);
  readers.forget(kOne);
  EXPECT_EQ(readers.find(kOne), nullptr);
  EXPECT_EQ(readers.open_files(kOne), files);
}

TEST(Readers, ADeletedVersionLosesItsReaderAndItsOpenFiles) {
  Readers readers;
  const auto reader = some_reader();
  const auto files = readers.open_files(kOne);
  const auto others = readers.open_files(kTwo);
  readers.add(kOne, reader);
  readers.forget_deleted({kOne});
  EXPECT_EQ(readers.find(kOne), nullptr);
  EXPECT_NE(readers.open_files(kOne), files);
  EXPECT_EQ(readers.open_files(kTwo), others);
}

}  // namespace
}  // namespace varve::series
