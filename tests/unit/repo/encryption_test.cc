// SPDX-License-Identifier: Apache-2.0
// Encrypted repositories: creating and opening them, and the keys that open them.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/coding.h"
#include "support/file_content.h"
#include "support/temp_repository.h"
#include "varve/check.h"
#include "varve/keys.h"
#include "varve/repair.h"

namespace varve::test {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return varve::test::rest_of(file);
}

OpenOptions keyed(const UserKey& key) {
  auto options = quiet_options();
  options.key = [key] { return Result<UserKey>(key); };
  return options;
}

class EncryptionTest : public testing::Test {
 protected:
  EncryptionTest() { must(Repository::create(path_, small_chunks(Codec::kNone), encrypted())); }

  [[nodiscard]] ErrorCode refusal(const OpenOptions& options) const {
    return code_of(Repository::open(path_, options));
  }

  TempDirectory directory_;
  const std::string path_ = directory_.path() + "/repo";
};

TEST_F(EncryptionTest, OpensOnlyWithTheKey) {
  const auto content = noise(200000, 1);
  {
    const auto repository = reopen(path_, with_key(quiet_options()));
    const auto series = must(repository->create_series("s"));
    const auto version = must(repository->open_version(series.id, "v", folder()));
    const auto writer = must(repository->writer(series.id));
    write_file(*writer, kRootIno, "f", content);
    must(repository->seal(series.id, version.number, "v", SealMode::kEnd, SealWriters::kRefuse));
    must(repository->close());
  }
  EXPECT_EQ(refusal(quiet_options()), ErrorCode::kWrongKey);
  EXPECT_EQ(refusal(keyed(test_key('x'))), ErrorCode::kWrongKey);
  auto reading = with_key(quiet_options());
  reading.read_only = true;
  const auto repository = reopen(path_, reading);
  const auto series = must(repository->find_series("s"));
  const auto version = must(repository->find_version(series.id, "v"));
  EXPECT_EQ(read_sealed(*must(repository->reader(series.id, version.number)), "f"), content);
}

TEST_F(EncryptionTest, AKeyIsCheckedWithoutOpening) {
  must(check_key(path_, test_key()));
  EXPECT_EQ(code_of(check_key(path_, test_key('x'))), ErrorCode::kWrongKey);
  const std::string plain = directory_.path() + "/plain";
  must(Repository::create(plain, small_chunks(Codec::kNone)));
  EXPECT_EQ(code_of(check_key(plain, test_key())), ErrorCode::kInvalid);
  EXPECT_EQ(code_of(check_key(directory_.path(), test_key())), ErrorCode::kNoRepository);
}

TEST_F(EncryptionTest, AnErrorOfTheSourceEndsTheOpening) {
  auto options = quiet_options();
  options.key = [] { return Result<UserKey>(Error(ErrorCode::kInterrupted, "no")); };
  EXPECT_EQ(refusal(options), ErrorCode::kInterrupted);
}

TEST_F(EncryptionTest, APlainRepositoryAsksForNoKey) {
  const std::string plain = directory_.path() + "/plain";
  must(Repository::create(plain, small_chunks(Codec::kNone)));
  auto options = quiet_options();
  options.key = [] { return Result<UserKey>(Error(ErrorCode::kInterrupted, "asked")); };
  must(reopen(plain, options)->close());
  EXPECT_FALSE(std::filesystem::exists(plain + "/varve.keys"));
}

TEST_F(EncryptionTest, APlainRepositoryDoesNotTakeThePlaceOfAnEncryptedOne) {
  const std::string plain = directory_.path() + "/plain";
  must(Repository::create(plain, small_chunks(Codec::kNone)));
  auto options = with_key(quiet_options());
  options.encrypted_only = true;
  EXPECT_EQ(code_of(Repository::open(plain, options)), ErrorCode::kWrongKey);
  must(reopen(path_, options)->close());
}

