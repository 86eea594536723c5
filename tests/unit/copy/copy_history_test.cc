// SPDX-License-Identifier: Apache-2.0
// Random histories: after each copy, every version of the source is in the target, byte by byte.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "support/temp_repository.h"
#include "support/tree_text.h"
#include "varve/copy.h"
#include "varve/retention.h"

namespace varve {
namespace {

using test::must;

class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  /// Changes a random entry of a directory, or of one below it.
  void change(VersionWriter& version, Ino directory, int depth = 0) {
    std::vector<std::pair<std::string, OpenEntry>> all;
    must(version.list(directory, "", [&](std::string_view name, const OpenEntry& entry) {
      all.emplace_back(name, entry);
      return true;
    }));
    if (!all.empty() && below(3) != 0) {
      const auto& [name, entry] = all[below(all.size())];
      if (S_ISDIR(entry.attributes.mode) && below(4) != 0) {
        return change(version, entry.ino, depth + 1);
      }
      return change_entry(version, directory, name, entry);
    }
    add(version, directory, depth);
  }

 private:
  std::string new_name() { return "n" + std::to_string(below(12)); }

  void add(VersionWriter& version, Ino directory, int depth) {
    const auto name = new_name();
    if (version.lookup(directory, name)) return;
    switch (below(5)) {
      case 0:
        if (depth < 4) must(version.create(directory, name, test::folder()));
        return;
      case 1: {
        NewFile link;
        link.mode = S_IFLNK | 0777;
        link.symlink_target = std::string(1 + below(100), 't');
        must(version.create(directory, name, link));
        return;
      }
      default:
        test::write_file(version, directory, name, test::noise(below(60000), below(30)));
    }
  }

  void change_entry(VersionWriter& version, Ino directory, const std::string& name,
                    const OpenEntry& entry) {
    switch (below(7)) {
      case 0:
        if (!S_ISDIR(entry.attributes.mode)) must(version.unlink(directory, name));
        return;
      case 1: {
        AttributeChange change;
        change.mode = 0600 + static_cast<std::uint32_t>(below(64));
        change.mtime = Timestamp{static_cast<std::int64_t>(below(1000000)), 5};
        must(version.set_attributes(entry.ino, change));
        return;
      }
      case 2:
        must(version.set_xattr(entry.ino, "user.x" + std::to_string(below(3)),
                               std::string(below(50), 'v'), XattrMode::kAny));
        return;
      case 3:
        if (!S_ISDIR(entry.attributes.mode)) {
          static_cast<void>(version.link(entry.ino, kRootIno, new_name()));
        }
        return;
      case 4:
        static_cast<void>(
            version.rename(directory, name, kRootIno, new_name(), RenameMode::kNoReplace));
        return;
      default:
        write(version, entry);
    }
  }

  void write(VersionWriter& version, const OpenEntry& entry) {
    if (!S_ISREG(entry.attributes.mode)) return;
    const auto file = must(version.open(entry.ino, true));
    switch (below(4)) {
      case 0:
        must(file->allocate(4096 * below(10), 4096 * (1 + below(10)), AllocateMode::kPunchHole));
        return;
      case 1: {
        AttributeChange change;
        change.size = below(80000);
        must(version.set_attributes(entry.ino, change));
        return;
      }
      default:
        must(file->write(below(70000), base::as_bytes(test::noise(1 + below(9000), below(30)))));
    }
  }

  std::mt19937_64 random_;
};

void run_history(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const test::TempDirectory place;
  must(Repository::create(place.path() + "/a", test::small_chunks(Codec::kNone)));
  must(Repository::create(place.path() + "/b", test::small_chunks(Codec::kNone)));
  const auto source = test::reopen(place.path() + "/a");
  auto target = test::reopen(place.path() + "/b");
  const auto id = must(source->create_series("s")).id;
  History history(seed);
  for (int round = 0; round < 8; ++round) {
    const auto newest = source->find_version(id, "latest");
    const std::string name = "v" + std::to_string(round) + ".partial";
    if (newest && history.below(8) != 0) {
      must(source->clone_version(id, newest->number, name));
    } else {
      must(source->open_version(id, name, test::folder()));
    }
    const auto writer = must(source->writer(id));
    for (auto i = history.below(60); i > 0; --i) history.change(*writer, kRootIno);
    must(source->seal(id, writer->info().number, ""));
    if (history.below(6) == 0) {
      const auto versions = must(source->versions(id));
      const auto result =
          source->delete_versions(id, {versions[history.below(versions.size())].number});
      must(result);
    }
    if (history.below(3) == 0) continue;  // The next copy has several versions.
    const bool stops = history.below(3) == 0;
    int calls = 0;
    const auto to = copy_target(*target);
    CopyObserver observer;
    if (stops) observer.progress = [&](const TransferProgress&) { return ++calls < 2; };
    auto report = copy_versions(*source, to.get(), {}, observer);
    if (!report) {
      ASSERT_EQ(report.error().code(), ErrorCode::kInterrupted) << report.error().message();
      must(target->close());
      target.reset();
      target = test::reopen(place.path() + "/b");
      const auto again = copy_target(*target);
      report = copy_versions(*source, again.get(), {}, {});
    }
    ASSERT_TRUE(report) << report.error().message();
    for (const auto& problem : report->problems) ADD_FAILURE() << problem;
    const auto copies = must(target->find_series("s")).id;
    for (const VersionInfo& original : must(source->versions(id))) {
      const auto copy = must(target->find_version(copies, original.name));
      ASSERT_EQ(test::tree_text(*must(source->reader(id, original.number))),
                test::tree_text(*must(target->reader(copy.series, copy.number))))
          << original.name;
      ASSERT_EQ(copy.sealed_at, original.sealed_at);
    }
  }
}

TEST(CopyHistory, EveryVersionIsCopiedByteByByte) {
  const char* const given = std::getenv("VARVE_TEST_SEED");
  if (given != nullptr) return run_history(std::strtoull(given, nullptr, 10));
  for (std::uint64_t seed = 1; seed <= 2; ++seed) run_history(seed);
}

}  // namespace
}  // namespace varve
