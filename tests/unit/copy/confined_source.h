// SPDX-License-Identifier: Apache-2.0
// A target with copies of a source, and connections of that source to serve_copy().
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/coding.h"
#include "copy/local_target.h"
#include "copy/message.h"
#include "copy/raw_source.h"
#include "format/fingerprinter.h"
#include "support/temp_repository.h"
#include "varve/beside.h"
#include "varve/copy.h"
#include "varve/retention.h"

namespace varve::copy {

inline const std::string kSource(32, 'a');
inline const std::string kOther(32, 'b');
inline constexpr std::int64_t kYear = std::int64_t{366} * 86400;
inline constexpr std::string_view kContent = "content that several series have";

inline VersionOrigin origin_of(const std::string& repository, std::uint32_t number) {
  return {repository, SeriesId{7}, static_cast<VersionNumber>(number), {5, 5}, true};
}

inline CopyBegin begin_in(SeriesId series, const std::string& repository, std::uint32_t number,
                          VersionNumber base = {}) {
  CopyBegin begin;
  begin.series = series;
  begin.base = base;
  begin.origin = origin_of(repository, number);
  return begin;
}

/// Returns the changes that make a file with kContent.
inline ChangeBatch content() {
  Change made;
  made.kind = ChangeKind::kMake;
  made.name = "f";
  made.mode = S_IFREG | 0644;
  Change data;
  data.kind = ChangeKind::kData;
  data.name = "f";
  data.chunks.push_back({static_cast<std::uint32_t>(kContent.size()),
                         format::make_sha256_fingerprinter()->fingerprint(base::as_bytes(kContent)),
                         {}});
  return {{made, data}};
}

inline BesideFile beside_file(const std::string& name, std::uint32_t type) {
  BesideFile file;
  file.name = name;
  file.mode = type | 0644;
  file.content = "v1";
  return file;
}

class ConfinedSource : public testing::Test {
 protected:
  static constexpr VersionNumber kFirst{1};
  static constexpr VersionNumber kLocked{2};

  ConfinedSource() {
    test::must(Repository::create(path_, test::small_chunks(Codec::kNone)));
    repository_ = test::reopen(path_);
    own_ = store_copies("own", kSource);
  }

  /// Replaces the target by an empty one.
  void make_new_target() {
    repository_.reset();
    const std::string path = place_.path() + "/new";
    test::must(Repository::create(path, test::small_chunks(Codec::kNone)));
    repository_ = test::reopen(path);
  }
  /// Makes two copies as an honest source does; the second one is locked for a year.
  SeriesId store_copies(const std::string& name, const std::string& repository) {
    LocalTarget target(*repository_);
    const auto series = test::must(target.create_series(name, settings_));
    for (std::uint32_t number = 1; number <= 2; ++number) {
      test::must(target.begin(begin_in(series, repository, number)));
      test::must(target.offer(content()));
      const auto wanted = test::must(target.wanted());
      test::must(target.fill(std::vector<std::string>(std::ranges::count(wanted, true) != 0 ? 1 : 0,
                                                      std::string(kContent))));
      test::must(target.seal({"v" + std::to_string(number), {}, true}));
    }
    test::must(repository_->lock_version(series, kLocked, after_now(kYear)));
    return series;
  }
  /// Makes two versions of the target's user.
  SeriesId store_versions(const std::string& name) {
    const auto series = test::must(repository_->create_series(name)).id;
    for (const char* const version : {"v1", "v2"}) {
      const auto info = test::must(repository_->open_version(series, version, test::folder()));
      test::must(repository_->seal(series, info.number, ""));
    }
    test::must(repository_->lock_version(series, kLocked, after_now(kYear)));
    return series;
  }

  std::unique_ptr<test::RawSource> connect(const SourceRights& rights = {.origin = kSource}) {
    auto source = std::make_unique<test::RawSource>(*repository_, rights);
    source->expect<HelloAnswer>(HelloRequest());
    return source;
  }
  /// Sends one request on a connection of its own. Returns the refusal, if any.
  std::optional<ErrorCode> refusal(const Request& request,
                                   const SourceRights& rights = {.origin = kSource}) {
    return connect(rights)->refusal(request);
  }

  [[nodiscard]] static Timestamp after_now(std::int64_t seconds) {
    Timestamp time = base::SystemClock().now();
    time.seconds += seconds;
    return time;
  }
  Timestamp lock_of(SeriesId series, VersionNumber number) {
    for (const auto& lock : test::must(repository_->version_locks(series))) {
      if (lock.number == number) return lock.locked_until;
    }
    return {};
  }
  /// Returns all that a source may not change in the series of others.
  std::string state_of(SeriesId series) {
    std::string text;
    for (const auto& one : test::must(repository_->series())) {
      if (one.id == series) text += one.name + ":";
    }
    for (const auto& version : test::must(repository_->versions(series))) {
      text += " " + version.name + "@" + std::to_string(lock_of(series, version.number).seconds);
    }
    for (const auto& file : test::must(test::must(repository_->beside(series))->list(kRootIno))) {
      text += " " + file.first;
    }
    return text;
  }

  const test::TempDirectory place_;
  const std::string path_ = place_.path() + "/r";
  SeriesSettings settings_;
  std::unique_ptr<Repository> repository_;
  SeriesId own_{};
};

}  // namespace varve::copy
