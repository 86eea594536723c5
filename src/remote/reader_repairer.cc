// SPDX-License-Identifier: Apache-2.0
#include "remote/reader_repairer.h"

#include <fmt/core.h>

#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/coding.h"
#include "bucket/locking_bucket.h"
#include "format/superblock.h"
#include "meta/open_catalog.h"
#include "remote/attachment.h"
#include "remote/bucket_config.h"
#include "remote/catalog_reads.h"
#include "remote/check_store_data.h"
#include "remote/commit_log.h"
#include "remote/damage_notes.h"
#include "remote/head.h"
#include "remote/needed_objects.h"
#include "remote/object_lock_setting.h"
#include "remote/object_sources.h"
#include "remote/outer_objects.h"
#include "remote/readable_head.h"
#include "remote/replica_state.h"
#include "remote/small_copies.h"
#include "remote/unfinished_rebuild.h"
#include "store/repository_paths.h"
#include "store/sealed_places.h"
#include "store/superblock_text.h"

namespace varve::remote {

namespace {

// Limit of the listed steps; further steps are only counted.
constexpr std::size_t kReaderStepsListed = 20;

/// An attached folder, opened for a repair.
struct RepairingReader {
  std::string folder{};
  std::unique_ptr<io::FileSystem> files{};
  std::unique_ptr<io::FileLock> lock{};  ///< Null for a scan.
  BucketConfig config{};
  std::string superblock_text{};
  std::unique_ptr<base::SystemClock> system_clock = std::make_unique<base::SystemClock>();
  const base::Clock* clock = nullptr;
  std::unique_ptr<bucket::LockingBucket> bucket{};
  NeededObjects needed{};
  Head head{};
  ObjectMap map{};
  bool is_newest = false;  ///< The store lists no head after the folder's head.
};

class ReaderRepairer final : public Repair {
 public:
  ReaderRepairer(RepairingReader reader, bool has_read_all)
      : reader_(std::move(reader)),
        has_read_all_(has_read_all),
        sources_(*reader_.bucket, *reader_.files, reader_.folder, reader_.config, reader_.head,
                 reader_.map) {}

  Result<void> plan(const StoreCheck& check) {
    std::set<std::string> catalog;
    for (const auto& object : reader_.head.catalog) catalog.insert(object.name);
    for (const auto& damage : check.damages) {
      VARVE_TRY_ASSIGN(const bool repaired, plan(damage.object));
      if (repaired) {
        if (++repaired_ > kReaderStepsListed) continue;
        steps_.push_back({RepairStep::Kind::kStore, where(damage.object),
                          damage.what + "; this folder writes the same bytes again"});
        continue;
      }
      lost_.insert(damage.object);
      if (first_lost_.empty()) first_lost_ = where(damage.object) + " " + damage.what;
      if (catalog.contains(damage.object)) needs_base_ = true;
    }
    if (repaired_ > kReaderStepsListed) {
      steps_.push_back(
          {RepairStep::Kind::kStore, reader_.bucket->describe(),
           fmt::format("{} more objects are written again", repaired_ - kReaderStepsListed)});
    }
    if (steps_.empty() && !lost_.empty()) return Error(ErrorCode::kReadOnly, rest());
    return {};
  }

  // Records a comparison without damage.
  void record_soundness() const {
    if (reader_.needed.damaged.empty() && !has_read_all_) return;
    record_store_check(*reader_.files, reader_.folder, *reader_.clock,
                       {.has_read_all = has_read_all_, .noted = reader_.needed.damaged});
  }

  [[nodiscard]] const std::vector<RepairStep>& steps() const override { return steps_; }
  [[nodiscard]] std::uint64_t lost_chunks() const override { return 0; }
  [[nodiscard]] const std::vector<std::string>& left_out() const override { return none_; }
  [[nodiscard]] const std::vector<std::string>& lost_parts() const override { return none_; }

