// SPDX-License-Identifier: Apache-2.0
// Generates series of the kinds that backups have: releases, packages, images, mail, databases, and
// folders of users.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "avar/version_source.h"

namespace varve::bench {

/// A series of one kind. A version is a list of files, and a file a list of contents.
class KindSource final : public ContentSource {
 public:
  using Files = std::vector<std::vector<Content>>;

  enum class Kind : std::uint8_t {
    kReleases,   ///< One package: most releases change 1 %, every fourth one half of it.
    kPackages,   ///< Many packages: 2 % of the bytes are packages that are replaced or updated.
    kImages,     ///< A disk: 2 % of the blocks change, clustered, half of them in a few hot places.
    kMail,       ///< Folders that grow at their end, and lose a few mails.
    kDatabase,   ///< One file: 2 % of the pages change, most in a tenth of the file.
    kScattered,  ///< One file: 2 % of the pages change, anywhere.
    kHome,       ///< Small files: 2 % of the bytes are files that are saved, added, removed, moved.
    kBuilds,     ///< One package: 70 % changes, in runs, and every third version almost all.
    kDump,       ///< One file: a run of a third stays, and the rest is replaced.
  };

  KindSource(Kind kind, std::size_t chunks, std::uint64_t seed)
      : kind_(kind), chunks_(chunks), random_(seed) {
    switch (kind) {
      case Kind::kReleases:
      case Kind::kBuilds:
        add_files(3.0, 1.8, 3000);
        break;
      case Kind::kPackages:
        add_files(3.5, 1.2, 500);
        break;
      case Kind::kHome:
        add_files(1.5, 1.6, 1000);
        break;
      case Kind::kMail:
        for (int i = 0; i < 20; ++i) files_.push_back(fresh(chunks / 20));
        break;
      case Kind::kImages:
      case Kind::kDatabase:
      case Kind::kScattered:
      case Kind::kDump:
        files_.push_back(fresh(chunks));
        break;
    }
    for (auto& place : hot_) place = random_() % chunks;
  }

  [[nodiscard]] std::vector<Content> stream() const {
    std::vector<Content> all;
    for (const auto& file : files_) all.insert(all.end(), file.begin(), file.end());
    return all;
  }

  [[nodiscard]] const Files& files() const { return files_; }

  void next_version() {
    ++version_;
    const auto budget = static_cast<std::ptrdiff_t>(chunks_ / 50);
    switch (kind_) {
      case Kind::kReleases:
        version_ % 4 == 0 ? edit_runs(static_cast<std::ptrdiff_t>(chunks_ / 2), 6)
                          : edit_runs(static_cast<std::ptrdiff_t>(chunks_ / 100), 2);
        break;
      case Kind::kPackages:
        replace_packages(budget);
        break;
      case Kind::kMail:
        deliver_mail();
        break;
      case Kind::kImages:
        overwrite(budget, 8, 0.5);
        break;
      case Kind::kDatabase:
        overwrite(budget, 1, 0.9);
        break;
      case Kind::kScattered:
        overwrite(budget, 1, 0);
        break;
      case Kind::kHome:
        work_at_home(budget);
        break;
      case Kind::kBuilds:
        edit_runs(static_cast<std::ptrdiff_t>(version_ % 3 == 0 ? 2 * chunks_ : chunks_), 30);
        break;
      case Kind::kDump:
        keep_a_third();
        break;
    }
  }