TEST_F(EncryptionTest, RepairRestoresALostSuperblockFromItsCopy) {
  const auto text = text_of(path_ + "/varve.repo");
  EXPECT_EQ(text_of(path_ + "/varve.keys"), text);
  std::filesystem::resize_file(path_ + "/varve.repo", 0);
  EXPECT_EQ(refusal(with_key(quiet_options())), ErrorCode::kCorrupt);
  RepairOptions options;
  EXPECT_EQ(code_of(Repair::plan(path_, options, false, {})), ErrorCode::kWrongKey);
  options.key = with_key({}).key;
  must(must(Repair::plan(path_, options, false, {}))->execute({}));
  EXPECT_EQ(text_of(path_ + "/varve.repo"), text);
  must(reopen(path_, with_key(quiet_options()))->close());
}

TEST_F(EncryptionTest, AFeatureIsAuthenticatedWithTheRest) {
  {
    const auto repository = reopen(path_, with_key(quiet_options()));
    must(repository->create_series("s", {.placement = Placement::kPool}));
    must(repository->close());
  }
  EXPECT_NE(text_of(path_ + "/varve.repo").find("= pool marks encryption\n"), std::string::npos);
  EXPECT_EQ(text_of(path_ + "/varve.keys"), text_of(path_ + "/varve.repo"));
  must(reopen(path_, with_key(quiet_options()))->close());
}

class KeySlotsOfRepository : public EncryptionTest {
 protected:
  // Two seconds of Argon2id for each test would be too much.
  static constexpr PassphraseCost kCheap{.memory_kib = 16, .passes = 1, .lanes = 1};

  static NewKey passphrase(std::string_view text) {
    return {.key = {KeyKind::kPassphrase, must(Secret::copy_of(base::as_bytes(text)))},
            .label = "test",
            .cost = kCheap};
  }
  [[nodiscard]] std::unique_ptr<KeySlots> slots() const {
    return must(KeySlots::open(path_, with_key(quiet_options())));
  }
  [[nodiscard]] bool opens(std::string_view text) const {
    auto opened = Repository::open(path_, keyed(passphrase(text).key));
    if (!opened) {
      EXPECT_EQ(opened.error().code(), ErrorCode::kWrongKey);
    }
    return opened.has_value();
  }
  [[nodiscard]] std::uint32_t counter() const { return must(read_encryption(path_))->key_counter; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + name, std::ios::binary) << text;
  }
};

TEST_F(KeySlotsOfRepository, AKeyIsAddedReplacedAndRemoved) {
  {
    const auto keys = slots();
    EXPECT_EQ(must(keys->add(passphrase("one"))).number, 2U);
    must(keys->close());
  }
  EXPECT_TRUE(opens("one"));
  {
    const auto keys = slots();
    EXPECT_EQ(must(keys->replace(2, passphrase("two"))).number, 3U);
    EXPECT_EQ(code_of(keys->replace(2, passphrase("three"))), ErrorCode::kNotFound);
    must(keys->close());
  }
  EXPECT_FALSE(opens("one"));
  EXPECT_TRUE(opens("two"));
  const auto info = *must(read_encryption(path_));
  EXPECT_EQ(info.key_counter, 2U);
  ASSERT_EQ(info.slots.size(), 2U);
  EXPECT_EQ(info.slots[1].number, 3U);
  EXPECT_EQ(info.slots[1].label, "test");
  EXPECT_EQ(info.slots[1].cost, kCheap);
  {
    const auto keys = slots();
    must(keys->remove(1));
    EXPECT_EQ(code_of(keys->remove(3)), ErrorCode::kNotPermitted);
    must(keys->close());
  }
  EXPECT_EQ(refusal(with_key(quiet_options())), ErrorCode::kWrongKey);
  EXPECT_TRUE(opens("two"));
  EXPECT_EQ(text_of(path_ + "/varve.keys"), text_of(path_ + "/varve.repo"));
}

