// SPDX-License-Identifier: Apache-2.0
#include "history.h"

#include <algorithm>

#include "support/pool_oracle.h"
#include "support/temp_repository.h"
#include "support/test_encryption.h"
#include "varve/arrange.h"
#include "varve/backup.h"
#include "varve/check.h"
#include "varve/retention.h"

namespace varve::test {
namespace {

Result<Ino> ino_of(VersionWriter& version, const std::string& name) {
  auto entry = version.lookup(kRootIno, name);
  if (!entry && entry.error().code() == ErrorCode::kNotFound) {
    entry = version.create(kRootIno, name, regular_file());
  }
  VARVE_TRY_ASSIGN(const auto found, std::move(entry));
  return found.ino;
}

std::string number_text(VersionNumber number) {
  return std::to_string(static_cast<std::uint32_t>(number));
}

}  // namespace

Result<void> History::run(Repository& repository, bool retry, const Step& step) {
  auto done = step(repository);
  return done || !retry ? std::move(done) : step(repository);
}

Result<void> History::live(Repository& repository, bool retry) {
  std::vector<History*> all{this};
  for (const auto& other : others_) all.push_back(other.get());
  std::vector<std::vector<Step>> steps_of;
  for (auto* const one : all) steps_of.push_back(one->steps());
  for (std::size_t i = 0; i < steps_of.front().size(); ++i) {
    for (auto& steps : steps_of) VARVE_TRY(run(repository, retry, steps[i]));
  }
  return {};
}

std::vector<History::Step> History::steps() {
  const auto first = noise(90'000, 1);
  auto second = first;
  second.replace(20'000, 9, "new bytes");
  const std::string third = noise(60'000, 2);
  return {
      [this](Repository& r) -> Result<void> {
        if (series_from_ != kNever) return {};
        SeriesOptions options;
        options.placement = placement_;
        auto made = r.create_series(name_, options);
        if (!made && made.error().code() == ErrorCode::kExists) made = r.find_series(name_);
        VARVE_TRY_ASSIGN(const auto series, std::move(made));
        series_ = series.id;
        series_from_ = now_();
        return {};
      },
      [=, this](Repository& r) -> Result<void> {
        VARVE_TRY_ASSIGN(auto settings, r.arrange_settings());
        settings.parity_percent = 20;
        if (makes_aliases_) {
          VARVE_TRY(r.set_pool_index({PoolIndexKind::kZeroChunk, PoolIndexChoice::kHookBitsMax}));
        }
        return r.set_arrange_settings(settings);
      },
      [=, this](Repository& r) { return begin(r, "one.partial"); },
      [=, this](Repository& r) { return write(r, "stays", first); },
      [=, this](Repository& r) { return write(r, "goes", noise(70'000, 3)); },
      [=, this](Repository& r) { return sync(r, "stays"); },
      [=, this](Repository& r) { return write(r, "small", "short"); },
      [=, this](Repository& r) { return seal(r); },
      [=, this](Repository& r) { return begin(r, "two.partial"); },
      [=, this](Repository& r) { return write(r, "stays", second); },
      [=, this](Repository& r) { return write(r, "new", third); },
      [=, this](Repository& r) { return sync(r, "new"); },
      // Written out of order, so it is staged.
      [=, this](Repository& r) { return write(r, "new", "over", 30'000); },
      [=, this](Repository& r) { return sync(r, "new"); },
      [=, this](Repository& r) { return seal(r, SealMode::kKeep); },
      [=, this](Repository& r) {
        return write(r, "stays", "a change in a version with a base", 50'000);
      },
      [=, this](Repository& r) { return sync(r, "stays"); },
      [=, this](Repository& r) { return seal(r); },
      [=, this](Repository& r) { return begin(r, "four.partial"); },
      [=, this](Repository& r) { return write(r, "new", third); },
      [=, this](Repository& r) { return seal(r); },
      [=, this](Repository& r) { return arrange(r); },
      [=, this](Repository& r) { return remove(r, {2}); },
      [=, this](Repository& r) { return begin(r, "five.partial"); },
      [=, this](Repository& r) { return write(r, "new", third); },
      [=, this](Repository& r) { return write(r, "more", noise(40'000, 5)); },
      [=, this](Repository& r) { return seal(r); },
      [=, this](Repository& r) { return arrange(r); },
      [=, this](Repository& r) {
        return remove(r, {1, 5});
      },
      [=, this](Repository& r) { return begin(r, "six.partial"); },
      [=, this](Repository& r) { return write(r, "more", noise(50'000, 6)); },
      [=, this](Repository& r) { return sync(r, "more"); },
  };
}

Result<void> History::arrange(Repository& repository) {
  ArrangeOptions options;
  if (makes_aliases_) options.post_pass = {true, 1, 1};
  VARVE_TRY(repository.arrange(series_, options));
  return {};
}

Result<void> History::begin(Repository& repository, const std::string& name) {
  auto opened = repository.open_version(series_, name, folder());
  if (!opened && opened.error().code() == ErrorCode::kExists) {
    opened = repository.find_version(series_, name);
  }
  VARVE_TRY_ASSIGN(const auto version, std::move(opened));
  open_ = version.number;
  open_files_.clear();
  return {};
}

void History::change_begins(const std::string& name) {
  for (auto& synced : synced_) {
    if ((synced.name == name || name.empty()) && synced.until == kNever) synced.until = now_();
  }
}

Result<void> History::write(Repository& repository, const std::string& name,
                            const std::string& bytes, std::uint64_t offset) {
  change_begins(name);
  VARVE_TRY_ASSIGN(const auto version, repository.writer(series_));
  VARVE_TRY_ASSIGN(const auto ino, ino_of(*version, name));
  VARVE_TRY_ASSIGN(const auto file, version->open(ino, true));
  VARVE_TRY(file->write(offset, base::as_bytes(bytes)));
  VARVE_TRY(file->flush());
  auto& content = open_files_[name];
  content.resize(std::max<std::size_t>(content.size(), offset + bytes.size()), '\0');
  content.replace(offset, bytes.size(), bytes);
  return {};
}

Result<void> History::sync(Repository& repository, const std::string& name) {
  VARVE_TRY_ASSIGN(const auto version, repository.writer(series_));
  VARVE_TRY_ASSIGN(const auto entry, version->lookup(kRootIno, name));
  VARVE_TRY_ASSIGN(const auto file, version->open(entry.ino, true));
  VARVE_TRY(file->sync());
  synced_.push_back({name, open_files_.at(name), now_(), kNever});
  return {};
}

Result<void> History::seal(Repository& repository, SealMode mode) {
  change_begins("");
  // From now on the version may be sealed. After the call it must be.
  sealed_[open_].files = open_files_;
  auto outcome = repository.seal(series_, open_, "v" + number_text(open_), mode);
  if (!outcome) {
    const auto version = repository.find_version(series_, "v" + number_text(open_));
    if (!version || version->state != VersionState::kSealed) return outcome.error();
  }
  sealed_[open_].from = now_();
  if (mode == SealMode::kKeep && outcome) open_ = outcome->next->number;
  return {};
}

Result<void> History::remove(Repository& repository, std::vector<std::uint32_t> numbers) {
  std::vector<VersionNumber> set;
  for (const auto number : numbers) {
    set.push_back(VersionNumber{number});
    auto& sealed = sealed_.at(set.back());
    if (sealed.until == kNever) sealed.until = now_();
  }
  auto removed = repository.delete_versions(series_, set);
  if (!removed && removed.error().code() != ErrorCode::kNotFound) return removed.error();
  for (const auto number : set) sealed_.at(number).gone = now_();
  return {};
}

void History::examine_sealed(Repository& repository, std::uint64_t moment,
                             std::vector<std::string>& wrong) const {
  std::map<VersionNumber, VersionInfo> found;
  for (const auto& version : must(repository.versions(series_))) {
    if (version.state == VersionState::kSealed) found[version.number] = version;
  }
  for (const auto& [number, sealed] : sealed_) {
    const auto text = "version " + number_text(number);
    const bool present = found.erase(number) != 0;
    if (!present && sealed.from <= moment && moment <= sealed.until)
      wrong.push_back(text + " is lost");
    if (present && sealed.gone <= moment) wrong.push_back(text + " is back after its deletion");
    if (!present) continue;
    const auto reader = must(repository.reader(series_, number));
    std::size_t names = 0;
    must(reader->list(
        0, 0, [&](std::uint64_t, std::string_view, const SealedEntry&) { return ++names != 0; }));
    if (names != sealed.files.size()) wrong.push_back(text + " has other names");
    for (const auto& [name, bytes] : sealed.files) {
      if (read_sealed(*reader, name) != bytes) wrong.push_back(text + ": " + name + " differs");
    }
  }
  for (const auto& [number, info] : found) wrong.push_back("nobody sealed " + info.name);
}

void History::examine_open(Repository& repository, std::uint64_t moment,
                           std::vector<std::string>& wrong) const {
  auto writer = repository.writer(series_);
  for (const auto& synced : synced_) {
    if (synced.from > moment || moment > synced.until) continue;
    if (!writer) {
      wrong.push_back("the open version is lost, and with it " + synced.name + ": " +
                      writer.error().message());
      return;
    }
    const auto entry = (*writer)->lookup(kRootIno, synced.name);
    if (!entry) {
      wrong.push_back("the synced file " + synced.name + " is lost");
    } else if (read_open(**writer, entry->ino) != synced.bytes) {
      wrong.push_back("the synced file " + synced.name + " differs");
    }
  }
  if (!writer && writer.error().code() != ErrorCode::kNotFound) {
    wrong.push_back("the open version: " + writer.error().message());
    return;
  }
  // Further work must succeed, in the open version or in a new one.
  VersionNumber number{};
  if (writer) {
    number = (*writer)->info().number;
  } else {
    number = must(repository.open_version(series_, "after.partial", folder())).number;
    writer = repository.writer(series_);
  }
  const auto bytes = noise(30'000, 9);
  const std::string name = "written after the crash";
  write_file(**writer, kRootIno, name, bytes);
  writer = Error(ErrorCode::kNotFound, "let go");
  must(repository.seal(series_, number, "after"));
  if (read_sealed(*must(repository.reader(series_, number)), name) != bytes) {
    wrong.push_back("what was written after the crash differs");
  }
}

void History::examine_series(const std::string& path, std::uint64_t moment,
                             std::vector<std::string>& wrong) const {
  const auto repository = reopen(path, keyed());
  const auto series = repository->find_series(name_);
  if (!series) {
    if (series_from_ <= moment) wrong.push_back("the series is lost");
    return;
  }
  // The series exists, but its creation was not reported yet.
  if (series_ != series->id) return;
  examine_sealed(*repository, moment, wrong);
  examine_open(*repository, moment, wrong);
  CheckOptions options;
  options.verify_chunks = true;
  // One check covers the whole repository.
  if (!others_.empty() || placement_ == Placement::kLineage) {
    for (const auto& damage : must(repository->check(options, {})).damages) {
      wrong.push_back("check finds " + damage.where + ": " + damage.what);
    }
  }
  must(repository->close());
}

std::vector<std::string> History::examine(const std::string& path, std::uint64_t moment) const {
  std::vector<std::string> wrong;
  try {
    examine_series(path, moment, wrong);
    for (const auto& other : others_) {
      other->examine_series(path, moment, wrong);
    }
    if (others_.empty()) return wrong;
    const PoolOracle pool(path);
    for (const auto& one : pool.wrong()) wrong.push_back(one);
    for (const auto& one : pool.unused()) wrong.push_back(one);
  } catch (const std::exception& failure) {
    wrong.push_back(std::string("it cannot be used: ") + failure.what());
  }
  return wrong;
}

}  // namespace varve::test
