// SPDX-License-Identifier: Apache-2.0
// Changes of the keys of a repository that is open for writing.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "support/file_content.h"
#include "support/temp_repository.h"
#include "varve/keys.h"

namespace varve::test {
namespace {

NewKey cheap_key(std::string_view text) {
  return {.key = {KeyKind::kPassphrase, must(Secret::copy_of(base::as_bytes(text)))},
          .label = "test",
          .cost = {.memory_kib = 16, .passes = 1, .lanes = 1}};
}

class KeysBesideTest : public testing::Test {
 protected:
  KeysBesideTest() {
    must(Repository::create(path_, small_chunks(Codec::kNone), encrypted()));
    repository_ = reopen(path_, with_key(quiet_options()));
  }

  [[nodiscard]] std::unique_ptr<KeySlots> beside(const std::string& path) {
    return must(KeySlots::open_beside(path, with_key(quiet_options()),
                                      [this](const std::string& superblock) {
                                        given_.push_back(superblock);
                                        return repository_->adopt_keys(superblock);
                                      }));
  }
  [[nodiscard]] bool opens(std::string_view text) const {
    auto options = quiet_options();
    options.key = [key = cheap_key(text).key] { return Result<UserKey>(key); };
    options.read_only = true;
    return Repository::open(path_, options).has_value();
  }
  [[nodiscard]] static std::string text_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return varve::test::rest_of(file);
  }

  TempDirectory directory_;
  const std::string path_ = directory_.path() + "/repo";
  std::unique_ptr<Repository> repository_;
  std::vector<std::string> given_;
};

TEST_F(KeysBesideTest, AKeyIsAddedReplacedAndRemovedBesideTheWriter) {
  const auto keys = beside(path_);
  EXPECT_EQ(must(keys->add(cheap_key("one"))).number, 2U);
  EXPECT_TRUE(opens("one"));
  must(repository_->create_series("s"));  // The writer goes on.
  EXPECT_EQ(must(keys->replace(2, cheap_key("two"))).number, 3U);
  EXPECT_FALSE(opens("one"));
  EXPECT_EQ(code_of(keys->replace(2, cheap_key("three"))), ErrorCode::kNotFound);
  must(keys->remove(1));
  EXPECT_EQ(code_of(keys->remove(3)), ErrorCode::kNotPermitted);
  EXPECT_EQ(keys->info().key_counter, 3U);
  must(keys->close());
  EXPECT_EQ(text_of(path_ + "/varve.keys"), text_of(path_ + "/varve.repo"));
  must(repository_->close());
  repository_ = nullptr;
  EXPECT_TRUE(opens("two"));
  EXPECT_EQ(must(read_encryption(path_))->key_counter, 3U);
}

TEST_F(KeysBesideTest, OfTwoChangesOfOneStateTheSecondIsRefused) {
  const auto first = beside(path_);
  const auto second = beside(path_);
  must(first->add(cheap_key("one")));
  EXPECT_EQ(code_of(second->add(cheap_key("two"))), ErrorCode::kBusy);
  EXPECT_EQ(second->info().slots.size(), 1U);
  EXPECT_TRUE(opens("one"));
  EXPECT_FALSE(opens("two"));
}

TEST_F(KeysBesideTest, AnOlderTextAndAChangedOneAreRefused) {
  const auto original = text_of(path_ + "/varve.repo");
  const auto keys = beside(path_);
  must(keys->add(cheap_key("one")));
  must(keys->remove(2));
  for (const auto& older : {original, given_[0], given_[1]}) {
    EXPECT_EQ(code_of(repository_->adopt_keys(older)), ErrorCode::kBusy);
  }
  const auto present = text_of(path_ + "/varve.repo");
  auto next = given_[1];
  const auto counter = next.find("key_counter = 2");
  ASSERT_NE(counter, std::string::npos);
  next[counter + 14] = '3';
  for (const std::string& bad : {next, next.substr(0, next.size() / 2), std::string("x"),
                                 std::string(), std::string(100'000, 'a')}) {
    const auto refused = repository_->adopt_keys(bad);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().code(), ErrorCode::kBusy);
  }
  EXPECT_EQ(text_of(path_ + "/varve.repo"), present);
}

TEST_F(KeysBesideTest, KeysOfAnotherRepositoryAreRefused) {
  const std::string other = directory_.path() + "/other";
  must(Repository::create(other, small_chunks(Codec::kNone), encrypted()));
  const auto keys = beside(other);
  EXPECT_EQ(code_of(keys->add(cheap_key("one"))), ErrorCode::kCorrupt);
  EXPECT_FALSE(opens("one"));
}

TEST_F(KeysBesideTest, APlainRepositoryAndAReaderRefuse) {
  const std::string plain = directory_.path() + "/plain";
  must(Repository::create(plain, small_chunks(Codec::kNone)));
  EXPECT_EQ(code_of(KeySlots::open_beside(plain, quiet_options(), {})), ErrorCode::kInvalid);
  const auto keys = beside(path_);
  must(keys->add(cheap_key("one")));
  EXPECT_EQ(code_of(reopen(plain, quiet_options())->adopt_keys(given_[0])),
            ErrorCode::kNotPermitted);
  auto reading = with_key(quiet_options());
  reading.read_only = true;
  EXPECT_EQ(code_of(reopen(path_, reading)->adopt_keys(given_[0])), ErrorCode::kReadOnly);
}

}  // namespace
}  // namespace varve::test