TEST_F(KeySlotsOfRepository, LabelsAreAuthenticWithAKeyOnly) {
  {
    const auto keys = slots();
    must(keys->add(passphrase("one")));
    must(keys->close());
  }
  const auto key = with_key(quiet_options()).key;
  EXPECT_EQ(must(read_authentic_encryption(path_, key)).slots.at(1).label, "test");
  EXPECT_EQ(code_of(read_authentic_encryption(path_, keyed(passphrase("two").key).key)),
            ErrorCode::kWrongKey);
  auto text = text_of(path_ + "/varve.repo");
  text.erase(text.rfind("checksum = "));
  text.replace(text.find(" test\n"), 6, " tess\n");
  write("/varve.repo",
        text + fmt::format("checksum = {:016x}\n", base::checksum64(base::as_bytes(text))));
  EXPECT_EQ(must(read_encryption(path_))->slots.at(1).label, "tess");
  EXPECT_EQ(code_of(read_authentic_encryption(path_, key)), ErrorCode::kCorrupt);
}

TEST_F(KeySlotsOfRepository, PassphrasesCostNoMoreTogetherThanAnOpeningTries) {
  const auto keys = slots();
  auto dear = passphrase("dear");
  dear.cost = {.memory_kib = 1U << 10, .passes = 16, .lanes = 1};
  must(keys->add(dear));
  dear.cost.memory_kib = 1U << 20;  // Alone, this is what an opening tries at most.
  const auto before = text_of(path_ + "/varve.repo");
  EXPECT_EQ(code_of(keys->add(dear)), ErrorCode::kInvalid);
  EXPECT_EQ(text_of(path_ + "/varve.repo"), before);
  must(keys->close());
}

TEST_F(KeySlotsOfRepository, ARecoveryCodeAloneIsNotEnough) {
  const auto keys = slots();
  NewKey code;
  code.key = {KeyKind::kRecovery, must(make_recovery_code())};
  must(keys->add(code));
  EXPECT_EQ(code_of(keys->remove(1)), ErrorCode::kNotPermitted);
  must(keys->remove(2));
}

TEST_F(KeySlotsOfRepository, ThereIsALimit) {
  const auto keys = slots();
  for (std::size_t i = 1; i < kKeySlotsMax; ++i) must(keys->add(passphrase("a")));
  EXPECT_EQ(code_of(keys->add(passphrase("a"))), ErrorCode::kTooLarge);
  must(keys->replace(2, passphrase("b")));
}

TEST_F(KeySlotsOfRepository, APlainRepositoryHasNone) {
  const std::string plain = directory_.path() + "/plain";
  must(Repository::create(plain, small_chunks(Codec::kNone)));
  EXPECT_EQ(code_of(KeySlots::open(plain, quiet_options())), ErrorCode::kInvalid);
  EXPECT_FALSE(must(read_encryption(plain)).has_value());
}

TEST_F(KeySlotsOfRepository, OlderSlotsThatArePutBackAreRefused) {
  const auto older = text_of(path_ + "/varve.repo");
  {
    const auto keys = slots();
    must(keys->add(passphrase("one")));
    must(keys->close());
  }
  const auto newer = text_of(path_ + "/varve.repo");
  write("/varve.repo", older);
  EXPECT_EQ(refusal(with_key(quiet_options())), ErrorCode::kCorrupt);
  auto reading = with_key(quiet_options());
  reading.read_only = true;
  EXPECT_EQ(refusal(reading), ErrorCode::kCorrupt);
  write("/varve.keys", older);
  EXPECT_EQ(refusal(with_key(quiet_options())), ErrorCode::kCorrupt);
  write("/varve.repo", newer);
  must(reopen(path_, with_key(quiet_options()))->close());
  EXPECT_EQ(text_of(path_ + "/varve.keys"), newer);
}

TEST_F(KeySlotsOfRepository, RepairUsesNewerSlotsOfTheCopyOrKeepsOldOnes) {
  const auto older = text_of(path_ + "/varve.repo");
  {
    const auto keys = slots();
    must(keys->add(passphrase("one")));
    must(keys->close());
  }
  const auto newer = text_of(path_ + "/varve.repo");
  RepairOptions options;
  options.key = with_key({}).key;
  const auto repair = [&] {
    const auto plan = must(Repair::plan(path_, options, false, {}));
    EXPECT_EQ(plan->steps().size(), 1U);
    must(plan->execute({}));
  };
  write("/varve.repo", older);
  repair();
  EXPECT_EQ(text_of(path_ + "/varve.repo"), newer);
  write("/varve.repo", older);
  write("/varve.keys", older);
  repair();
  must(reopen(path_, with_key(quiet_options()))->close());
  EXPECT_EQ(counter(), 2U);
  EXPECT_FALSE(opens("one"));
  // The file of the change between them is older now.
  write("/varve.repo", newer);
  EXPECT_EQ(refusal(with_key(quiet_options())), ErrorCode::kCorrupt);
}

