// SPDX-License-Identifier: Apache-2.0
#include "remote/promotion.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "bucket/location.h"
#include "bucket/locking_bucket.h"
#include "remote/attach_again.h"
#include "remote/attachment.h"
#include "remote/begun_takeover.h"
#include "remote/bucket_config.h"
#include "remote/catalog_reads.h"
#include "remote/commit_log.h"
#include "remote/head.h"
#include "remote/local_notes.h"
#include "remote/newer_objects.h"
#include "remote/present_folder.h"
#include "remote/readable_head.h"
#include "remote/replica_state.h"
#include "remote/small_files.h"
#include "remote/store_probe.h"
#include "remote/takeover.h"
#include "store/repository_paths.h"
#include "store/superblock_text.h"
#include "varve/copy_name.h"

namespace varve::remote {

namespace {

/// The state from which the folder goes on.
struct PromotedState {
  std::string text{};            ///< The head that the folder has.
  std::uint64_t passed = 0;      ///< Number of the newest listed head or copy.
  std::optional<Error> fault{};  ///< Why the state may be older than the store's newest state.
};

/// An attached folder under the repository's lock.
class LockedReader {
 public:
  [[nodiscard]] static Result<LockedReader> open(const PromotionRequest& request,
                                                 const OpenOptions& options) {
    LockedReader reader;
    reader.folder_ = request.folder;
    VARVE_TRY_ASSIGN(reader.files_, store::open_folder(request.folder, options.trust_owner));
    auto lock = reader.files_->lock(store::RepositoryPaths(request.folder).lock());
    if (!lock && lock.error().code() == ErrorCode::kLocked) {
      return Error(ErrorCode::kLocked, request.folder + " is in use by another process; try again");
    }
    if (!lock) return std::move(lock).error();
    reader.lock_ = *std::move(lock);
    VARVE_TRY_ASSIGN(const auto config, read_config(*reader.files_, request.folder));
    if (!config || !config->reads_only) {
      return Error(ErrorCode::kExists, request.folder + " was changed by another process");
    }
    reader.config_ = *config;
    VARVE_TRY_ASSIGN(const auto present, bucket::parse_location(config->place));
    VARVE_TRY_ASSIGN(const auto wanted, bucket::parse_location(request.place));
    if (present != wanted) {
      return Error(ErrorCode::kExists,
                   request.folder + " is a Varve repository already, in " + config->place);
    }
    return reader;
  }

  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] io::FileSystem& files() const { return *files_; }
  [[nodiscard]] const BucketConfig& config() const { return config_; }
  [[nodiscard]] Result<std::string> head() const {
    VARVE_TRY_ASSIGN(const auto state, find_state(*files_, folder_));
    if (!state) return Error(ErrorCode::kCorrupt, folder_ + " lacks its folder replica");
    VARVE_TRY_ASSIGN(auto head, state->head());
    if (!head) {
      return Error(ErrorCode::kCorrupt,
                   folder_ +
                       " shows no state of the store. If its catalog was rebuilt, `varve "
                       "--accept-older attach --write --rebuild` makes a new folder that "
                       "writes");
    }
    return *std::move(head);
  }

