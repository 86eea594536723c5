// SPDX-License-Identifier: Apache-2.0
#include "remote/store_repairer.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/coding.h"
#include "base/log.h"
#include "format/superblock.h"
#include "remote/bucket_config.h"
#include "remote/check_store_data.h"
#include "remote/damage_notes.h"
#include "remote/etag_check.h"
#include "remote/head.h"
#include "remote/head_objects.h"
#include "remote/local_notes.h"
#include "remote/needed_objects.h"
#include "remote/object_sources.h"
#include "remote/outer_objects.h"
#include "remote/replica_state.h"
#include "remote/small_copies.h"
#include "store/superblock_text.h"

namespace varve::remote {

namespace {

// Limit of the listed steps; further steps are only counted.
constexpr std::size_t kStepsListed = 20;

class StoreRepairer final : public Repair {
 public:
  StoreRepairer(std::unique_ptr<Repair> inner, std::unique_ptr<io::FileSystem> files,
                std::string folder, BucketConfig config, std::unique_ptr<bucket::Bucket> bucket,
                NeededObjects needed, const base::Clock* clock, bool has_read_all)
      : inner_(std::move(inner)),
        files_(std::move(files)),
        folder_(std::move(folder)),
        config_(std::move(config)),
        bucket_(std::move(bucket)),
        needed_(std::move(needed)),
        clock_(clock),
        has_read_all_(has_read_all),
        steps_(inner_->steps()) {}

  // Plans the repair of the damage of which the folder has the content.
  Result<void> plan(const ReplicaState& state, const StoreCheck& check) {
    std::set<std::string> damaged;
    for (const auto& damage : check.damages) damaged.insert(damage.object);
    VARVE_TRY_ASSIGN(const auto notes, LocalNotes::load(*files_, folder_));
    std::set<std::string> repaired;
    for (const auto* const name : {&needed_.head, &kSuperblock}) {
      if (damaged.contains(*name)) repaired.insert(*name);
    }
    puts_head_ = !needed_.head.empty() && damaged.contains(needed_.head);
    puts_superblock_ = damaged.contains(kSuperblock);
    Head head;  // Before the first head, the store has only `varve.repo`.
    if (!needed_.head.empty()) {
      VARVE_TRY_ASSIGN(head, decode_head(needed_.head_text));
    }
    const bool has_catalog = notes->has(LocalNote::kChanged, kWholeCatalog);
    for (const auto& object : head.catalog) {
      if (has_catalog || !damaged.contains(object.name)) continue;
      repaired.insert(object.name);
      paths_.insert(kWholeCatalog);
    }
    VARVE_TRY_ASSIGN(const auto map, state.objects());
    ObjectSources sources(*bucket_, *files_, folder_, config_, head, map);
    for (const auto& [path, extents] : map) {
      const bool is_damaged = std::ranges::any_of(
          extents, [&](const auto& extent) { return damaged.contains(extent.object); });
      if (!is_damaged || notes->has(LocalNote::kChanged, path)) continue;
      VARVE_TRY_ASSIGN(const bool here, files_->exists(folder_ + "/" + path));
      if (!here) {  // Evicted: only the cache may have the bytes.
        for (const auto& extent : extents) {
          if (!damaged.contains(extent.object)) continue;
          VARVE_TRY_ASSIGN(const auto text, sources.find(extent.object));
          if (!text) continue;
          cached_.insert(extent.object);
          repaired.insert(extent.object);
        }
        continue;
      }
      paths_.insert(path);
      for (const auto& extent : extents) {
        if (damaged.contains(extent.object)) repaired.insert(extent.object);
      }
    }
    // The uploads of a damaged object's content include a new copy.
    for (const auto& object : small_objects(head, map)) {
      const auto copy = copy_name(object.name);
      if (!damaged.contains(copy)) continue;
      if (repaired.contains(object.name)) repaired.insert(copy);
      if (damaged.contains(object.name)) continue;
      repaired.insert(copy);
      copied_.push_back(object);
    }
    puts_head_copy_ = !needed_.head.empty() && damaged.contains(copy_name(needed_.head));
    if (puts_head_copy_) repaired.insert(copy_name(needed_.head));
    std::size_t listed = 0;
    for (const auto& damage : check.damages) {
      if (repaired.erase(damage.object) == 0) {
        unrepaired_.insert(damage.object);
        continue;
      }
      if (++listed > kStepsListed) continue;
      steps_.push_back({RepairStep::Kind::kStore, bucket_->describe() + "/" + damage.object,
                        damage.what + "; this folder uploads it again"});
    }
    if (listed > kStepsListed) {
      steps_.push_back({RepairStep::Kind::kStore, bucket_->describe(),
                        fmt::format("{} more objects are uploaded again", listed - kStepsListed)});
    }
    return {};
  }