TEST_F(KeySlotsOfRepository, RepairRestoresAForgedSuperblock) {
  auto text = text_of(path_ + "/varve.repo");
  const auto sound = text;
  const auto at = text.find("compression = none");
  text.replace(at, 18, "compression = zstd:1");
  text.resize(text.rfind("checksum"));
  write("/varve.repo",
        text + fmt::format("checksum = {:016x}\n", base::checksum64(base::as_bytes(text))));
  RepairOptions options;
  options.key = with_key({}).key;
  must(must(Repair::plan(path_, options, false, {}))->execute({}));
  EXPECT_EQ(text_of(path_ + "/varve.repo"), sound);
}

TEST_F(KeySlotsOfRepository, CheckFindsDamageOfTheCopy) {
  auto reading = with_key(quiet_options());
  reading.read_only = true;
  const auto damages = [&] { return must(reopen(path_, reading)->check({}, {})).damages.size(); };
  EXPECT_EQ(damages(), 0U);
  std::filesystem::resize_file(path_ + "/varve.keys", 100);
  EXPECT_EQ(damages(), 1U);
  std::filesystem::remove(path_ + "/varve.keys");
  EXPECT_EQ(damages(), 1U);
  must(reopen(path_, with_key(quiet_options()))->close());
  EXPECT_EQ(damages(), 0U);
}

TEST_F(KeySlotsOfRepository, ACrashDuringAChangeLeavesOldOrNewKeys) {
  // The states between the three writes, in their order.
  const auto older_copy = text_of(path_ + "/varve.keys");
  const auto catalog = text_of(path_ + "/catalog/data.mdb");
  {
    const auto keys = slots();
    must(keys->add(passphrase("one")));
    must(keys->close());
  }
  const auto newer = text_of(path_ + "/varve.repo");
  write("/varve.keys", older_copy);
  write("/catalog/data.mdb", catalog);
  must(reopen(path_, keyed(passphrase("one").key))->close());
  EXPECT_EQ(text_of(path_ + "/varve.keys"), newer);
  // The catalog knows the change now.
  write("/varve.repo", older_copy);
  EXPECT_EQ(refusal(with_key(quiet_options())), ErrorCode::kCorrupt);
}

TEST_F(KeySlotsOfRepository, EveryAlteredLineIsSeen) {
  const auto text = text_of(path_ + "/varve.repo");
  const auto altered = [&](std::string_view line, std::string_view by) {
    auto changed = text.substr(0, text.rfind("checksum"));
    const auto at = changed.find(line);
    EXPECT_NE(at, std::string::npos) << line;
    changed.replace(at, line.size(), by);
    const auto sum = base::checksum64(base::as_bytes(changed));
    return changed + fmt::format("checksum = {:016x}\n", sum);
  };
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"compression = none", "compression = zstd:1"},
      {"chunk_bytes_max = 16384", "chunk_bytes_max = 32768"},
      {"key_counter = 0", "key_counter = 1"},
      {"features_required = marks encryption", "features_required = pool encryption"},
      {"key_slot_1", "key_slot_2"},
      {"key_counter = 0", "key_counter = 0\nnew_key = 1"},
      {"authentication = ", "authentication = 0"}};
  for (const auto& [line, by] : changes) {
    write("/varve.repo", altered(line, by));
    EXPECT_EQ(refusal(with_key(quiet_options())), ErrorCode::kCorrupt) << by;
  }
  write("/varve.repo", altered("features_required = marks encryption", "features_required = none"));
  auto options = with_key(quiet_options());
  options.encrypted_only = true;
  EXPECT_EQ(refusal(options), ErrorCode::kWrongKey);
  write("/varve.repo", text);
  must(reopen(path_, with_key(quiet_options()))->close());
}

}  // namespace
}  // namespace varve::test