  // The head comes last: no reader sees a head before the objects that the head names.
  [[nodiscard]] Result<RepairReport> execute(
      const std::function<void(const CheckProgress&)>&) override {
    RepairReport report;
    if (puts_superblock_) {
      VARVE_TRY(put_superblock_back(*reader_.bucket, reader_.superblock_text));
    }
    for (const auto& name : objects_) {
      VARVE_TRY_ASSIGN(const bool done, sources_.put_back(name));
      if (done) continue;
      lost_.insert(name);
      if (first_lost_.empty()) first_lost_ = where(name) + " is lost";
    }
    if (puts_head_) VARVE_TRY(put_head_and_copy_back());
    if (!lost_.empty()) report.problems.push_back(rest());
    StoreCheckEnd end;
    end.has_read_all = has_read_all_;
    end.noted = reader_.needed.damaged;
    end.damaged = lost_;
    end.damages = lost_.size();
    record_store_check(*reader_.files, reader_.folder, *reader_.clock, end);
    return report;
  }

 private:
  Result<void> put_head_and_copy_back() {
    VARVE_TRY(put_head_back(*reader_.bucket, reader_.needed));  // O60
    return write_copy(*reader_.bucket, reader_.needed.head,
                      base::as_bytes(reader_.needed.head_text));
  }
  Result<bool> plan(const std::string& object) {
    const auto& head = reader_.needed.head;
    if (object == kSuperblockName) {
      puts_superblock_ = true;
      return true;
    }
    if (object == head || object == copy_name(head)) {
      puts_head_ = puts_head_ || reader_.is_newest;
      return reader_.is_newest;
    }
    VARVE_TRY_ASSIGN(const auto text, sources_.find(object));
    if (text) objects_.push_back(object);
    return text.has_value();
  }
  [[nodiscard]] std::string where(const std::string& object) const {
    return reader_.bucket->describe() + "/" + object;
  }
  // Describes the loss that is left.
  [[nodiscard]] std::string rest() const {
    return fmt::format(
        "{} objects cannot be written again from {}, which only reads the repository: {}. `varve "
        "repair` in the folder that writes uploads lost objects again.{}",
        lost_.size(), reader_.folder, first_lost_,
        !reader_.is_newest
            ? fmt::format(" Without that folder, `varve --accept-older attach --write {} {}` goes "
                          "on from head {}: the versions sealed since are lost",
                          reader_.config.place, reader_.folder, reader_.head.number)
        : needs_base_ ? fmt::format(" Without that folder, `varve attach --write {} {}` makes this "
                                    "one the folder that writes; it has the whole catalog, and "
                                    "writes the catalog to the store again",
                                    reader_.config.place, reader_.folder)
                      : std::string());
  }

