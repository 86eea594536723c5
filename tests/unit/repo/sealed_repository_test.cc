// SPDX-License-Identifier: Apache-2.0
// The sealed files of an encrypted repository: nothing in the clear, every change is seen.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "io/posix_file_system.h"
#include "maintain/sealed_check.h"
#include "store/sealed_places.h"
#include "support/temp_repository.h"
#include "varve/beside.h"
#include "varve/check.h"
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
    return {std::istreambuf_iterator<char>(in), {}};
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
  const auto report = must(maintain::check_sealed_files(*disk, path_));
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

TEST_F(SealedRepository, AManifestOfAnotherVersionDoesNotOpen) {
  open();
  add_version("canary-two");
  repository_.reset();
  const auto one = in_series("manifests/00000001.man");
  set_raw(one, raw(in_series("manifests/00000002.man")));
  EXPECT_TRUE(damages().contains(one));
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
