// SPDX-License-Identifier: Apache-2.0
// A fresh machine lists a version of many files in an object store without reading any data: it
// requests no segment and no volume, whatever the store has of them.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "repo/repository_impl.h"
#include "repo/store_repository.h"
#include "support/memory_bucket.h"
#include "support/prefer_memory.h"
#include "support/temp_repository.h"

namespace varve {
namespace {

using test::must;

constexpr int kFiles = 100'000;
constexpr int kFilesPerDirectory = 500;

/// Requests by kind and by the folder of their object, such as "get seg".
class Counts {
 public:
  void add(bucket::RequestKind kind, const std::string& name) {
    auto folder = name.substr(0, name.rfind('/'));
    folder = folder.substr(folder.rfind('/') + 1);
    const std::lock_guard lock(mutex_);
    ++counts_[std::string(bucket::name_of(kind)) + " " + folder];
    ++requests_;
  }
  [[nodiscard]] std::uint64_t of(const std::string& what) const {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(what);
    return found == counts_.end() ? 0 : found->second;
  }
  [[nodiscard]] std::uint64_t requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t> counts_;
  std::uint64_t requests_ = 0;
};

class DistantListingGate : public testing::Test {
 protected:
  DistantListingGate() {
    hooks_.open = [this](const remote::BucketConfig&) {
      auto bucket = std::make_unique<test::MemoryBucket>(objects_, "p/");
      bucket->set_faults([this](std::uint64_t, bucket::RequestKind kind, const std::string& name) {
        counts_->add(kind, name);
        return test::Fault::kNone;
      });
      return Result<std::unique_ptr<bucket::Bucket>>(std::move(bucket));
    };
    hooks_.in_background = false;
  }

  // Stores the version, whose files have data.
  void store() {
    const auto here = temp_.path() + "/here";
    must(repo::create_in_store(place_, here, test::small_chunks(Codec::kNone), {}, hooks_));
    const auto repository = must(repo::RepositoryImpl::open(here, test::quiet_options(), hooks_));
    const auto series = must(repository->create_series("s")).id;
    const auto version = must(repository->open_version(series, "v", test::folder())).number;
    {
      const auto writer = must(repository->writer(series));
      Ino directory = kRootIno;
      for (int i = 0; i < kFiles; ++i) {
        if (i % kFilesPerDirectory == 0) {
          directory = must(writer->create(kRootIno, "d" + std::to_string(i), test::folder())).ino;
        }
        test::write_file(*writer, directory, "f" + std::to_string(i),
                         "content of file " + std::to_string(i));
      }
    }
    must(repository->seal(series, version, ""));
    must(repository->close());
  }

  static std::uint64_t list(VersionReader& reader, Rank directory) {
    std::uint64_t files = 0;
    std::vector<Rank> below;
    must(reader.list(directory, 0, [&](std::uint64_t, std::string_view, const auto& entry) {
      if (S_ISDIR(entry.attributes.mode)) {
        below.push_back(entry.rank);
      } else {
        files += entry.attributes.size != 0 ? 1 : 0;
      }
      return true;
    }));
    for (const auto rank : below) files += list(reader, rank);
    return files;
  }

  const StorePlace place_{.place = "s3://memory/p"};
  test::PreferMemory in_memory_;
  test::TempDirectory temp_;
  std::shared_ptr<test::MemoryObjects> objects_ = std::make_shared<test::MemoryObjects>();
  std::unique_ptr<Counts> counts_ = std::make_unique<Counts>();
  remote::BucketHooks hooks_;
};

TEST_F(DistantListingGate, AFreshMachineListsAVersionWithoutItsData) {
  store();
  const auto there = temp_.path() + "/there";
  counts_ = std::make_unique<Counts>();
  must(repo::attach_to_store(place_, there, test::quiet_options(), hooks_));
  auto options = test::quiet_options();
  options.read_only = true;
  const auto repository = must(repo::RepositoryImpl::open(there, options, hooks_));
  const auto series = must(repository->find_series("s")).id;
  const auto version = must(repository->find_version(series, "v")).number;
  const auto reader = must(repository->reader(series, version));
  EXPECT_EQ(list(*reader, 0), static_cast<std::uint64_t>(kFiles));
  EXPECT_EQ(counts_->of("get seg"), 0U);
  EXPECT_EQ(counts_->of("get vol"), 0U);
  EXPECT_LE(counts_->requests(), 40U) << "the catalog and the manifest take too many requests";
  // A file's content is data, so the count can rise.
  EXPECT_EQ(test::read_sealed(*reader, "d0/f0"), "content of file 0");
  EXPECT_GE(counts_->of("get seg"), 1U);
}

}  // namespace
}  // namespace varve