  const RepairingReader reader_;
  const bool has_read_all_;  // The comparison has read all objects.
  ObjectSources sources_;
  std::vector<RepairStep> steps_;
  const std::vector<std::string> none_;
  std::vector<std::string> objects_;  // To be written again.
  bool puts_superblock_ = false;
  bool puts_head_ = false;
  std::size_t repaired_ = 0;
  std::set<std::string> lost_;  // Damaged objects whose content the folder lacks.
  std::string first_lost_;
  bool needs_base_ = false;  // A catalog object is lost with its copy.
};

Error attached(const std::string& folder, const std::string& place) {
  return {ErrorCode::kReadOnly, folder + " only reads " + place +
                                    "; if the folder is damaged, attach another one and remove "
                                    "this one"};
}

// Brings the folder to the newest head, if that head is whole. Returns the number of the newest
// listed head or copy.
Result<std::uint64_t> follow_newest(RepairingReader& reader, const std::string& known,
                                    const crypto::KeyRing* keys, bool scan_only) {
  VARVE_TRY_ASSIGN(const auto head, decode_head(known));
  CommitLog log(*reader.bucket, head.repository_id);
  const auto found = readable_head(log, known);
  if (!found) {
    if (!is_loss(found.error())) return found.error();
    VARVE_TRY_ASSIGN(const auto newest, log.newest());
    return newest.value_or(0);
  }
  if (found->text != known && !scan_only) {
    VARVE_TRY(authenticate_head(found->text, keys));
    VARVE_TRY(advance_to(*reader.bucket, *reader.files, reader.folder, found->text));
  }
  return found->newest;
}

Result<void> set_lock_rule(RepairingReader& reader, std::shared_ptr<const crypto::KeyRing> keys,
                           bool trust_owner) {
  VARVE_TRY_ASSIGN(auto opened, store::open_folder(reader.folder, trust_owner));
  const auto sealed = store::seal_files(std::move(opened), keys, reader.folder);
  auto how = meta::catalog_options(store::RepositoryPaths(reader.folder).lock(), std::move(keys));
  how.read_only = true;
  VARVE_TRY_ASSIGN(const auto catalog, meta::Env::open(*sealed, reader.folder + "/catalog", how));
  VARVE_TRY_ASSIGN(const auto rule, object_lock_of(catalog));
  reader.bucket->set_rule(rule);
  return {};
}

Result<RepairingReader> open_reader(const std::string& folder, const RepairOptions& options,
                                    bool scan_only, const BucketHooks& hooks) {
  RepairingReader reader;
  reader.folder = folder;
  VARVE_TRY_ASSIGN(reader.files, store::open_folder(folder, options.trust_owner));
  VARVE_TRY_ASSIGN(const auto config, read_config(*reader.files, folder));
  if (!config || options.rebuild_catalog || !options.from.empty()) {
    return attached(folder, config ? config->place : "an object store");
  }
  reader.config = *config;
  VARVE_TRY(refuse_unfinished_rebuild(*reader.files, folder));
  if (!scan_only) {
    VARVE_TRY_ASSIGN(reader.lock, reader.files->lock(store::RepositoryPaths(folder).lock()));
  }
  VARVE_TRY_ASSIGN(reader.superblock_text, store::read_superblock_text(*reader.files, folder));
  VARVE_TRY_ASSIGN(const auto superblock, format::decode_superblock(reader.superblock_text));
  VARVE_TRY_ASSIGN(const auto keys, format::unlock_superblock(superblock, reader.superblock_text,
                                                              options.key, options.encrypted_only));
  VARVE_TRY_ASSIGN(auto opened, bucket_opener(hooks, options.store_access)(*config));
  reader.clock = hooks.clock != nullptr ? hooks.clock : reader.system_clock.get();
  reader.bucket = std::make_unique<bucket::LockingBucket>(std::move(opened), *reader.clock);
  std::string known;
  {
    VARVE_TRY_ASSIGN(const auto state, find_state(*reader.files, folder));
    if (!state) return attached(folder, config->place);
    VARVE_TRY_ASSIGN(const auto head, state->head());
    if (!head) return attached(folder, config->place);
    known = *head;
  }
  VARVE_TRY_ASSIGN(const auto newest, follow_newest(reader, known, keys.get(), scan_only));
  VARVE_TRY_ASSIGN(const auto state, find_state(*reader.files, folder));
  VARVE_TRY_ASSIGN(reader.needed, needed_objects(*reader.files, folder, state));
  VARVE_TRY_ASSIGN(reader.head, decode_head(reader.needed.head_text));
  VARVE_TRY_ASSIGN(reader.map, state->objects());
  reader.is_newest = newest <= reader.head.number;
  VARVE_TRY(set_lock_rule(reader, keys, options.trust_owner));
  return reader;
}

}  // namespace

Result<std::unique_ptr<Repair>> plan_reader_repair(const std::string& folder,
                                                   const RepairOptions& options, bool scan_only,
                                                   const BucketHooks& hooks) {
  VARVE_TRY_ASSIGN(auto reader, open_reader(folder, options, scan_only, hooks));
  const auto& clock = *reader.clock;
  const bool reads_all = options.read_store || has_unnamed_damage(*reader.files, folder);
  StoreCheck check;
  {
    VARVE_TRY_ASSIGN(const auto state, find_state(*reader.files, folder));
    VARVE_TRY_ASSIGN(const auto copies,
                     compare_list(*reader.bucket, reader.needed, clock.now().seconds, check));
    VARVE_TRY(compare_outer_objects(*reader.bucket, reader.needed, copies, check));
    VARVE_TRY(read_objects(*reader.bucket, *state,
                           reads_all ? ObjectsToRead::kAll : ObjectsToRead::kSmall, copies, check));
    VARVE_TRY(check_newer_head(*reader.bucket, reader.needed.repository_id, *state, check));
  }
  auto repairer = std::make_unique<ReaderRepairer>(std::move(reader), reads_all);
  VARVE_TRY(repairer->plan(check));
  if (check.damages.empty() && !scan_only) repairer->record_soundness();
  return std::unique_ptr<Repair>(std::move(repairer));
}

}  // namespace varve::remote
