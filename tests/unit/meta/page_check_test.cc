// SPDX-License-Identifier: Apache-2.0
// The check accepts every file that LMDB writes, and refuses a file that breaks any of LMDB's
// assumptions. VARVE_TEST_COMMITS sets the number of commits of one history.
#include "meta/page_check.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "io/posix_file_system.h"
#include "meta/page_format.h"
#include "meta/probe.h"
#include "support/file_content.h"
#include "support/temp_repository.h"

namespace varve::meta {
namespace {

using varve::test::code_of;
using varve::test::must;
using varve::test::noise;

constexpr std::array<const char*, 3> kThreeTables = {"a", "b", "c"};

class PageCheckTest : public testing::Test {
 protected:
  [[nodiscard]] EnvOptions options(bool read_only = false) const {
    EnvOptions how;
    how.tables = kThreeTables;
    how.read_only = read_only;
    how.map_bytes = std::size_t{1} << 30;
    return how;
  }
  Env open() { return must(Env::open(directory_.path(), options())); }
  [[nodiscard]] Result<void> check() const { return check_pages(directory_.path(), kThreeTables); }

  // Writes trees of two levels, long values, and free pages of several commits.
  void fill() {
    const auto env = open();
    std::mt19937_64 random(5);
    for (int commit = 0; commit < 12; ++commit) {
      auto txn = must(WriteTxn::begin(env));
      for (int i = 0; i < 80; ++i) {
        const auto key = "key " + std::to_string(random() % 300);
        const auto bytes = random() % 40 == 0 ? random() % 20000 : random() % 200;
        must(txn.put(random() % 2, key, noise(bytes, random())));
        must(txn.erase(random() % 2, "key " + std::to_string(random() % 300)));
      }
      must(txn.commit());
    }
    must(check());
    std::ifstream in(path(), std::ios::binary);
    image_ = varve::test::rest_of(in);
  }
  [[nodiscard]] std::string path() const { return directory_.path() + "/data.mdb"; }
  void write(const std::string& bytes) const {
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << bytes;
  }

  void put(std::size_t offset, const void* bytes, std::size_t count) const {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
  }

  template <typename T>
  T at(std::size_t offset) const {
    T value;
    std::memcpy(&value, image_.data() + offset, sizeof value);
    return value;
  }
  // Checks that the page check refuses the file with `value` at `offset` for the reason `why`.
  template <typename T>
  void refused(std::size_t offset, T value, const std::string& why) {
    ASSERT_LE(offset + sizeof value, image_.size());
    ASSERT_NE(std::memcmp(image_.data() + offset, &value, sizeof value), 0) << why;
    put(offset, &value, sizeof value);
    const auto checked = check();
    put(offset, image_.data() + offset, sizeof value);
    ASSERT_FALSE(checked) << why;
    EXPECT_EQ(checked.error().code(), ErrorCode::kCorrupt);
    EXPECT_NE(checked.error().message().find(why), std::string::npos) << checked.error().message();
  }
  [[nodiscard]] std::size_t newest_meta() const {
    const auto first = at<Meta>(kPageHeader).commit;
    return (first > at<Meta>(kPage + kPageHeader).commit ? 0 : kPage) + kPageHeader;
  }
  [[nodiscard]] Database main_record() const { return at<Meta>(newest_meta()).main; }
  [[nodiscard]] std::size_t node(std::size_t page, std::size_t index) const {
    return page + at<std::uint16_t>(page + kPageHeader + 2 * index);
  }
  // Returns the offset of the record of table "a".
  [[nodiscard]] std::size_t table_record() const {
    return node(main_record().root * kPage, 0) + kNodeHeader + 1;
  }

