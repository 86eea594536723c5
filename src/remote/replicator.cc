// SPDX-License-Identifier: Apache-2.0
#include "remote/replicator.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "base/log.h"
#include "base/random_bytes.h"
#include "format/key_slot_text.h"
#include "format/superblock.h"
#include "remote/catalog_merge.h"
#include "remote/catalog_reads.h"
#include "remote/garbage.h"
#include "remote/head_objects.h"
#include "remote/lease.h"
#include "remote/replicator_round.h"
#include "remote/small_copies.h"
#include "remote/store_probe.h"

namespace varve::remote {

namespace {

constexpr int kSnapshotsMax = 5;
constexpr std::string_view kLeaseKey = "lease";  // In the state.

std::uint64_t next_number(const Head& head, const ReplicatorParts& parts) {
  return std::max(head.number, parts.heads_passed) + 1;
}

}  // namespace

Replicator::Replicator(ReplicatorParts parts, ReplicaState state, meta::Env copy,
                       std::string holder)
    : parts_(std::move(parts)),
      log_(*parts_.bucket, parts_.repository_id),
      state_(std::move(state)),
      copy_(std::move(copy)),
      holder_(std::move(holder)),
      finder_(parts_, state_, copy_, head_, objects_),
      uploader_(parts_, state_, head_, objects_) {}

Result<std::unique_ptr<Replicator>> Replicator::open(ReplicatorParts parts) {
  VARVE_TRY_ASSIGN(auto state, ReplicaState::open(*parts.files, parts.root, false));
  VARVE_TRY_ASSIGN(auto copy, open_copy(*parts.files, parts.root, false));
  VARVE_TRY_ASSIGN(const auto random, base::random_bytes<8>());
  std::unique_ptr<Replicator> made(new Replicator(std::move(parts), std::move(state),
                                                  std::move(copy), format::hex_text(random)));
  VARVE_TRY(made->load());
  return made;
}

Result<void> Replicator::load() {
  VARVE_TRY_ASSIGN(const auto text, state_.head());
  if (text) {
    VARVE_TRY_ASSIGN(auto head, decode_head(*text));
    use_head(*text, std::move(head));
  }
  VARVE_TRY_ASSIGN(objects_, state_.objects());
  finder_.note_all();
  loaded_ = true;
  VARVE_TRY_ASSIGN(const auto fenced, state_.fenced());
  is_fenced_ = is_fenced_ || fenced.has_value();
  if (parts_.on_objects) parts_.on_objects(objects_, nullptr);
  return {};
}

void Replicator::use_head(const std::string& text, Head head) {
  head_ = std::move(head);
  head_text_ = text;
  const std::lock_guard lock(known_.mutex);
  known_.commit = {head_.number, head_text_};
}

Error Replicator::fenced(const Commit& other) {
  const auto head = decode_commit(log_, other);
  if (!head) return head.error();
  const Timestamp time{head->seconds, 0};
  const auto lease = read_lease(*parts_.bucket, parts_.repository_id, parts_.keys.get());
  if (other.number == head_.number) {
    note_ignored_conditions(state_);
    return fenced_because(
        fmt::format("another folder writes to this repository ({}), and the store let it replace "
                    "head {}, which this folder knows: the store does not honour conditional "
                    "requests, and versions that this folder uploaded with that head can be "
                    "missing there. `varve copy` brings the versions into another repository",
                    lease ? lease_text(*lease) : base::local_time_text(time), head->number));
  }
  const auto own = lease_of_this_machine(parts_.root, 0);
  if (lease && lease->host == own.host && lease->folder == own.folder) {
    return fenced_because(
        fmt::format("this folder was put back to an older state: it wrote head {} itself ({}), and "
                    "does not know it any more",
                    head->number, base::local_time_text(time)));
  }
  return fenced_because(fmt::format("another folder writes to this repository ({}head {}, {})",
                                    lease ? lease_text(*lease) + "; " : "", head->number,
                                    base::local_time_text(time)));
}

Error Replicator::fenced_because(const std::string& reason) {
  newest_at_ = Time();
  is_fenced_ = true;
  fenced_ = Error(ErrorCode::kLocked,
                  fmt::format("{}: {}. Nothing more is uploaded from {}; its versions stay there",
                              parts_.bucket->describe(), reason, parts_.root));
  const auto noted = state_.set_fenced(fenced_->message());
  if (!noted) base::log(base::LogLevel::kWarning, noted.error().message());
  return *fenced_;
}

Result<ReplicateReport> Replicator::replicate() {
  const std::lock_guard lock(mutex_);
  if (fenced_) return *fenced_;
  if (!loaded_) VARVE_TRY(load());
  VARVE_TRY(resolve_pending());
  VARVE_TRY(settle_fence());
  for (int snapshots = 1;; ++snapshots) {
    Round round(parts_.uploads);
    round.report.damages = damages_;
    VARVE_TRY_ASSIGN(const bool changed, finder_.take_snapshot(round));
    round.report.head = head_.number;
    if (!changed) return round.report;
    VARVE_TRY(check_newest());
    VARVE_TRY_ASSIGN(const bool has_copies, has_all_copies(state_));
    const bool is_noted = has_copies && head_.number != 0;
    if (!has_copies) {
      // A new base names none of the older catalog objects.
      const auto objects = small_objects(round.is_base ? Head() : head_, objects_);
      VARVE_TRY(add_missing_copies(*parts_.bucket, round.uploads, parts_.repository_id, objects));
    }
    round.head = next_number(head_, parts_);
    auto uploaded = uploader_.upload_files(round);
    damages_ = round.report.damages;
    // The catalog objects follow at once, unless their content depends on copies in progress.
    if (!uploaded || round.copies_begun) {
      const auto finished = round.uploads.finish();  // Successful uploads are noted.
      if (uploaded) uploaded = finished;
    }
    if (!uploaded) {
      // A file was cut or removed after the snapshot: a newer commit does not need the file.
      const bool again = uploaded.error().code() == ErrorCode::kStale;
      if (again && snapshots < kSnapshotsMax) continue;
      return uploaded.error();
    }
    VARVE_TRY_ASSIGN(auto head, next_head(round));
    VARVE_TRY(uploader_.upload_catalog(round, head));
    const auto text = encode_head(head, parts_.keys.get());
    VARVE_TRY(state_.set_pending(text));  // O46
    VARVE_TRY(create_head(text));
    VARVE_TRY(adopt(text, std::move(round.parts)));
    if (!is_noted) VARVE_TRY(note_copies(state_, head_.number));
    // The order of locks lacks the copies of older objects.
    if (!has_copies) VARVE_TRY(state_.locks().forget_order());
    if (parts_.kept != nullptr) parts_.kept->advance();
    VARVE_TRY(forget_changes(round.changed));
    damages_.clear();
    round.report.head = head_.number;
    round.report.committed = true;
    announce();
    warn_of_unsafe_conditions(*parts_.bucket, state_);
    return round.report;
  }
}

// An older copy of the folder, and a second folder, find an unknown head.
Result<void> Replicator::check_newest() {
  if (checked_) return {};
  if (head_.number == 0) VARVE_TRY(check_place());
  // After a takeover from an older head, the creation finds other heads.
  if (parts_.heads_passed != 0) return {};
  VARVE_TRY(expect_none(log_.other_than({head_.number, head_text_})));
  checked_ = true;
  return {};
}

// `other`: the result of a request for the commit of another writer.
Result<void> Replicator::expect_none(const Result<std::optional<Commit>>& other) {
  if (!other && other.error().code() == ErrorCode::kNotFound) {
    VARVE_TRY(check_place());
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{} lacks the head {} that was created from {}; `varve repair` puts "
                             "it back",
                             parts_.bucket->describe(), head_.number, parts_.root));
  }
  if (!other) return with_advice(other.error());  // Bytes of a head were altered.
  return *other ? Result<void>(fenced(**other)) : Result<void>();
}

