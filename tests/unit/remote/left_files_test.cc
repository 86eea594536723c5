// SPDX-License-Identifier: Apache-2.0
// An attached folder leaves manifests and parity in the store; a folder that takes over downloads
// them.
#include "remote/left_files.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "io/posix_file_system.h"
#include "remote/check_store.h"
#include "stored_catalog.h"
#include "world.h"

namespace varve::test {
namespace {

constexpr std::uint64_t kVersions = 8;

class LeftFiles : public testing::TestWithParam<bool> {
 protected:
  LeftFiles() {
    world_.run([&] { return world_.create(); });
    must(world_.with([&](Repository& repository) {
      auto settings = must(repository.arrange_settings());
      settings.parity_percent = 10;
      must(repository.set_arrange_settings(settings));
    }));
    for (std::uint64_t i = 0; i < kVersions; ++i) {
      world_.store("v" + std::to_string(i), tree_of(i));
    }
    world_.arrange();
  }
  /// Counts the downloads of small files, and fails from the download number `fails_at` on.
  Result<void> attach(AttachRole role, std::uint64_t fails_at = UINT64_MAX) {
    downloads_ = 0;
    auto hooks = world_.hooks();
    hooks.open = [&, this](const remote::BucketConfig&) {
      auto bucket = std::make_shared<MemoryBucket>(world_.shared_objects(), "p/", &world_.clock());
      bucket->set_faults(
          [this, fails_at](std::uint64_t, bucket::RequestKind kind, const std::string& name) {
            const bool is_small =
                kind == bucket::RequestKind::kGet && name.find("/other/") != std::string::npos;
            return is_small && ++downloads_ > fails_at ? Fault::kBefore : Fault::kNone;
          });
      return Result<std::unique_ptr<bucket::Bucket>>(
          std::make_unique<LentBucket>(std::move(bucket)));
    };
    return repo::attach_to_store({.place = "s3://memory/p"}, other_,
                                 world_.options(role == AttachRole::kReads), hooks, role);
  }
  /// Returns the manifests and parity files of a folder, or those only with `ending`.
  static std::map<std::string, std::string> files_in(const std::string& folder,
                                                     const std::string& ending = "") {
    std::map<std::string, std::string> files;
    if (!std::filesystem::exists(folder)) return files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      const auto path = entry.path().lexically_relative(folder).string();
      if (!remote::is_left_in_store(path) || !path.ends_with(ending)) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      files[path] = {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    }
    return files;
  }
  std::string object_of(const std::string& path) {
    const auto state = must(remote::find_state(*io::make_posix_file_system(), world_.path()));
    return must(state->objects()).at(path).front().object;
  }
  std::set<std::string> damaged() {
    std::set<std::string> names;
    const auto check = must(remote::check_objects(other_, world_.options(true), world_.hooks()));
    for (const auto& damage : check.damages) names.insert(damage.object);
    return names;
  }

  World world_{GetParam(), Mishap::kNone, 0};
  const std::string other_ = world_.path() + "-other";
  std::uint64_t downloads_ = 0;
};

TEST_P(LeftFiles, AReaderHasNone) {
  EXPECT_EQ(files_in(world_.path(), ".man").size(), kVersions);
  EXPECT_FALSE(files_in(world_.path(), ".par").empty());
  must(attach(AttachRole::kReads));
  EXPECT_TRUE(files_in(other_).empty());
  EXPECT_LE(downloads_, 6U);
  world_.store("next", tree_of(100));
  const auto repository =
      must(repo::RepositoryImpl::open(other_, world_.options(true), world_.hooks()));
  EXPECT_EQ(World::read_all_versions(*repository), world_.local());
  EXPECT_TRUE(must(repository->check({}, {})).damages.empty());
  EXPECT_TRUE(files_in(other_).empty());
}

TEST_P(LeftFiles, ACheckOfAReaderSeesALostManifest) {
  must(attach(AttachRole::kReads));
  EXPECT_TRUE(damaged().empty());
  const auto name = object_of("series/00000001/manifests/00000002.man");
  auto& objects = world_.objects().objects;
  const auto kept = objects;
  for (const auto& harmed : {name, name + ".copy"}) {
    objects.at("p/" + harmed).bytes[70] ^= std::byte{1};
    EXPECT_EQ(damaged(), std::set<std::string>{harmed});
    objects.erase("p/" + harmed);
    EXPECT_EQ(damaged(), std::set<std::string>{harmed});
    objects = kept;
  }
}

TEST_P(LeftFiles, AFolderThatTakesOverHasAll) {
  must(attach(AttachRole::kWrites));
  EXPECT_EQ(files_in(other_), files_in(world_.path()));
  EXPECT_EQ(world_.attached(), world_.local());
}

TEST_P(LeftFiles, AnInterruptedTakeoverGoesOn) {
  must(attach(AttachRole::kReads));
  const auto of_reader = downloads_;
  std::filesystem::remove_all(other_);
  EXPECT_FALSE(attach(AttachRole::kWrites, of_reader + 5));
  // A folder that was left at an older head may have files of other versions.
  std::filesystem::create_directories(other_ + "/series/00000001/manifests");
  std::ofstream(other_ + "/series/00000001/manifests/00000077.man") << "of a deleted version";
  must(attach(AttachRole::kWrites));
  EXPECT_LE(downloads_, of_reader + files_in(world_.path()).size());
  EXPECT_EQ(files_in(other_), files_in(world_.path()));
  EXPECT_EQ(world_.attached(), world_.local());
}

TEST_P(LeftFiles, ALostManifestCostsNoVersionWhenAFolderTakesOver) {
  const auto name = "p/" + object_of("series/00000001/manifests/00000003.man");
  world_.objects().objects.erase(name);
  world_.objects().objects.erase(name + ".copy");
  must(attach(AttachRole::kWrites));
  EXPECT_EQ(files_in(other_, ".man").size(), kVersions - 1);
  {
    const auto repository =
        must(repo::RepositoryImpl::open(other_, world_.options(), world_.hooks()));
    EXPECT_EQ(World::read_all_versions(*repository), world_.local());
    must(repository->close());
  }
  EXPECT_EQ(files_in(other_, ".man").size(), kVersions);
  EXPECT_EQ(world_.attached(), world_.local());
  EXPECT_TRUE(damaged().empty());
}

INSTANTIATE_TEST_SUITE_P(Plain, LeftFiles, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Encrypted, LeftFiles, testing::Values(true));

}  // namespace
}  // namespace varve::test
