// SPDX-License-Identifier: Apache-2.0
// The sealed files of an encrypted repository: nothing in the clear, every change is seen.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "io/posix_file_system.h"
#include "maintain/sealed_check.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "store/sealed_places.h"
#include "support/file_content.h"
#include "support/temp_repository.h"
#include "varve/beside.h"
#include "varve/check.h"
#include "varve/keys.h"
#include "varve/repair.h"

namespace varve::test {
namespace {

namespace fs = std::filesystem;
using store::SealedKind;

class SealedRepository : public testing::Test {
 protected:
  SealedRepository() {
    must(Repository::create(path_, small_chunks(Codec::kNone), encrypted()));
    open();
    series_ = must(repository_->create_series("canary-series")).id;
    const auto files = must(repository_->beside(series_));
    const auto ino = must(files->create(kRootIno, "canary-beside", regular_file())).ino;
    const auto file = must(files->open(ino, true));
    must(file->write(0, base::as_bytes(std::string("canary-note"))));
    must(file->flush());
    add_version("canary-one");
    repository_.reset();
  }

  void open() { repository_ = reopen(path_, with_key(quiet_options())); }
  void add_version(const std::string& name) {
    const auto number = must(repository_->open_version(series_, name, folder())).number;
    const auto version = must(repository_->writer(series_));
    const auto sub = must(version->create(kRootIno, "canary-folder", folder())).ino;
    write_file(*version, sub, "canary-file", noise(100000, number_of_versions_++));
    must(repository_->seal(series_, number, ""));
  }
  /// Returns the sealed files.
  std::vector<std::string> sealed() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      const auto file = entry.path().string();
      if (entry.is_regular_file() && store::sealed_place(path_, file)) all.push_back(file);
    }
    return all;
  }
  static std::string raw(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return varve::test::rest_of(in);
  }
  static void set_raw(const std::string& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::string in_series(const std::string& name) const {
    return path_ + "/series/00000001/" + name;
  }
  std::vector<std::string> versions() {
    std::vector<std::string> names;
    for (const auto& info : must(repository_->versions(series_))) names.push_back(info.name);
    return names;
  }
  /// Returns the places of the damages that a check with the key finds.
  std::set<std::string> damages() {
    open();
    std::set<std::string> found;
    for (const auto& damage : must(repository_->check({}, {})).damages) found.insert(damage.where);
    repository_.reset();
    return found;
  }

  /// Returns the places of the damages that a check without the key finds.
  std::vector<std::string> outer_damages() const {
    std::vector<std::string> found;
    for (const auto& damage : must(check_outer(path_, {}, {})).damages) {
      found.push_back(damage.where);
    }
    return found;
  }

  TempDirectory directory_;
  const std::string path_ = directory_.path() + "/repo";
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  std::uint64_t number_of_versions_ = 0;
};

TEST_F(SealedRepository, NothingIsInTheClear) {
  std::set<SealedKind> kinds;
  for (const auto& file : sealed()) {
    const auto bytes = raw(file);
    EXPECT_TRUE(bytes.starts_with("VVSF")) << file;
    EXPECT_EQ(bytes.find("canary"), std::string::npos) << file;
    kinds.insert(static_cast<SealedKind>(store::sealed_place(path_, file)->kind));
  }
  for (const auto kind : {SealedKind::kManifest, SealedKind::kLabels, SealedKind::kIndexRun,
                          SealedKind::kIndexSnapshot, SealedKind::kBeside}) {
    EXPECT_TRUE(kinds.contains(kind)) << static_cast<int>(kind);
  }
  const auto disk = io::make_posix_file_system();
  const auto report =
      must(maintain::check_sealed_files(*disk, maintain::list_sealed_files(*disk, path_)));
  EXPECT_EQ(report.files, sealed().size());
  EXPECT_TRUE(report.damages.empty() && report.incomplete.empty());
}

TEST_F(SealedRepository, ALostCatalogIsRebuiltFromSealedFiles) {
  open();
  add_version("canary-two");
  repository_.reset();
  fs::remove_all(path_ + "/catalog");
  RepairOptions options;
  options.key = with_key({}).key;
  must(must(Repair::plan(path_, options, false, {}))->execute({}));
  open();
  EXPECT_EQ(versions(), (std::vector<std::string>{"canary-one", "canary-two"}));
  const auto info = must(repository_->find_version(series_, "canary-one"));
  EXPECT_EQ(
      read_sealed(*must(repository_->reader(series_, info.number)), "canary-folder/canary-file"),
      noise(100000, 0));
  EXPECT_TRUE(must(repository_->beside(series_))->lookup(kRootIno, "canary-beside"));
}

// A cut at the end of a block leaves blocks that are all sound.
TEST_F(SealedRepository, LabelsThatAreCutShortDoNotStopARebuild) {
  const auto before = raw(in_series("labels"));
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{30}, std::size_t{64},
                                  std::size_t{100}, std::size_t{616}, std::size_t{617}}) {
    ASSERT_LT(bytes, before.size());
    set_raw(in_series("labels"), before.substr(0, bytes));
    fs::remove_all(path_ + "/catalog");
    RepairOptions how;
    how.key = with_key({}).key;
    const auto planned = Repair::plan(path_, how, false, {});
    ASSERT_TRUE(planned) << bytes << ": " << planned.error().message();
    const auto report = must((*planned)->execute({}));
    EXPECT_EQ(report.versions, 1U) << bytes;
    EXPECT_FALSE(report.problems.empty()) << bytes;
  }
}