  [[nodiscard]] const std::vector<RepairStep>& steps() const override { return steps_; }

  [[nodiscard]] std::uint64_t lost_chunks() const override { return inner_->lost_chunks(); }
  [[nodiscard]] std::uint64_t unrecognizable_chunks() const override {
    return inner_->unrecognizable_chunks();
  }
  [[nodiscard]] const std::vector<std::string>& left_out() const override {
    return inner_->left_out();
  }
  [[nodiscard]] const std::vector<std::string>& lost_parts() const override {
    return inner_->lost_parts();
  }

  [[nodiscard]] Result<RepairReport> execute(
      const std::function<void(const CheckProgress&)>& progress) override {
    RepairReport report;
    if (!inner_->steps().empty()) {
      VARVE_TRY_ASSIGN(report, inner_->execute(progress));
    }
    VARVE_TRY_ASSIGN(const auto notes, LocalNotes::load(*files_, folder_));
    VARVE_TRY(put_outer_objects_back(*notes));
    for (const auto& path : paths_) {
      VARVE_TRY(notes->add(LocalNote::kChanged, path));  // O60
    }
    VARVE_TRY(put_cached_objects_back());
    for (const auto& object : copied_) {
      VARVE_TRY_ASSIGN(const auto text, object.read(*bucket_));
      VARVE_TRY(replace_copy(*notes, object.name, text, object.path));
    }
    record_repair(report);
    return report;
  }

 private:
  // A store without versions refuses to overwrite a locked copy. Then the next head replaces the
  // object and the copy under other names.
  Result<void> replace_copy(LocalNotes& notes, const std::string& name, std::string_view text,
                            const std::string& path) {
    const auto written = write_copy(*bucket_, name, base::as_bytes(text));
    if (written || written.error().code() != ErrorCode::kNotPermitted) return written;
    return notes.add(LocalNote::kChanged, path);
  }

  // The next check finds the damage left after the uploads.
  void record_repair(const RepairReport& report) {
    StoreCheckEnd end;
    end.has_read_all = has_read_all_;
    end.noted = needed_.damaged;
    end.damaged = unrepaired_;
    end.damages = unrepaired_.size() + report.problems.size();
    const base::SystemClock system_clock;
    record_store_check(*files_, folder_, clock_ != nullptr ? *clock_ : system_clock, end);
  }

  // The objects have no locks at first, so the next seals lock them.
  Result<void> put_cached_objects_back() {
    if (cached_.empty()) return {};
    VARVE_TRY_ASSIGN(auto state, ReplicaState::open(*files_, folder_, false));
    VARVE_TRY_ASSIGN(const auto head, decode_head(needed_.head_text));
    VARVE_TRY_ASSIGN(const auto map, state.objects());
    ObjectSources sources(*bucket_, *files_, folder_, config_, head, map);
    for (const auto& object : cached_) {
      VARVE_TRY(state.locks().set_ends({{object, 0}}));
      VARVE_TRY(sources.put_back(object));
    }
    return {};
  }