// An earlier process, or find_other_writer(), has found another writer.
Result<void> Replicator::settle_fence() {
  if (!is_fenced_) return {};
  checked_ = false;
  VARVE_TRY(check_newest());
  is_fenced_ = false;
  return {};
}

// The head of this process, and the pending head of an earlier process, are no fence.
Result<bool> Replicator::find_other_writer() {
  if (is_fenced_) return true;
  Commit known;
  {
    const std::lock_guard lock(known_.mutex);
    known = known_.commit;
  }
  if (known.number == 0) return false;
  VARVE_TRY_ASSIGN(const auto other, log_.other_than(known));
  if (!other) return false;
  VARVE_TRY_ASSIGN(const auto head, decode_commit(log_, *other));
  VARVE_TRY_ASSIGN(const auto pending, state_.pending());
  if (head.holder == holder_ || pending == other->text) return false;
  is_fenced_ = true;
  return true;
}

Result<void> Replicator::confirm_newest() {
  const std::lock_guard lock(mutex_);
  if (fenced_) return *fenced_;
  if (is_newest()) return {};
  checked_ = false;
  VARVE_TRY(check_newest());
  if (head_.number == 0) return {};
  VARVE_TRY_ASSIGN(const auto now, meta::ReadTxn::begin(*parts_.catalog));
  // A rebuilt catalog gives numbers of files again: the next head has to compare the files first.
  VARVE_TRY_ASSIGN(const bool rebuilt, finder_.is_rebuilt(now));
  if (!rebuilt) newest_at_ = std::chrono::steady_clock::now();
  return {};
}

