// SPDX-License-Identifier: Apache-2.0
// Random histories of one series: files and directories that move, come back and have several
// names, versions that are clones or are written from nothing, and deletions of any versions. After
// each deletion all trees that stay are whole.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/temp_repository.h"
#include "varve/check.h"
#include "varve/retention.h"

namespace varve {
namespace {

using test::must;

constexpr int kHistories = 8;
constexpr int kSteps = 14;

class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed) {
    must(Repository::create(path_, test::small_chunks(Codec::kNone)));
    repository_ = test::reopen(path_);
    series_ = must(repository_->create_series("s")).id;
    // A file of many pieces has a recipe of its own in the catalog.
    for (std::uint64_t i = 0; i < 8; ++i) pieces_.push_back(test::noise(6000, seed * 100 + i));
  }

  void step() {
    if (versions_.size() > 1 && pick(3) == 0) {
      erase();
    } else {
      back_up();
    }
  }

 private:
  struct Folder {
    Ino ino = kRootIno;
    std::vector<std::pair<std::string, OpenEntry>> entries;
  };

  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  std::string pick_name() { return "n" + std::to_string(pick(5)); }

  Folder pick_folder(VersionWriter& writer) {
    Folder at;
    for (auto depth = pick(4);; --depth) {
      at.entries.clear();
      must(writer.list(at.ino, "", [&](std::string_view name, const OpenEntry& entry) {
        at.entries.emplace_back(name, entry);
        return true;
      }));
      std::vector<Ino> inner;
      for (const auto& [name, entry] : at.entries) {
        if (S_ISDIR(entry.attributes.mode)) inner.push_back(entry.ino);
      }
      if (depth == 0 || inner.empty()) return at;
      at.ino = inner[pick(inner.size())];
    }
  }

  std::string content() {
    std::string bytes;
    for (auto n = pick(30); n > 0; --n) bytes += pieces_[pick(pieces_.size())];
    return bytes;
  }

  // Some changes fail, such as the rename of a directory into itself. That is no error here.
  void change(VersionWriter& writer) {
    const auto folder = pick_folder(writer);
    const auto* entry =
        folder.entries.empty() ? nullptr : &folder.entries[pick(folder.entries.size())];
    switch (pick(6)) {
      case 0:
      case 1: {
        const auto made = writer.create(folder.ino, pick_name(), test::regular_file());
        if (!made) break;
        const auto file = must(writer.open(made->ino, true));
        must(file->write(0, base::as_bytes(content())));
        break;
      }
      case 2:
        static_cast<void>(writer.create(folder.ino, pick_name(), test::folder()));
        break;
      case 3:
        if (entry == nullptr) break;
        if (!S_ISDIR(entry->second.attributes.mode)) {
          must(writer.unlink(folder.ino, entry->first));
        } else {
          static_cast<void>(writer.remove_directory(folder.ino, entry->first));
        }
        break;
      case 4: {
        if (entry == nullptr) break;
        const auto target = pick_folder(writer);
        static_cast<void>(writer.rename(folder.ino, entry->first, target.ino, pick_name(), {}));
        break;
      }
      default: {
        if (entry == nullptr) break;
        const auto target = pick_folder(writer);
        static_cast<void>(writer.link(entry->second.ino, target.ino, pick_name()));
      }
    }
  }

  void back_up() {
    const auto name = "v" + std::to_string(next_++);
    VersionNumber number{};
    if (versions_.empty() || pick(4) == 0) {
      number = must(repository_->open_version(series_, name, test::folder())).number;
    } else {
      // A clone of the newest version shares its tree; one of an older version is a copy.
      const auto source = pick(4) == 0 ? versions_[pick(versions_.size())] : versions_.back();
      number = must(repository_->clone_version(series_, source, name)).number;
    }
    {
      const auto writer = must(repository_->writer(series_));
      for (auto n = pick(12); n > 0; --n) change(*writer);
    }
    must(repository_->seal(series_, number, ""));
    versions_.push_back(number);
  }

  void erase() {
    std::vector<VersionNumber> gone;
    for (const auto number : versions_) {
      if (pick(3) == 0) gone.push_back(number);
    }
    must(repository_->delete_versions(series_, gone, {}));
    std::erase_if(versions_, [&](VersionNumber one) { return std::ranges::count(gone, one) != 0; });
    CheckOptions options;
    options.read_data = false;
    const auto report = must(repository_->check(options, {}));
    for (const auto& damage : report.damages) ADD_FAILURE() << damage.where << ": " << damage.what;
  }

  const test::TempDirectory directory_;
  const std::string path_ = directory_.path() + "/repo";
  std::mt19937_64 random_;
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  std::vector<std::string> pieces_;
  std::vector<VersionNumber> versions_;
  int next_ = 0;
};

TEST(DeletionHistoryTest, TreesThatStayAreWhole) {
  for (std::uint64_t seed = 0; seed < kHistories; ++seed) {
    History history(seed);
    for (int i = 0; i < kSteps; ++i) {
      history.step();
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ", step " << i;
    }
  }
}

}  // namespace
}  // namespace varve
