// SPDX-License-Identifier: Apache-2.0
// The limit of texts under one key, in whole repositories: a catalog gets another key, and an open
// version has to be sealed.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/coding.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "meta/stored_records.h"
#include "meta/stored_value.h"
#include "support/closed_catalog.h"
#include "support/sealed_pairs.h"
#include "support/test_encryption.h"
#include "varve/check.h"

namespace varve::test {
namespace {

namespace fs = std::filesystem;

class RepositoryKeyRenewal : public testing::Test {
 protected:
  RepositoryKeyRenewal() {
    must(Repository::create(path_, small_chunks(Codec::kNone), encrypted()));
    open();
    series_ = must(repository_->create_series("series")).id;
    for (const auto* const name : {"one", "two"}) add_version(name);
  }

  void open() { repository_ = reopen(path_, with_key(quiet_options())); }
  void close() {
    writer_.reset();
    must(repository_->close());
    repository_.reset();
  }
  void add_version(const std::string& name) {
    const auto number = must(repository_->open_version(series_, name, folder())).number;
    const auto version = must(repository_->writer(series_));
    write_file(*version, kRootIno, "file", noise(50000, name.size()));
    must(repository_->seal(series_, number, ""));
  }
  meta::Env catalog() const { return open_catalog(path_ + "/catalog", keys_of(path_)); }
  meta::Env overlay(VersionNumber number) const {
    meta::EnvOptions options;
    options.tables = meta::overlay::kTables;
    options.keys = meta::overlay_keys(keys_of(path_), series_, number);
    for (const auto& entry : fs::recursive_directory_iterator(path_ + "/staging")) {
      if (entry.path().filename() == "overlay") {
        return must(meta::Env::open(entry.path().string(), options));
      }
    }
    throw std::runtime_error("there is no overlay");
  }
  static std::string raw(const meta::Env& env, std::string_view key) {
    const auto txn = must(meta::ReadTxn::begin(env));
    return std::string(must(meta::find_stored(txn, meta::kSealTable, key)).value_or(""));
  }
  static std::uint64_t texts(const meta::Env& env) {
    return must(env.texts()->stored(must(meta::ReadTxn::begin(env))));
  }
  // Stores a number of texts, as if so many had been sealed.
  static void set_texts(const meta::Env& env, std::uint64_t number) {
    std::string value;
    base::ByteWriter(value).u64(number);
    std::string sealed(meta::ValueSeal::sealed_bytes(meta::kSealTable, value.size()), '\0');
    env.seal()->seal(meta::kSealTable, meta::kTextsKey, {}, value,
                     std::as_writable_bytes(std::span(sealed)));
    base::ByteWriter(sealed).u32(meta::value_checksum(meta::kTextsKey, sealed));
    auto writer = must(meta::StoredWriter::begin(env));
    must(writer.put(meta::kSealTable, {meta::kTextsKey, sealed}));
    must(writer.commit());
    ASSERT_EQ(texts(env), number);
  }

