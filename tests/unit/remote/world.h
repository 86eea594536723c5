// SPDX-License-Identifier: Apache-2.0
// A machine with a repository in an object store in memory. The store fails at a chosen request.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lent_bucket.h"
#include "remote/head.h"
#include "repo/repository_impl.h"
#include "repo/store_repository.h"
#include "support/memory_bucket.h"
#include "support/prefer_memory.h"
#include "support/sparse_reserve.h"
#include "support/temp_repository.h"
#include "varve/arrange.h"
#include "varve/check.h"
#include "varve/retention.h"
#include "world_trees.h"

namespace varve::test {

/// One machine's folder, the object store, and the expected content of both.
class World {
 public:
  /// A state between two steps.
  struct Moment {
    TempDirectory folder{};  ///< With a copy of the machine's folder, if there is one.
    std::map<std::string, MemoryObjects::Object> objects{};
    std::map<std::string, MemoryObjects::Object> removed{};
    std::uint64_t changes = 0;
    std::uint64_t extensions = 0;
    std::int64_t seconds = 0;
    Versions local{};
    Versions replicated{};
    std::uint64_t requests = 0;
  };

  World(bool is_encrypted, Mishap mishap, std::uint64_t at,
        Placement placement = Placement::kLineage,
        std::optional<std::uint64_t> cache_bytes = std::nullopt)
      : is_encrypted_(is_encrypted),
        mishap_(mishap),
        at_(at),
        placement_(placement),
        cache_bytes_(cache_bytes) {
    hooks_.open = [this](const remote::BucketConfig&) { return open_bucket(); };
    hooks_.clock = &clock_;
    hooks_.in_background = false;
    hooks_.waits_for_store = false;
    hooks_.opens_racers = false;
    hooks_.extent_bytes_max = 100'000;
    hooks_.delta_bytes_min = 6000;  // So some heads have a new base.
    hooks_.uploads.requests = 1;    // So the requests have one order.
  }

  /// Runs a step until it succeeds. A step may run again after a failure.
  void run(const std::function<Result<void>()>& step) {
    constexpr int kAttempts = 4;
    for (int attempt = 1;; ++attempt) {
      const auto done = step();
      for (const auto& bucket : buckets_) bucket->apply_late();
      if (killed_) restart();
      expect_consistent();
      const bool repeats = std::exchange(repeats_, false);
      if (done && !repeats) break;
      if (attempt == kAttempts) throw std::runtime_error("no attempt succeeds: " + said(done));
    }
    note_replicated();
    expect_consistent();
  }

  Result<void> create() {
    CreateOptions options;
    if (is_encrypted_) options = encrypted();
    auto parameters = small_chunks(Codec::kNone);
    parameters.placement = placement_;
    const auto created = repo::create_in_store(
        {.place = "s3://memory/p", .volume_class = volume_class, .cache_bytes = cache_bytes_},
        path_, parameters, options, hooks_, object_lock);
    if (created) give_reserve(path_);
    return created;
  }

  /// Returns the present state, between two steps.
  [[nodiscard]] std::unique_ptr<Moment> moment() const {
    auto now = std::make_unique<Moment>();
    if (std::filesystem::exists(path_)) copy_crashed(path_, now->folder.path() + "/here");
    now->objects = objects_->objects;
    now->removed = objects_->removed;
    now->changes = objects_->changes;
    now->extensions = objects_->extensions;
    now->seconds = clock_.seconds;
    now->local = local_;
    now->replicated = replicated_;
    now->requests = requests_;
    return now;
  }
  /// Goes on from a state of another world with the same parameters. Requests count from there.
  void return_to(const Moment& then) {
    const auto kept = then.folder.path() + "/here";
    if (std::filesystem::exists(kept)) copy_crashed(kept, path_);
    objects_->objects = then.objects;
    objects_->removed = then.removed;
    objects_->changes = then.changes;
    objects_->extensions = then.extensions;
    clock_.seconds = then.seconds;
    local_ = then.local;
    replicated_ = then.replicated;
    requests_ = then.requests;
  }