  Result<void> put_outer_objects_back(LocalNotes& notes) {
    if (puts_superblock_) {
      VARVE_TRY_ASSIGN(const auto text, store::read_superblock_text(*files_, folder_));
      VARVE_TRY(put_superblock_back(*bucket_, text));
    }
    if (!puts_head_ && !puts_head_copy_) return {};
    VARVE_TRY(put_head_back(*bucket_, needed_));
    return replace_copy(notes, needed_.head, needed_.head_text, kWholeCatalog);
  }

  inline static const std::string kSuperblock = kSuperblockName;
  const std::unique_ptr<Repair> inner_;
  const std::unique_ptr<io::FileSystem> files_;
  const std::string folder_;
  const BucketConfig config_;
  const std::unique_ptr<bucket::Bucket> bucket_;
  const NeededObjects needed_;
  const base::Clock* const clock_;  // Null for the system's clock.
  const bool has_read_all_;         // The comparison has read all objects.
  std::vector<RepairStep> steps_;
  bool puts_head_ = false;
  bool puts_head_copy_ = false;
  bool puts_superblock_ = false;
  std::set<std::string> paths_;       // Files to upload again.
  std::set<std::string> cached_;      // Objects present only in the cache.
  std::vector<SmallObject> copied_;   // Whole objects whose copies are damaged.
  std::set<std::string> unrepaired_;  // Damaged objects whose content the folder lacks.
};

}  // namespace

Result<std::unique_ptr<Repair>> with_store_repair(std::unique_ptr<Repair> inner,
                                                  const std::string& folder,
                                                  const OpenOptions& options,
                                                  const BucketHooks& hooks, bool reads_all) {
  VARVE_TRY_ASSIGN(auto files, store::open_folder(folder, options.trust_owner));
  VARVE_TRY_ASSIGN(const auto config, read_config(*files, folder));
  if (!config || config->reads_only) return inner;
  // A bad superblock is repaired first.
  const auto superblock = store::read_superblock_text(*files, folder);
  if (!superblock || !format::decode_superblock(*superblock)) return inner;
  VARVE_TRY_ASSIGN(const auto state, find_state(*files, folder));
  if (!state) return inner;
  VARVE_TRY_ASSIGN(const auto fenced, state->fenced());
  VARVE_TRY_ASSIGN(auto needed, needed_objects(*files, folder, state));
  if (fenced) {
    base::log(base::LogLevel::kWarning,
              "the objects in the store are not repaired from a folder that does not write any "
              "more: " +
                  *fenced + ". " + how_to_write_again(config->place));
    return inner;
  }
  const base::SystemClock system_clock;
  const base::Clock& clock = hooks.clock != nullptr ? *hooks.clock : system_clock;
  // A record of an earlier release names no objects.
  reads_all = reads_all || has_unnamed_damage(*files, folder);
  StoreCheck check;
  auto bucket = bucket_opener(hooks, options.store.access)(*config);
  const auto compare = [&]() -> Result<void> {
    if (!bucket) return bucket.error();
    VARVE_TRY_ASSIGN(const auto listed, compare_list(**bucket, needed, clock.now().seconds, check));
    VARVE_TRY(compare_outer_objects(**bucket, needed, listed, check));
    const auto which = reads_all ? ObjectsToRead::kAll : ObjectsToRead::kSmall;
    VARVE_TRY(read_objects(**bucket, *state, which, listed, check));
    VARVE_TRY(compare_etags(**bucket, *state, listed, which, check));
    return {};
  };
  const auto compared = compare();
  if (!compared) {
    base::log(base::LogLevel::kWarning,
              "the objects in the store are not repaired: " + compared.error().message());
    return inner;
  }
  if (check.damages.empty()) {
    if (!options.read_only && !needed.damaged.empty()) {
      record_store_check(*files, folder, clock,
                         {.has_read_all = reads_all, .noted = needed.damaged});
    }
    return inner;
  }
  auto whole = std::make_unique<StoreRepairer>(std::move(inner), std::move(files), folder, *config,
                                               std::move(*bucket), std::move(needed), hooks.clock,
                                               reads_all);
  VARVE_TRY(whole->plan(*state, check));
  return std::unique_ptr<Repair>(std::move(whole));
}

}  // namespace varve::remote