TEST_F(SealedRepository, EveryDamagedFileIsFoundWithAndWithoutTheKey) {
  EXPECT_TRUE(damages().empty());
  for (const char* name : {"manifests/00000001.man", "beside", "index-00000001.snap"}) {
    const auto file = in_series(name);
    const auto sound = raw(file);
    auto damaged = sound;
    damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
    set_raw(file, damaged);
    const auto report = must(check_outer(path_, {}, {}));
    ASSERT_EQ(report.damages.size(), 1U) << name;
    EXPECT_EQ(report.damages[0].where, file);
    EXPECT_TRUE(damages().contains(file)) << name;
    set_raw(file, sound);
  }
  EXPECT_TRUE(damages().empty());
}

TEST_F(SealedRepository, TheOuterCheckSeesEachValueOfTheCatalog) {
  const auto data = path_ + "/catalog/data.mdb";
  const auto sound = raw(data);
  std::vector<const char*> tables{meta::kSealTable};
  tables.insert(tables.end(), meta::catalog::kTables.begin(), meta::catalog::kTables.end());
  std::vector<std::string> values;
  {
    meta::EnvOptions options;
    options.tables = tables;
    options.read_only = true;
    options.without_keys = true;
    const auto env = must(meta::Env::open(path_ + "/catalog", options));
    const auto txn = must(meta::ReadTxn::begin(env));
    for (meta::TableIndex table = 0; table < tables.size(); ++table) {
      must(meta::for_each_prefix(txn, table, "", [&](std::string_view, std::string_view value) {
        values.emplace_back(value);
        return Result<bool>(false);
      }));
    }
  }
  EXPECT_TRUE(outer_damages().empty());
  ASSERT_GT(values.size(), 5U);
  for (const auto& value : values) {
    auto damaged = sound;
    // A page that is free may have the value, too.
    for (auto at = damaged.find(value); at != std::string::npos; at = damaged.find(value, at + 1)) {
      damaged[at] = static_cast<char>(damaged[at] ^ 1);
    }
    set_raw(data, damaged);
    EXPECT_EQ(outer_damages(), (std::vector<std::string>{path_ + "/catalog"}));
  }
  auto damaged = sound;
  damaged.replace(2 * 4096, sound.size() - 2 * 4096, sound.size() - 2 * 4096, '\xff');
  set_raw(data, damaged);
  EXPECT_EQ(outer_damages(), (std::vector<std::string>{path_ + "/catalog"}));
  fs::remove(data);
  EXPECT_EQ(outer_damages(), (std::vector<std::string>{path_ + "/catalog"}));
  set_raw(data, sound);
  EXPECT_TRUE(outer_damages().empty());
}

TEST_F(SealedRepository, BothChecksSeeTheCopyOfTheSuperblock) {
  const auto copy = path_ + "/varve.keys";
  const auto older = raw(copy);
  auto slots = must(KeySlots::open(path_, with_key(quiet_options())));
  must(slots->add({.key = test_key('x')}));
  must(slots->close());
  slots.reset();
  const auto sound = raw(copy);
  EXPECT_TRUE(outer_damages().empty());
  must(Repository::create(directory_.path() + "/other", small_chunks(Codec::kNone), encrypted()));
  auto damaged = sound;
  damaged[200] = static_cast<char>(damaged[200] ^ 1);
  for (const auto& bytes : {older, damaged, raw(directory_.path() + "/other/varve.keys")}) {
    set_raw(copy, bytes);
    EXPECT_EQ(outer_damages(), (std::vector<std::string>{copy}));
    auto options = with_key(quiet_options());
    options.read_only = true;
    const auto report = must(reopen(path_, options)->check({}, {}));
    ASSERT_EQ(report.damages.size(), 1U);
    EXPECT_EQ(report.damages[0].where, copy);
  }
  fs::remove(copy);
  EXPECT_EQ(outer_damages(), (std::vector<std::string>{copy}));
}