  /// Opens the repository, runs `work`, and closes the repository.
  Result<void> with(const std::function<void(Repository&)>& work) {
    {
      auto opened = repo::RepositoryImpl::open(path_, options(), hooks_);
      if (!opened) return opened.error();
      try {
        work(**opened);
      } catch (const std::runtime_error& failed) {
        return Error(ErrorCode::kIo, failed.what());  // A read from the store failed.
      }
      const auto closed = (*opened)->close();
      if (!closed) return closed;
    }
    return {};
  }

  void store(const std::string& name, const Tree& tree) {
    run([&] {
      return with([&](Repository& repository) {
        const auto id = series_s(repository);
        const auto present = repository.find_version(id, name);
        if (present && present->state == VersionState::kSealed) return;
        // A kill may have left the version open.
        if (present) must(repository.abandon_version(id, present->number, true));
        const auto number = must(repository.open_version(id, name, folder())).number;
        const auto writer = must(repository.writer(id));
        for (const auto& [file, bytes] : tree) write_file(*writer, kRootIno, file, bytes);
        if (before_seal) before_seal(*writer);
        must(repository.seal(id, number, ""));
        local_[name] = tree;
      });
    });
  }

  void erase(const std::set<std::string>& names) {
    run([&] {
      return with([&](Repository& repository) {
        const auto id = must(repository.find_series("s")).id;
        std::vector<VersionNumber> numbers;
        for (const auto& name : names) {
          const auto found = repository.find_version(id, name);
          if (found) numbers.push_back(found->number);
        }
        if (!numbers.empty()) must(repository.delete_versions(id, numbers));
        for (const auto& name : names) local_.erase(name);
      });
    });
  }

  void rename(const std::string& from, const std::string& to) {
    run([&] {
      return with([&](Repository& repository) {
        const auto id = must(repository.find_series("s")).id;
        const auto found = repository.find_version(id, from);
        if (!found) return;
        must(repository.rename_version(id, found->number, to));
        local_[to] = local_[from];
        local_.erase(from);
      });
    });
  }

  void arrange() {
    run([&] {
      return with([&](Repository& repository) {
        const auto id = must(repository.find_series("s")).id;
        ArrangeOptions all;
        all.post_pass.any_new = true;  // Downloads the evicted files.
        must(repository.arrange(id, all));
      });
    });
  }

  /// Reads the store from a fresh machine.
  Versions attached() {
    const auto folder = temp_.path() + "/attached";
    std::filesystem::remove_all(folder);
    const bool spared = std::exchange(spared_, true);
    Versions found;
    const auto attached =
        repo::attach_to_store({.place = "s3://memory/p"}, folder, options(true), hooks_);
    // Before the first head there is nothing to attach to.
    if (!attached && attached.error().code() == ErrorCode::kNoRepository) {
      spared_ = spared;
      return found;
    }
    must(attached);
    {
      const auto repository = must(repo::RepositoryImpl::open(folder, options(true), hooks_));
      found = read_all_versions(*repository);
      const auto report = must(repository->check({}, {}));
      for (const auto& damage : report.damages)
        ADD_FAILURE() << damage.where << ": " << damage.what;
    }
    spared_ = spared;
    return found;
  }

  [[nodiscard]] static Versions read_all_versions(Repository& repository) {
    Versions found;
    for (const auto& series : must(repository.series())) {
      for (const auto& version : must(repository.versions(series.id))) {
        if (version.state != VersionState::kSealed) continue;
        const auto reader = must(repository.reader(series.id, version.number));
        Tree& tree = found[version.name];
        std::vector<std::string> names;
        must(reader->list(0, 0, [&](std::uint64_t, std::string_view name, const auto&) {
          names.emplace_back(name);
          return true;
        }));
        for (const auto& name : names) tree[name] = read_sealed(*reader, name);
      }
    }
    return found;
  }