 private:
  std::string folder_;
  std::unique_ptr<io::FileSystem> files_;
  std::unique_ptr<io::FileLock> lock_;
  BucketConfig config_;
};

Error another_head(const LockedReader& reader, const CommitLog& log, std::uint64_t number) {
  return {ErrorCode::kCorrupt,
          fmt::format("{} is another one than {} shows: another folder took over from an older "
                      "state. Attach a new folder with `varve attach`",
                      log.describe(number), reader.folder())};
}

// Brings the folder to the newest readable head. The folder never goes back to an older head.
Result<PromotedState> follow(const LockedReader& reader, bucket::Bucket& bucket, CommitLog& log,
                             const std::function<Result<void>(const std::string&)>& authenticate) {
  PromotedState state;
  VARVE_TRY_ASSIGN(const auto known, reader.head());
  VARVE_TRY_ASSIGN(const auto known_head, decode_head(known));
  state.text = known;
  state.passed = known_head.number;
  auto found = readable_head(log, known);
  if (!found && !is_loss(found.error())) return std::move(found).error();
  if (!found) {
    state.fault = found.error();
    VARVE_TRY(log.list_with_copies(
        0, [&](std::uint64_t number, bool) { state.passed = std::max(state.passed, number); }));
    VARVE_TRY(advance_to(bucket, reader.files(), reader.folder(), known));  // To undo, as below.
    return state;
  }
  state.passed = std::max(state.passed, found->newest);
  state.fault = found->fault;
  if (found->text == known) {
    const auto present = read_head_or_copy(log, known_head.number);
    if (present && *present != known) return another_head(reader, log, known_head.number);
    if (!present && !is_loss(present.error())) return present.error();
    if (!present && !state.fault) state.fault = present.error();
  } else {
    VARVE_TRY(authenticate(found->text));
  }
  // Also undoes an interrupted takeover.
  VARVE_TRY(advance_to(bucket, reader.files(), reader.folder(), found->text));
  VARVE_TRY_ASSIGN(state.text, reader.head());
  if (state.text != found->text && !state.fault) {
    state.fault = Error(ErrorCode::kCorrupt, log.describe(found->number) +
                                                 " names catalog objects that the store has lost");
  }
  return state;
}

// A lost head that no list shows is a loss, too. docs/decisions/161.
Result<void> search_lost_head(const LockedReader& reader, bucket::Bucket& bucket, CommitLog& log,
                              Takeover& takeover, PromotedState& state) {
  takeover.left_objects = noted_garbage(reader.files(), reader.folder());
  if (state.fault) return {};
  VARVE_TRY_ASSIGN(const auto head, decode_head(state.text));
  VARVE_TRY_ASSIGN(state.fault, find_lost_head(bucket, log, head, {.own = takeover.left_objects}));
  if (state.fault) state.passed += kLostHeadsMax;
  VARVE_TRY_ASSIGN(const auto replica, find_state(reader.files(), reader.folder()));
  if (!replica) return {};
  VARVE_TRY_ASSIGN(const auto map, replica->objects());
  return warn_of_newer_data(bucket, log, head, map, takeover.left_objects);
}

// A writer goes on from an older state only if the user accepts the loss.
Result<void> require_whole(const LockedReader& reader, const PromotedState& state,
                           const OpenOptions& options) {
  if (!state.fault || options.accept_older) return {};
  VARVE_TRY_ASSIGN(const auto head, decode_head(state.text));
  const Timestamp time{head.seconds, 0};
  return Error(*state.fault)
      .with_more(fmt::format(
          ". {0} has head {1} of {2}. `varve repair` in the folder that writes uploads lost "
          "objects again, and `varve repair {0}` puts back what {0} has. Without another folder, "
          "`varve --accept-older attach --write` goes on from head {1}: versions that only the "
          "store had since are lost",
          reader.folder(), head.number, base::local_time_text(time)));
}

// The new head has a base of its own, so the folder's whole catalog replaces catalog objects that
// the store may have lost.
Result<void> prepare_files(const LockedReader& reader, bucket::Bucket& bucket) {
  VARVE_TRY_ASSIGN(const auto notes, LocalNotes::load(reader.files(), reader.folder()));
  VARVE_TRY(notes->add(LocalNote::kChanged, kWholeCatalog));
  ObjectMap map;
  {
    VARVE_TRY_ASSIGN(const auto state, ReplicaState::open(reader.files(), reader.folder(), true));
    VARVE_TRY_ASSIGN(map, state.objects());
  }
  // The next head names only files that the folder has.
  VARVE_TRY(fetch_missing_files(bucket, reader.files(), reader.folder(), map));
  return {};
}

// Until the role changes, the folder is attached, also after a kill. O69
Result<void> take_over(const LockedReader& reader, bucket::LockingBucket& bucket,
                       const Takeover& takeover, const OpenOptions& options,
                       const BucketHooks& hooks) {
  auto& files = reader.files();
  const auto& folder = reader.folder();
  VARVE_TRY(prepare_files(reader, bucket));
  const auto taken = take_over_writing(bucket, files, takeover, options, hooks);
  if (!taken) {
    // Only the next attempt or the next reader needs the older catalog.
    const auto undone = advance_to(bucket, files, folder, takeover.head);
    if (!undone) base::log(base::LogLevel::kInfo, undone.error().message());
    return taken.error();
  }
  auto config = reader.config();
  config.reads_only = false;
  VARVE_TRY(write_config(files, folder, config));
  VARVE_TRY(forget_unfinished_attach(files, folder));
  VARVE_TRY_ASSIGN(auto state, ReplicaState::open(files, folder, false));
  return end_takeover(state);
}

}  // namespace