// The place may have been removed, and created again by another machine. The heads of the new
// repository have other names, so no request would fail.
Result<void> Replicator::check_place() {
  const auto bytes = parts_.bucket->get_all(kSuperblockName, format::kSuperblockBytesMax);
  if (!bytes && bytes.error().code() != ErrorCode::kNotFound) return bytes.error();
  if (!bytes) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{0} has no repository any more: {2} is missing. Nothing is uploaded "
                             "from {1}; its versions stay there. If the store lost the object, "
                             "`varve repair` puts it back; otherwise `varve copy` brings the "
                             "versions into another repository",
                             parts_.bucket->describe(), parts_.root, kSuperblockName));
  }
  const auto superblock = format::decode_superblock(base::as_text(*bytes));
  if (!superblock) {
    return Error(superblock.error())
        .with_context(parts_.bucket->describe() + "/" + kSuperblockName);
  }
  if (superblock->repository_id == parts_.repository_id) return {};
  return fenced_because("another repository was made here instead of this one");
}

// A pending head may exist now or later. So the same head is created again before any other head
// with its number.
Result<void> Replicator::resolve_pending() {
  VARVE_TRY_ASSIGN(const auto pending, state_.pending());
  if (!pending) return {};
  VARVE_TRY_ASSIGN(const auto head, decode_head(*pending));
  if (head.number != next_number(head_, parts_)) {
    return Error(ErrorCode::kCorrupt, parts_.root + "/replica: the heads do not fit together");
  }
  VARVE_TRY(create_head(*pending));
  VARVE_TRY(note_copies(state_, 0));  // An earlier release may have prepared the head.
  const auto news = std::span(head.catalog).subspan(catalog_step(head_, head).kept);
  VARVE_TRY_ASSIGN(auto parts, read_all_or_copies(*parts_.bucket, news));
  return adopt(*pending, std::move(parts));
}

Result<Head> Replicator::next_head(const Round& round) const {
  Head head;
  head.repository_id = parts_.repository_id;
  head.number = round.head;
  // Of the heads that a takeover passes, each one may have begun an epoch.
  const auto passed = head.number - head_.number - 1;
  head.epoch = head_.holder == holder_ ? head_.epoch : head_.epoch + passed + 1;
  head.holder = holder_;
  head.seconds = parts_.clock->now().seconds;
  if (!head_text_.empty()) head.previous = digest_of(head_text_);
  head.commit = round.commit;
  head.superblock = round.superblock;
  return head;
}

// Overwrites a lease of another folder, or a lease of this folder under another name.
void Replicator::announce() {
  if (std::exchange(announced_, true)) return;
  auto lease = lease_of_this_machine(parts_.root, parts_.clock->now().seconds);
  const auto who = lease.host + '\n' + lease.user + '\n' + lease.folder;
  const auto noted = state_.text(kLeaseKey);
  if (noted && *noted == who) return;
  auto written = write_lease(*parts_.bucket, parts_.repository_id, lease, parts_.keys.get());
  if (written) written = keep_own_lease(state_, lease);
  if (!written) base::log(base::LogLevel::kInfo, written.error().message());
}

// Creates a head and its copy, or finds the head already created. Nothing of the head before is
// known to be in the store after a takeover that passes heads.
Result<void> Replicator::create_head(const std::string& text) {
  const auto number = next_number(head_, parts_);
  const auto previous = parts_.heads_passed != 0 ? Commit() : Commit{head_.number, head_text_};
  VARVE_TRY(expect_none(log_.create(previous, {number, text})));
  return log_.write_copy(number, text);
}

// O47: first the copy of the catalog, then the state that names the head. Both steps may run twice.
Result<void> Replicator::adopt(const std::string& text, std::vector<std::string> parts) {
  loaded_ = false;  // After an error, the state on the disk counts.
  VARVE_TRY_ASSIGN(auto head, decode_head(text));
  const bool replaces = catalog_step(head_, head).replaces;
  VARVE_TRY(apply_to_catalog(copy_, parts, replaces));
  VARVE_TRY_ASSIGN(const auto update, update_map(objects_, parts, replaces));
  auto dropped = update.gone;
  auto has = update.named;
  has.merge(names_of(head));
  const auto drop = [&](const std::string& object) {
    if (!has.contains(object)) dropped.insert(object);
  };
  for (const auto& object : head_.catalog) {
    drop(object.name);
    drop(copy_name(object.name));
  }
  // Objects uploaded for an earlier snapshot and no longer needed. Needed objects belong to changed
  // files, and so are in `has`.
  for (const auto& object : uploader_.doubtful()) drop(object);
  VARVE_TRY_ASSIGN(const auto uploaded, state_.uploaded());
  for (const auto& [key, extent] : uploaded) drop(extent.object);
  VARVE_TRY(state_.etags().update(uploader_.take_etags(), {}));
  const auto now = clock_range(*parts_.bucket, parts_.clock->now().seconds);
  VARVE_TRY(
      state_.commit(text, parts, replaces, dropped, now.later_s, head.number, finder_.looks()));
  finder_.forget_looks();
  checked_ = true;
  newest_at_ = std::chrono::steady_clock::now();
  uploader_.forget_doubtful();
  use_head(text, std::move(head));
  for (const auto& path : update.paths) finder_.note_path(path);
  loaded_ = true;
  if (parts_.on_objects) parts_.on_objects(objects_, &update.paths);
  return {};
}

}  // namespace varve::remote