  TempDirectory directory_;
  const std::string path_ = directory_.path() + "/repo";
  std::unique_ptr<Repository> repository_;
  std::shared_ptr<VersionWriter> writer_;
  SeriesId series_{};
};

TEST_F(RepositoryKeyRenewal, HalfUsedCatalogGetsAnotherKeyAtTheNextOpening) {
  const SealedPairs pairs;
  close();
  const auto salt = raw(catalog(), meta::kSaltKey);
  set_texts(catalog(), crypto::kTextsMax / 2 - 5000);
  open();
  close();
  EXPECT_EQ(raw(catalog(), meta::kSaltKey), salt) << "not yet";
  set_texts(catalog(), crypto::kTextsMax / 2);
  {
    auto reading = with_key(quiet_options());
    reading.read_only = true;
    EXPECT_EQ(must(reopen(path_, reading)->versions(series_)).size(), 2U);
  }
  EXPECT_EQ(raw(catalog(), meta::kSaltKey), salt) << "a reader changes nothing";
  open();
  EXPECT_EQ(must(repository_->find_series("series")).id, series_);
  EXPECT_EQ(read_sealed(*must(repository_->reader(series_, VersionNumber{1})), "file"),
            noise(50000, 3));
  EXPECT_TRUE(must(repository_->check({}, {})).damages.empty());
  add_version("three");
  close();
  const auto renewed = raw(catalog(), meta::kSaltKey);
  EXPECT_NE(renewed, salt);
  EXPECT_LT(texts(catalog()), 5000U);
  EXPECT_EQ(pairs.counts().repeated, 0U);
  EXPECT_FALSE(fs::exists(path_ + "/catalog/data.mdb.tmp"));
  open();
  EXPECT_EQ(must(repository_->versions(series_)).size(), 3U);
  EXPECT_TRUE(must(repository_->check({}, {})).damages.empty());
  close();
  EXPECT_EQ(raw(catalog(), meta::kSaltKey), renewed) << "once";
}

TEST_F(RepositoryKeyRenewal, CatalogAtTheLimitOpensAndGetsAnotherKey) {
  add_version("open");
  close();
  const auto salt = raw(catalog(), meta::kSaltKey);
  set_texts(catalog(), crypto::kTextsMax);
  fs::remove(path_ + "/settled");  // So the opening compares all series with their labels.
  open();
  add_version("more");
  close();
  EXPECT_NE(raw(catalog(), meta::kSaltKey), salt);
  EXPECT_LT(texts(catalog()), 5000U);
}

// The renewal waits while another process reads the catalog, and then the limit holds.
TEST_F(RepositoryKeyRenewal, CatalogThatIsReadKeepsItsKeyAndItsLimit) {
  close();
  const auto salt = raw(catalog(), meta::kSaltKey);
  set_texts(catalog(), crypto::kTextsMax);
  int ready[2];
  int end[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(end), 0);
  const auto reader = ::fork();
  if (reader == 0) {
    ::close(end[1]);
    auto reading = with_key(quiet_options());
    reading.read_only = true;
    const auto opened = Repository::open(path_, reading);
    const char state = opened ? '1' : '0';
    static_cast<void>(::write(ready[1], &state, 1));
    char none = 0;
    static_cast<void>(::read(end[0], &none, 1));
    ::_exit(0);
  }
  char state = 0;
  ASSERT_EQ(::read(ready[0], &state, 1), 1);
  ASSERT_EQ(state, '1');
  open();
  const auto refused = repository_->create_series("more");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kTooLarge);
  EXPECT_EQ(must(repository_->versions(series_)).size(), 2U);
  static_cast<void>(repository_->close());
  repository_.reset();
  ::close(end[1]);
  ASSERT_EQ(::waitpid(reader, nullptr, 0), reader);
  EXPECT_EQ(raw(catalog(), meta::kSaltKey), salt);
  open();
  must(repository_->create_series("more"));
  close();
  EXPECT_NE(raw(catalog(), meta::kSaltKey), salt);
}

// The seal is the only way to another key.
TEST_F(RepositoryKeyRenewal, OpenVersionAtTheLimitCanBeSealed) {
  const auto number = must(repository_->open_version(series_, "three", folder())).number;
  writer_ = must(repository_->writer(series_));
  write_file(*writer_, kRootIno, "before", noise(30000, 8));
  close();
  set_texts(overlay(number), crypto::kTextsMax);
  open();
  writer_ = must(repository_->writer(series_));
  const auto ino = write_file(*writer_, kRootIno, "after", noise(30000, 9));
  const auto synced = must(writer_->open(ino, true))->sync();
  ASSERT_FALSE(synced);
  EXPECT_EQ(synced.error().code(), ErrorCode::kTooLarge);
  EXPECT_NE(synced.error().message().find("seal the open version"), std::string::npos);
  writer_.reset();
  must(repository_->seal(series_, number, ""));
  const auto sealed = must(repository_->reader(series_, number));
  EXPECT_EQ(read_sealed(*sealed, "before"), noise(30000, 8));
  EXPECT_EQ(read_sealed(*sealed, "after"), noise(30000, 9));
  add_version("four");
}

}  // namespace
}  // namespace varve::test