 private:
  double unit() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  std::size_t about(double mean) {
    return 1 + static_cast<std::size_t>(std::exponential_distribution<double>(1 / mean)(random_));
  }
  std::vector<Content> fresh(std::size_t count) {
    std::vector<Content> contents(count);
    for (auto& content : contents) content = next_++;
    return contents;
  }
  void add_files(double mean, double deviation, std::size_t most) {
    std::lognormal_distribution<double> length(mean, deviation);
    for (std::size_t total = 0; total < chunks_; total += files_.back().size()) {
      files_.push_back(fresh(std::clamp<std::size_t>(static_cast<std::size_t>(length(random_)), 1,
                                                     std::min(most, chunks_ / 4))));
    }
  }
  /// Replaces runs of chunks in files that are chosen by their size.
  void edit_runs(std::ptrdiff_t budget, double mean) {
    std::vector<std::size_t> ends;
    for (const auto& file : files_) ends.push_back((ends.empty() ? 0 : ends.back()) + file.size());
    while (budget > 0) {
      const auto chosen = std::upper_bound(ends.begin(), ends.end(), random_() % ends.back());
      auto& file = files_[static_cast<std::size_t>(chosen - ends.begin())];
      const std::size_t at = random_() % file.size();
      const std::size_t end = std::min(file.size(), at + about(mean));
      for (std::size_t i = at; i < end; ++i) file[i] = next_++;
      budget -= static_cast<std::ptrdiff_t>(end - at);
    }
  }
  void keep_a_third() {
    auto& file = files_.front();
    const std::size_t kept = file.size() / 3;
    const std::size_t from = random_() % (file.size() - kept);
    for (std::size_t i = 0; i < file.size(); ++i) {
      if (i < from || i >= from + kept) file[i] = next_++;
    }
  }
  void replace_packages(std::ptrdiff_t budget) {
    while (budget > 0) {
      auto& package = files_[random_() % files_.size()];
      const double keep = random_() % 2 == 0 ? 0 : unit() * 0.8;
      for (auto& content : package) {
        if (unit() >= keep) content = next_++;
      }
      budget -= static_cast<std::ptrdiff_t>(package.size());
    }
  }
  void deliver_mail() {
    for (auto& folder : files_) {
      if (random_() % 5 == 0) continue;
      folder.back() = next_++;
      const auto mails = fresh(about(static_cast<double>(chunks_) / 1500));
      folder.insert(folder.end(), mails.begin(), mails.end());
      if (random_() % 3 != 0) continue;
      const auto at = folder.begin() + static_cast<std::ptrdiff_t>(random_() % folder.size());
      folder.erase(at, at + std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(about(8)),
                                                     folder.end() - at - 1));
    }
  }
  // Few files are used often: the index of a file is the square of a random number.
  void work_at_home(std::ptrdiff_t budget) {
    while (budget > 0) {
      const double place = unit();
      const auto at = static_cast<std::size_t>(place * place * static_cast<double>(files_.size()));
      const auto kind = random_() % 20;
      if (kind < 10) {  // An editor saves the file: what follows the first change is new.
        auto& file = files_[at];
        const std::size_t from = random_() % file.size();
        for (std::size_t i = from; i < file.size(); ++i) file[i] = next_++;
        budget -= static_cast<std::ptrdiff_t>(file.size() - from);
      } else if (kind < 15) {
        files_.insert(files_.begin() + static_cast<std::ptrdiff_t>(at), fresh(about(8)));
        budget -= static_cast<std::ptrdiff_t>(files_[at].size());
      } else {
        auto file = std::move(files_[at]);
        files_.erase(files_.begin() + static_cast<std::ptrdiff_t>(at));
        if (kind < 17) continue;
        files_.insert(files_.begin() + static_cast<std::ptrdiff_t>(random_() % files_.size()),
                      std::move(file));
      }
    }
  }
  void overwrite(std::ptrdiff_t budget, double run, double hot) {
    auto& file = files_.front();
    std::normal_distribution<double> around(0, static_cast<double>(file.size()) / 400);
    while (budget > 0) {
      std::size_t at = random_() % file.size();
      if (unit() < hot) {
        const auto place = static_cast<double>(hot_[random_() % hot_.size()]) + around(random_);
        at = static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(file.size() - 1)));
      }
      const std::size_t end = std::min(file.size(), at + (run > 1 ? about(run) : 1));
      for (std::size_t i = at; i < end; ++i) file[i] = next_++;
      budget -= static_cast<std::ptrdiff_t>(end - at);
    }
  }

  const Kind kind_;
  const std::size_t chunks_;
  std::mt19937_64 random_;
  Content next_ = 0;
  std::size_t version_ = 0;
  Files files_;
  std::array<std::size_t, 24> hot_{};
};

struct KindName {
  std::string_view name;
  KindSource::Kind kind;
};
inline constexpr std::array<KindName, 9> kKinds = {{
    {"releases", KindSource::Kind::kReleases},
    {"packages", KindSource::Kind::kPackages},
    {"images", KindSource::Kind::kImages},
    {"mail", KindSource::Kind::kMail},
    {"database", KindSource::Kind::kDatabase},
    {"scattered", KindSource::Kind::kScattered},
    {"home", KindSource::Kind::kHome},
    {"builds", KindSource::Kind::kBuilds},
    {"dump", KindSource::Kind::kDump},
}};

}  // namespace varve::bench
