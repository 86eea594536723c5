// SPDX-License-Identifier: Apache-2.0
// A backup of a repository holds containers in its data. Behind a damaged header and without the
// catalog, a repair must not take them for its own.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "format/container.h"
#include "support/file_content.h"
#include "support/temp_repository.h"
#include "varve/backup.h"
#include "varve/repair.h"

namespace varve::test {
namespace {

namespace fs = std::filesystem;

class FoundContainers : public testing::Test {
 protected:
  FoundContainers() {
    back_up(inner_, noise(60000, 1));
    embedded_ = read_file(segment_of(inner_));
    back_up(outer_, embedded_);
    header_ = read_file(segment_of(outer_)).substr(0, format::kContainerFixedHeaderBytes);
    fs::remove_all(outer_ + "/catalog");
  }

  static void back_up(const std::string& path, const std::string& content) {
    must(Repository::create(path, small_chunks(Codec::kNone)));
    const auto repository = reopen(path);
    const auto series = must(repository->create_series("s")).id;
    const auto number = must(repository->open_version(series, "v", folder())).number;
    write_file(*must(repository->writer(series)), kRootIno, "file", content);
    must(repository->seal(series, number, ""));
    must(repository->close());
  }
  static std::string segment_of(const std::string& repository) {
    return fs::directory_iterator(repository + "/series/00000001/active")->path().string();
  }
  static std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return varve::test::rest_of(file);
  }
  void flip_in_header(std::size_t offset) const {
    std::fstream file(segment_of(outer_), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(header_[offset] ^ 0x24));
  }
  Result<RepairReport> repair(const RepairOptions& options) {
    return must(Repair::plan(outer_, options, false, {}))->execute({});
  }
  /// Returns how much of the file is right; a byte that is wrong fails the test.
  std::string content() {
    const auto repository = reopen(outer_);
    const auto series = must(repository->find_series("s")).id;
    const auto info = must(repository->find_version(series, "v"));
    const auto reader = must(repository->reader(series, info.number));
    const auto file = must(reader->open(find(*reader, "file")));
    std::string out(embedded_.size(), '\0');
    const auto got = file->read(0, std::as_writable_bytes(std::span(out.data(), out.size())));
    if (!got) return "";
    out.resize(*got);
    return out;
  }

  const TempDirectory directory_;
  const std::string inner_ = directory_.path() + "/inner";
  const std::string outer_ = directory_.path() + "/outer";
  std::string embedded_;
  std::string header_;
};

TEST_F(FoundContainers, OneWrongByteOfAHeaderLosesNothing) {
  for (const std::size_t offset : {0U, 5U, 12U, 16U, 21U, 36U, 60U, 125U}) {
    fs::remove_all(outer_ + "/catalog");
    flip_in_header(offset);
    EXPECT_TRUE(must(repair({})).problems.empty()) << offset;
    // With the new catalog, the next round corrects the header on the disk.
    EXPECT_TRUE(must(repair({})).problems.empty()) << offset;
    EXPECT_TRUE(content() == embedded_) << offset;
  }
}

TEST_F(FoundContainers, DamageBehindTheFixedHeaderStartsNoSearch) {
  std::fstream file(segment_of(outer_), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(format::kContainerFixedHeaderBytes);
  file.write("damaged tables", 14);
  file.close();
  EXPECT_FALSE(must(repair({})).problems.empty());
  EXPECT_EQ(content(), "") << "its bytes are not those of the file that was stored";
}

TEST_F(FoundContainers, AWorseHeaderNeedsAChoice) {
  flip_in_header(17);
  flip_in_header(70);
  const auto refused = repair({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kInvalid);
  EXPECT_NE(refused.error().message().find("--found=skip"), std::string::npos);
  EXPECT_FALSE(fs::exists(outer_ + "/catalog/data.mdb")) << "nothing was changed";
  RepairOptions skip;
  skip.take_found = false;
  EXPECT_FALSE(must(repair(skip)).problems.empty());
  EXPECT_EQ(content(), "") << "its bytes are not those of the file that was stored";
}

TEST_F(FoundContainers, TakingThemIsReported) {
  flip_in_header(17);
  flip_in_header(70);
  RepairOptions take;
  take.take_found = true;
  const auto report = must(repair(take));
  bool told = false;
  for (const std::string& problem : report.problems) {
    told = told || problem.find("found by a search") != std::string::npos;
  }
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace varve::test