TEST_F(SealedRepository, TheOuterCheckGoesOnBehindADamagedSuperblock) {
  const auto manifest = in_series("manifests/00000001.man");
  for (const auto& file : {path_ + "/varve.repo", manifest}) {
    auto bytes = raw(file);
    bytes[100] = static_cast<char>(bytes[100] ^ 1);
    set_raw(file, bytes);
  }
  EXPECT_EQ(outer_damages(), (std::vector<std::string>{path_ + "/varve.repo", manifest}));
}

TEST_F(SealedRepository, TheOuterCheckSeesMissingFiles) {
  const auto missing = [this] {
    std::vector<std::string> places;
    for (const auto& damage : must(check_outer(path_, {}, {})).damages) {
      places.push_back(damage.where);
    }
    return places;
  };
  open();
  must(repository_->open_version(series_, "open.partial", folder()));  // It has no manifest.
  repository_.reset();
  EXPECT_TRUE(missing().empty());
  std::vector<std::string> files{in_series("labels")};
  for (const auto* const kept : {"manifests", "active"}) {
    for (const auto& entry : fs::directory_iterator(in_series(kept))) {
      files.push_back(entry.path().string());
    }
  }
  EXPECT_GE(files.size(), 3U);
  for (const auto& file : files) {
    fs::rename(file, path_ + "/kept");
    EXPECT_EQ(missing(), std::vector<std::string>{file});
    fs::rename(path_ + "/kept", file);
  }
  EXPECT_TRUE(missing().empty());
  fs::remove_all(path_ + "/series");
  EXPECT_EQ(missing().size(), files.size());
}

TEST_F(SealedRepository, TheOuterCheckStopsInEachPart) {
  std::uint64_t read = 0;
  std::uint64_t total = 0;
  std::size_t steps = 0;
  const auto observe = [&](const CheckProgress& done) {
    EXPECT_GE(done.bytes_done, read);
    EXPECT_LE(done.bytes_done, done.bytes_total);
    read = done.bytes_done;
    total = done.bytes_total;
    ++steps;
  };
  const auto whole = must(check_outer(path_, {}, observe));
  EXPECT_TRUE(whole.finished);
  EXPECT_EQ(read, whole.bytes_read);
  EXPECT_GE(total, read);
  const auto steps_in_all = steps;
  ASSERT_GT(steps_in_all, 20U) << "sealed files and tables are steps, too";
  for (std::size_t last = 1; last < steps_in_all; ++last) {
    std::stop_source stop;
    std::size_t step = 0;
    const auto report = must(check_outer(path_, {false, stop.get_token()}, [&](const auto&) {
      if (++step == last) stop.request_stop();
    }));
    EXPECT_FALSE(report.finished) << last;
    EXPECT_LE(step, last + 1);
  }
}

TEST_F(SealedRepository, AManifestOfAnotherVersionDoesNotOpen) {
  open();
  add_version("canary-two");
  repository_.reset();
  const auto one = in_series("manifests/00000001.man");
  set_raw(one, raw(in_series("manifests/00000002.man")));
  EXPECT_TRUE(damages().contains(one));
}

TEST_F(SealedRepository, BytesBehindAManifestAreFound) {
  const auto one = in_series("manifests/00000001.man");
  const auto whole = raw(one);
  for (const std::size_t more : {1U, 2U, 40U, 41U}) {
    set_raw(one, whole + std::string(more, 'x'));
    EXPECT_TRUE(damages().contains(one)) << more;
  }
  set_raw(one, whole);
  EXPECT_TRUE(damages().empty());
}

TEST_F(SealedRepository, OlderLabelsAreWrittenAgain) {
  const auto older = raw(in_series("labels"));
  open();
  add_version("canary-two");
  repository_.reset();
  set_raw(in_series("labels"), older);
  fs::remove(path_ + "/settled");
  open();
  EXPECT_EQ(versions().size(), 2U);
  repository_.reset();
  EXPECT_NE(raw(in_series("labels")), older);
  EXPECT_TRUE(damages().empty());
}

}  // namespace
}  // namespace varve::test