  static constexpr std::size_t kPage = 4096;
  varve::test::TempDirectory directory_;
  std::string image_;
};

TEST_F(PageCheckTest, AcceptsWhatWasNeverWrittenTo) {
  static_cast<void>(open());
  must(check());
  // A file without tables.
  std::filesystem::remove(path());
  EnvOptions none;
  none.map_bytes = std::size_t{1} << 20;
  static_cast<void>(must(Env::open(directory_.path(), none)));
  must(check_pages(directory_.path(), {}));
}

TEST_F(PageCheckTest, AcceptsAnyHistoryOfCommits) {
  std::uint64_t commits = 400;
  if (const char* text = std::getenv("VARVE_TEST_COMMITS")) commits = std::stoull(text);
  std::mt19937_64 random(1);
  std::uint64_t keys = 50;
  std::size_t bytes_max = 100;
  std::optional<Env> env(open());
  std::optional<ReadTxn> snapshot;  // Keeps LMDB from reusing pages.
  for (std::uint64_t commit = 0; commit < commits; ++commit) {
    if (random() % 20 == 0) {
      keys = std::uint64_t{1} << (random() % 14);
      bytes_max = std::size_t{1} << (random() % 15);
    }
    if (random() % 30 == 0) snapshot.reset();
    if (random() % 30 == 0) snapshot.emplace(must(ReadTxn::begin(*env)));
    if (random() % 100 == 0) {
      snapshot.reset();
      env.reset();
      env.emplace(open());
    }
    auto txn = must(WriteTxn::begin(*env));
    const auto table = random() % kThreeTables.size();
    const auto erased_percent = random() % 100;
    for (auto i = random() % 200 + 1; i > 0; --i) {
      // The lengths of keys differ widely, like those of names.
      auto key = base::be64(random() % keys);
      key.append(static_cast<std::size_t>(key.back() % 4 == 0 ? key.back() & 0x7f : 0), 'n');
      if (random() % 100 < erased_percent) {
        must(txn.erase(table, key));
      } else {
        must(txn.put(table, key, noise(random() % bytes_max, random())));
      }
    }
    if (random() % 10 == 0) continue;  // Aborts the transaction.
    must(txn.commit());
    const auto checked = random() % 2 == 0 ? check() : check_pages(*env, kThreeTables);
    ASSERT_TRUE(checked) << "after commit " << commit << ": " << checked.error().message();
  }
}

TEST_F(PageCheckTest, MissesWhatMetaPagesMustSay) {
  fill();
  const auto meta = newest_meta();
  for (const std::size_t page : {std::size_t{0}, kPage}) {
    refused(page, std::uint64_t{7}, "not a meta page");
    refused(page + kFlagsAt, std::uint16_t{0}, "not a meta page");
    refused(page + kPageHeader, std::uint32_t{0}, "not a meta page");
    refused(page + kPageHeader + offsetof(Meta, version), std::uint32_t{2}, "not a meta page");
    for (const std::uint32_t bytes : {0U, 1U, 256U, 4095U, 65536U, 1U << 31}) {
      refused(page + kPageHeader + offsetof(Meta, free), bytes, "page size");
    }
    refused(page + kPageHeader + offsetof(Meta, free) + 4, std::uint16_t{0x0c}, "its flags");
    refused(page + kPageHeader + offsetof(Meta, main) + 4, std::uint16_t{4}, "its flags");
    const auto commit = at<Meta>(page + kPageHeader).commit;
    for (const auto other : {commit + 1, commit + 4, commit ^ 64, std::uint64_t{0}}) {
      refused(page + kPageHeader + offsetof(Meta, commit), other, "an adjacent commit");
    }
  }
  for (const std::uint64_t last : {std::uint64_t{0}, image_.size() / kPage, 1UL << 52, ~0UL}) {
    refused(meta + offsetof(Meta, last_page), last, "the last page");
  }
  refused(meta + offsetof(Meta, last_page), std::uint64_t{1}, "beyond the last");
}

TEST_F(PageCheckTest, MissesWhatRecordsOfTreesMustSay) {
  fill();
  for (const auto record : {newest_meta() + offsetof(Meta, free),
                            newest_meta() + offsetof(Meta, main), table_record()}) {
    const auto said = at<Database>(record);
    refused(record + offsetof(Database, depth), std::uint16_t{0}, "no depth");
    refused(record + offsetof(Database, depth), static_cast<std::uint16_t>(said.depth + 1), "");
    refused(record + offsetof(Database, depth), std::uint16_t{32}, "the depth");
    for (const auto count : {offsetof(Database, branch_pages), offsetof(Database, leaf_pages),
                             offsetof(Database, value_pages), offsetof(Database, entries)}) {
      refused(record + count, at<std::uint64_t>(record + count) + 1, "a different number");
    }
    refused(record + offsetof(Database, root), ~std::uint64_t{0}, "without a root");
    refused(record + offsetof(Database, root), std::uint64_t{1}, "used twice");
    refused(record + offsetof(Database, root), std::uint64_t{1} << 63, "beyond the last");
  }
  refused(table_record() + offsetof(Database, flags), std::uint16_t{4}, "flags of a table");
  refused(table_record() - 1, 'A', "a wrong name");
  refused(table_record() - 1, 'c', "do not ascend");
}

TEST_F(PageCheckTest, MissesWhatPagesMustHold) {
  fill();
  const auto root = at<Database>(table_record()).root * kPage;
  ASSERT_GE(at<Database>(table_record()).depth, 2);
  const auto low = at<std::uint32_t>(node(root, 0));
  const auto leaf = low * kPage;
  for (const auto page : {root, leaf}) {
    refused(page, std::uint64_t{low + 1}, "another page's number");
    // Sets the dirty flag: LMDB would write to the mapped file, and crash.
    refused(page + kFlagsAt, static_cast<std::uint16_t>(at<std::uint16_t>(page + kFlagsAt) | 0x10),
            "its flags");
    const auto lower = at<std::uint16_t>(page + kLowerAt);
    const auto upper = at<std::uint16_t>(page + kUpperAt);
    for (const unsigned wrong : {0U, lower + 1U, upper + 2U}) {
      refused(page + kLowerAt, static_cast<std::uint16_t>(wrong), "free space");
    }
    refused(page + kLowerAt, std::uint16_t{16}, "too few");
    for (const unsigned wrong : {0U, upper + 1U, 4098U, 65534U}) {
      refused(page + kUpperAt, static_cast<std::uint16_t>(wrong), "free space");
    }
    refused(page + kUpperAt, static_cast<std::uint16_t>(upper - 2), "gaps");
    refused(page + kLowerAt, static_cast<std::uint16_t>(lower - 2), "");
    const auto first = at<std::uint16_t>(page + kPageHeader);
    for (const unsigned wrong : {0U, upper - 2U, first + 1U, 4094U, 65534U}) {
      refused(page + kPageHeader, static_cast<std::uint16_t>(wrong), "the offset of a node");
    }
    refused(page + kPageHeader + 2, first, "the offset of a node");
    for (const unsigned wrong : {0U, 512U, 65535U}) {
      refused(node(page, 1) + 6, static_cast<std::uint16_t>(wrong), "the length of a key");
    }
    refused(node(page, 1) + kNodeHeader, '\0', "do not ascend");
    refused(node(page, 1) + kNodeHeader, '\x7f', "do not ascend");
  }
  refused(node(root, 1), low, "used twice");
  refused(node(leaf, 0) + 4, std::uint16_t{4}, "");
  refused(node(leaf, 0), std::uint32_t{60000}, "the length of a value");
}

TEST_F(PageCheckTest, MissesWhatLongValuesMustHold) {
  fill();
  const auto pages = image_.size() / kPage;
  std::size_t found = 0;
  for (std::size_t i = 2; i < pages && found < 5; ++i) {
    const auto page = i * kPage;
    const auto count = at<std::uint32_t>(page + kValuePagesAt);
    if (at<std::uint64_t>(page) != i || at<std::uint16_t>(page + kFlagsAt) != kLongValue) continue;
    // The content of a free page does not matter.
    put(page, std::string(8, '\xff').data(), 8);
    const bool is_free = check().has_value();
    put(page, image_.data() + page, 8);
    if (is_free) continue;
    ++found;
    refused(page, std::uint64_t{i + 1}, "not a long value");
    refused(page + kFlagsAt, std::uint16_t{0x14}, "not a long value");
    refused(page + kValuePagesAt, std::uint32_t{0}, "too few pages");
    if (count > 1) refused(page + kValuePagesAt, count - 1, "too few pages");
    refused(page + kValuePagesAt, count + 1, "");
    refused(page + kValuePagesAt, ~std::uint32_t{0}, "beyond the last");
  }
  EXPECT_GT(found, 0U);
}

TEST_F(PageCheckTest, MissesWhatListsOfFreePagesMustHold) {
  fill();
  const auto record = at<Database>(newest_meta() + offsetof(Meta, free));
  ASSERT_EQ(record.depth, 1);
  const auto page = record.root * kPage;
  const auto count = static_cast<std::size_t>(at<std::uint16_t>(page + kLowerAt) - kPageHeader) / 2;
  for (std::size_t i = 0; i < count; ++i) {
    const auto start = node(page, i);
    const auto list = start + kNodeHeader + 8;
    const auto listed = at<std::uint64_t>(list);
    refused(start + 6, std::uint16_t{6}, "");
    refused(start + kNodeHeader, std::uint64_t{1} << 40, "");
    refused(list, listed + 50, "a list of free pages");
    refused(list, ~std::uint64_t{0}, "a list of free pages");
    if (listed < 2) continue;
    refused(list + 8, std::uint64_t{1} << 40, "do not descend");
    refused(list + 8, std::uint64_t{0}, "");
    refused(list + 8, record.root, "");
    refused(list + 16, at<std::uint64_t>(list + 8), "do not descend");
  }
  EXPECT_GT(count, 0U);
}

TEST_F(PageCheckTest, ShortFilesAndOtherThingsAreRefused) {
  fill();
  for (const auto bytes : {0UL, 1UL, 100UL, kPage, kPage + 100, 2 * kPage,
                           at<Meta>(newest_meta()).last_page * kPage}) {
    write(image_.substr(0, bytes));
    const auto checked = check();
    ASSERT_FALSE(checked) << bytes;
    EXPECT_EQ(checked.error().code(), ErrorCode::kCorrupt) << bytes;
  }
  std::filesystem::remove(path());
  EXPECT_EQ(code_of(check()), ErrorCode::kCorrupt);
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(code_of(check()), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(Env::open(directory_.path(), options(true))), ErrorCode::kCorrupt);
}

// A reader never looks at the older meta page, but a writer would.
TEST_F(PageCheckTest, AnOlderMetaPageIsFoundInAnOpenEnvironment) {
  fill();
  const auto env = must(Env::open(directory_.path(), options(true)));
  must(check_pages(env, kThreeTables));
  const auto older = newest_meta() < kPage ? kPage : 0;
  const auto at_commit = older + kPageHeader + offsetof(Meta, commit);
  const auto commit = at<std::uint64_t>(at_commit) - 2;
  put(at_commit, &commit, sizeof commit);
  const auto checked = check_pages(env, kThreeTables);
  EXPECT_EQ(code_of(checked), ErrorCode::kCorrupt);
}

// Damage that no reader meets excludes only writers.
TEST_F(PageCheckTest, FreePagesMatterToWritersOnly) {
  fill();
  const auto page = at<Database>(newest_meta() + offsetof(Meta, free)).root * kPage;
  const std::uint16_t dirty = 0x12;
  put(page + kFlagsAt, &dirty, sizeof dirty);
  const auto probe = [&](bool read_only) {
    const auto files =
        EnvFiles::open(*io::make_posix_file_system(), directory_.path(), options(read_only));
    return probe_environment(*files, options(read_only));
  };
  must(probe(true));
  EXPECT_EQ(code_of(probe(false)), ErrorCode::kCorrupt);
  write(image_);
  must(probe(false));
}

}  // namespace
}  // namespace varve::meta
