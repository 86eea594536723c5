// SPDX-License-Identifier: Apache-2.0
// Tests an open version whose catalog is older than the version: after a repair that found less,
// or because an attacker put the older file there.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <tuple>

#include "support/temp_repository.h"

namespace varve::test {
namespace {

namespace fs = std::filesystem;

// The parameters are the placement, and whether the older catalog has chunks of the version.
class OlderCatalog : public testing::TestWithParam<std::tuple<Placement, bool>> {
 protected:
  TempDirectory directory_;
  std::string path_ = directory_.path() + "/r";
  std::string older_ = directory_.path() + "/older";
  std::string crashed_ = directory_.path() + "/crashed";
};

TEST_P(OlderCatalog, GivesNoNewChunkTheIdOfALostOne) {
  const bool has_chunks = std::get<1>(GetParam());
  must(Repository::create(path_, small_chunks(Codec::kNone)));
  SeriesId series{};
  {
    const auto repository = reopen(path_);
    SeriesOptions options;
    options.placement = std::get<0>(GetParam());
    series = must(repository->create_series("s", options)).id;
    must(repository->open_version(series, "v.partial", folder()));
    const auto version = must(repository->writer(series));
    if (!has_chunks) copy_crashed(path_, older_);
    write_file(*version, kRootIno, "first", noise(40000, 1));
    must(version->sync());
    if (has_chunks) copy_crashed(path_, older_);
    write_file(*version, kRootIno, "last", noise(40000, 2));
    must(version->sync());
    copy_crashed(path_, crashed_);
  }
  fs::remove_all(crashed_ + "/catalog");
  fs::copy(older_ + "/catalog", crashed_ + "/catalog", fs::copy_options::recursive);

  const auto after = reopen(crashed_);
  const auto version = must(after->writer(series));
  const auto fresh = write_file(*version, kRootIno, "new", noise(40000, 3));
  must(version->sync());
  EXPECT_EQ(read_open(*version, fresh), noise(40000, 3));
  const auto read = [&](const std::string& name) -> Result<std::string> {
    const auto file = must(version->open(must(version->lookup(kRootIno, name)).ino, false));
    std::string out(40000, '\0');
    VARVE_TRY(file->read(0, std::as_writable_bytes(std::span(out.data(), out.size()))));
    return out;
  };
  EXPECT_EQ(code_of(read("last")), ErrorCode::kCorrupt);
  if (!has_chunks) {
    EXPECT_EQ(code_of(read("first")), ErrorCode::kCorrupt);
  } else {
    EXPECT_EQ(must(read("first")), noise(40000, 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Placements, OlderCatalog,
                         testing::Combine(testing::Values(Placement::kLineage,
                                                          Placement::kLineagePool,
                                                          Placement::kPool),
                                          testing::Bool()));

}  // namespace
}  // namespace varve::test