  /// Checks that the store has the replicated versions, or already the versions sealed here.
  void expect_consistent() {
    // Before the mishap, nothing new is seen; long after it, only the end counts.
    constexpr int kLooksMax = 5;
    if (mishap_ != Mishap::kNone && (requests_ <= at_ || ++looks_ > kLooksMax)) return;
    expect_versions();
  }
  void expect_versions() {
    const auto found = attached();
    if (found == replicated_ || found == local_) return;
    ADD_FAILURE() << "the store has other versions: " << names_of(found) << " instead of "
                  << names_of(replicated_) << " or " << names_of(local_) << where();
  }

  /// Returns the objects whose names have a part.
  [[nodiscard]] std::set<std::string> names_with(const std::string& part) const {
    std::set<std::string> names;
    for (const auto& [name, object] : objects_->objects) {
      if (name.find(part) != std::string::npos) names.insert(name);
    }
    return names;
  }

  /// Returns the names of the heads, without the copies of heads.
  [[nodiscard]] std::set<std::string> heads() const {
    auto names = names_with("/head/");
    std::erase_if(names, [](const auto& name) { return name.ends_with(".copy"); });
    return names;
  }

  /// Checks that the folder has its sealed versions, for a reader and for a writer.
  void expect_here() {
    const bool spared = std::exchange(spared_, true);
    for (const bool read_only : {true, false}) {
      const auto repository = must(repo::RepositoryImpl::open(path_, options(read_only), hooks_));
      EXPECT_EQ(names_of(read_all_versions(*repository)), names_of(local_)) << where();
      EXPECT_TRUE(read_all_versions(*repository) == local_) << where();
      const auto report = must(repository->check({}, {}));
      for (const auto& damage : report.damages)
        ADD_FAILURE() << damage.where << ": " << damage.what << where();
      for (const auto& note : report.notes)
        ADD_FAILURE() << note.where << ": " << note.what << where();
      must(repository->close());
    }
    spared_ = spared;
  }
  /// Returns the bytes of segments and volumes in the folder.
  [[nodiscard]] std::uint64_t local_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      const auto ending = entry.path().extension();
      if (ending == ".seg" || ending == ".vol") bytes += entry.file_size();
    }
    return bytes;
  }

  /// Checks that every head follows the head before.
  void expect_chain() const {
    std::map<std::uint64_t, std::string> heads;
    for (const auto& name : this->heads()) {
      const std::string text(base::as_text(objects_->objects.at(name).bytes));
      heads[must(remote::decode_head(text)).number] = text;
    }
    std::uint64_t number = 0;
    std::string before;
    for (const auto& [at, text] : heads) {
      const auto head = must(remote::decode_head(text));
      EXPECT_EQ(at, ++number);
      EXPECT_EQ(head.previous, before.empty() ? remote::Digest{} : remote::digest_of(before));
      before = text;
    }
  }

  [[nodiscard]] std::uint64_t requests() const { return requests_; }
  /// Returns the counts of requests of a kind, by the writers of the machine.
  [[nodiscard]] bucket::RequestCounts counts(bucket::RequestKind kind) const {
    bucket::RequestCounts sum;
    for (const auto& bucket : buckets_) {
      const auto counts = bucket->traffic()[static_cast<std::size_t>(kind)];
      sum.requests += counts.requests;
      sum.bytes_sent += counts.bytes_sent;
      sum.bytes_received += counts.bytes_received;
    }
    return sum;
  }
  /// Called by store() for each new version, before the seal. May be empty.
  std::function<void(VersionWriter& writer)> before_seal;
  /// Storage class of the volumes in a repository made by create().
  std::string volume_class;
  /// Lock of a repository made by create().
  ObjectLock object_lock;
  [[nodiscard]] std::string where() const {
    return " (mishap " + std::to_string(static_cast<int>(mishap_)) + " at request " +
           std::to_string(at_) + ")";
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] remote::BucketHooks& hooks() { return hooks_; }
  [[nodiscard]] TestClock& clock() { return clock_; }
  [[nodiscard]] MemoryObjects& objects() { return *objects_; }
  [[nodiscard]] const std::shared_ptr<MemoryObjects>& shared_objects() { return objects_; }
  [[nodiscard]] const Versions& local() const { return local_; }
  [[nodiscard]] OpenOptions options(bool read_only = false) const {
    auto options = is_encrypted_ ? with_key(quiet_options()) : quiet_options();
    options.read_only = read_only;
    return options;
  }

 private:
  // Copies only the versions that changed: gates store hundreds of megabytes, one version a step.
  void note_replicated() {
    std::erase_if(replicated_,
                  [&](const auto& version) { return !local_.contains(version.first); });
    for (const auto& [name, tree] : local_) {
      auto& noted = replicated_[name];
      if (noted != tree) noted = tree;
    }
  }
  static std::string names_of(const Versions& versions) {
    std::string names;
    for (const auto& [name, tree] : versions) names += name + " ";
    return names;
  }
  static std::string said(const Result<void>& result) {
    return result ? "killed" : result.error().message();
  }

  Result<std::unique_ptr<bucket::Bucket>> open_bucket() {
    auto bucket = std::make_shared<MemoryBucket>(objects_, "p/", &clock_);
    if (!spared_) {
      bucket->set_faults(
          [this, stopped = bucket.get()](std::uint64_t, bucket::RequestKind, const std::string&) {
            const auto fault = next_fault();
            if (fault == Fault::kHangs) stoppers_.emplace_back([stopped] { stopped->stop(); });
            return fault;
          });
      buckets_.push_back(bucket);
    }
    return std::unique_ptr<bucket::Bucket>(std::make_unique<LentBucket>(std::move(bucket)));
  }

  Fault next_fault() {
    if (killed_) return Fault::kBefore;  // The process makes no more requests.
    const auto now = requests_++;
    if (now != at_) return Fault::kNone;
    switch (mishap_) {
      case Mishap::kNone:
        return Fault::kNone;
      case Mishap::kBefore:
        return Fault::kBefore;
      case Mishap::kLost:
        return Fault::kLost;
      case Mishap::kLater:
        return Fault::kLater;
      case Mishap::kHangs:
        return Fault::kHangs;
      case Mishap::kKilledBefore:
      case Mishap::kKilledAfter:
        break;
    }
    killed_ = true;
    if (std::filesystem::exists(path_)) copy_crashed(path_, temp_.path() + "/killed");
    return mishap_ == Mishap::kKilledBefore ? Fault::kBefore : Fault::kLost;
  }

  // Puts the folder back into the state after the kill.
  void restart() {
    killed_ = false;
    repeats_ = true;
    std::filesystem::remove_all(path_);
    const auto killed = temp_.path() + "/killed";
    if (std::filesystem::exists(killed)) std::filesystem::rename(killed, path_);
  }

  const bool is_encrypted_;
  const Mishap mishap_;
  const std::uint64_t at_;
  const Placement placement_;
  const std::optional<std::uint64_t> cache_bytes_;
  PreferMemory in_memory_;
  TempDirectory temp_;
  const std::string path_ = temp_.path() + "/here";
  std::shared_ptr<MemoryObjects> objects_ = std::make_shared<MemoryObjects>();
  std::vector<std::shared_ptr<MemoryBucket>> buckets_;
  std::vector<std::jthread> stoppers_;  // End before the buckets.
  TestClock clock_;
  remote::BucketHooks hooks_;
  Versions local_;
  Versions replicated_;
  std::uint64_t requests_ = 0;
  int looks_ = 0;
  bool spared_ = false;  // The requests of the reader do not fail.
  bool killed_ = false;
  bool repeats_ = false;
};

inline Tree tree_of(std::uint64_t seed) {
  return {{"a", noise(150'000, seed)},
          {"b", noise(60'000, seed / 2)},
          {"c", "text " + std::to_string(seed)},
          {"empty", ""}};
}

}  // namespace varve::test