Result<bool> is_reader_folder(const std::string& folder, bool trust_owner) {
  VARVE_TRY_ASSIGN(const auto files, open_present(folder, trust_owner));
  if (!files) return false;
  VARVE_TRY_ASSIGN(const auto config, read_config(*files, folder));
  return config && config->reads_only;
}

Result<void> promote(const PromotionRequest& request, const OpenOptions& options,
                     const BucketHooks& hooks) {
  VARVE_TRY_ASSIGN(const auto reader, LockedReader::open(request, options));
  const base::SystemClock system_clock;
  const base::Clock& clock = hooks.clock != nullptr ? *hooks.clock : system_clock;
  VARVE_TRY_ASSIGN(auto opened, bucket_opener(hooks, options.store.access)(reader.config()));
  bucket::LockingBucket bucket(std::move(opened), clock);
  VARVE_TRY(bucket.list({}, {}, 1));  // The errors of a list say the most.
  VARVE_TRY_ASSIGN(const auto own_text, reader.head());
  VARVE_TRY_ASSIGN(const auto own, decode_head(own_text));
  CommitLog log(bucket, own.repository_id);

  Takeover takeover;
  takeover.folder = request.folder;
  const auto unlock = [&](const std::string& text) -> Result<void> {
    VARVE_TRY_ASSIGN(const auto head, decode_head(text));
    takeover.superblock_text = head.superblock;
    VARVE_TRY_ASSIGN(takeover.superblock, request.read_superblock(head.superblock));
    VARVE_TRY_ASSIGN(takeover.keys, format::unlock_superblock(takeover.superblock, head.superblock,
                                                              options.key, options.encrypted_only));
    return authenticate_head(text, takeover.keys.get());
  };
  VARVE_TRY_ASSIGN(auto from, follow(reader, bucket, log, unlock));
  VARVE_TRY(search_lost_head(reader, bucket, log, takeover, from));
  VARVE_TRY(require_whole(reader, from, options));
  VARVE_TRY(unlock(from.text));
  VARVE_TRY(store::adopt_superblock(reader.files(), request.folder, takeover.superblock_text,
                                    takeover.keys != nullptr));
  if (takeover.keys) {
    VARVE_TRY(compare_attached(request.folder, own.repository_id, takeover.keys, options));
  }
  ProbeRequest probe;
  probe.open_client = racer_opener(hooks, options.store.access, reader.config());
  VARVE_TRY_ASSIGN(const auto probed, probe_store(bucket, clock, probe));
  takeover.heads_passed = from.passed;
  takeover.head = from.text;
  takeover.notes_begin = true;
  VARVE_TRY(take_over(reader, bucket, takeover, options, hooks));
  return note_first_use(bucket, reader.files(), request.folder, probed);
}

}  // namespace varve::remote
