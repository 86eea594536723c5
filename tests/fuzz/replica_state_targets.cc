// SPDX-License-Identifier: Apache-2.0
#include "replica_state_targets.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/coding.h"
#include "checks.h"
#include "io/memory_file_system.h"
#include "io/posix_file_system.h"
#include "remote/damage_notes.h"
#include "remote/head.h"
#include "remote/lock_order.h"
#include "remote/replica_state.h"
#include "replica_targets.h"
#include "right_sums.h"
#include "temporary_folder.h"

namespace varve::fuzz {
namespace {

constexpr const char* kRoot = "/r";
constexpr const char* kDamagedPath = "/r/replica/damaged";
constexpr std::size_t kStateTables = 5;
constexpr std::int64_t kLockEnd = 1'764'000'000;
constexpr std::size_t kObjectsAtOnce = 100;

std::string u64_text(std::uint64_t number) {
  std::string text;
  base::ByteWriter(text).u64(number);
  return text;
}

// The state of a folder that the program removes when it ends.
class FolderState {
 public:
  FolderState() : files_(io::make_posix_file_system()) {
    auto state = remote::ReplicaState::open(*files_, folder_.path(), false);
    require(state.has_value(), "a state can be made");
    state_ = std::make_unique<remote::ReplicaState>(std::move(*state));
  }

  /// Makes the state have one record, the newest head and an order of locks.
  bool put(meta::TableIndex table, std::string_view key, std::string_view value) {
    auto txn = meta::WriteTxn::begin(state_->env());
    require(txn.has_value(), "a change of the state begins");
    for (meta::TableIndex each = 0; each < kStateTables; ++each) {
      require(txn->clear(each).has_value(), "a table of the state is emptied");
    }
    static const auto head = head_seeds().front();
    const bool done = txn->put(remote::kState, remote::kHeadKey, head) &&
                      txn->put(remote::kState, remote::kOrderedHeadKey,
                               u64_text(remote::decode_head(head)->number)) &&
                      txn->put(remote::kState, remote::order_key(kLockEnd, "d/2"), "") &&
                      txn->put(remote::kState, remote::lock_key("d/2"), u64_text(kLockEnd)) &&
                      txn->put(table, key, value);
    return done && txn->commit();
  }
  [[nodiscard]] remote::ReplicaState& state() { return *state_; }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<io::FileSystem> files_;
  std::unique_ptr<remote::ReplicaState> state_;
};

std::string record(remote::StateTable table, const std::string& key, const std::string& value) {
  std::string seed{static_cast<char>(table), static_cast<char>(key.size())};
  return seed + key + value;
}

}  // namespace

void damage_notes(Bytes input) {
  std::string bytes(text_of(input));
  sum_text(bytes);
  const auto files = io::make_memory_file_system();
  require(files->make_directory(kRoot) && files->make_directory("/r/replica"),
          "a folder in memory");
  const auto file = files->open(kDamagedPath, io::OpenMode::kReadWrite);
  require(file && (*file)->write_at(0, base::as_bytes(bytes)), "a file in memory");
  const auto names = remote::read_damage_notes(*files, kRoot);
  static_cast<void>(remote::has_unnamed_damage(*files, kRoot));
  if (names.empty()) return;
  // A check that finds one more damaged object writes all of them again.
  auto more = names;
  more.insert("d/000000000000");
  remote::StoreCheckEnd end;
  end.noted = names;
  end.damaged = more;
  remote::record_store_check(*files, kRoot, base::SystemClock(), end);
  require(remote::read_damage_notes(*files, kRoot) == more, "written names are read");
}

std::vector<std::string> damage_notes_seeds() {
  const std::string head = "# Damaged objects that the last check of the store named.\n";
  return {head + "d/0123456789abcdef0000000001\nh/7\nz\n" + "checksum = 0\n",
          head + "checksum = 0\n", head + "a\n# b\nc = d\n\nchecksum = 0\n"};
}

void replica_state(Bytes input) {
  if (input.size() < 2) return;
  static FolderState folder;
  const auto table = static_cast<meta::TableIndex>(static_cast<unsigned>(input[0]) % kStateTables);
  const auto text = text_of(input.subspan(2));
  const auto key = text.substr(0, static_cast<std::size_t>(input[1]));
  if (!folder.put(table, key, text.substr(key.size()))) return;
  auto& state = folder.state();
  static_cast<void>(state.head());
  static_cast<void>(state.pending());
  static_cast<void>(state.fenced());
  static_cast<void>(state.objects());
  static_cast<void>(state.uploaded());
  static_cast<void>(state.look(std::string(key)));
  static_cast<void>(state.number(key));
  static_cast<void>(state.traffic());
  static_cast<void>(state.add_traffic({}));
  static_cast<void>(state.garbage().due(std::numeric_limits<std::int64_t>::max(), 9, 10));
  static_cast<void>(state.garbage().add({"d/1", "d/2"}, 5, 6));
  const auto etags = state.etags().all();
  require(etags.has_value(), "any text may be an ETag");
  static_cast<void>(state.etags().update(*etags, {"d/1"}));
  auto locks = state.locks();
  const auto ends = locks.ends();
  require(ends.has_value(), "a note about a lock that cannot be read is 0");
  const auto ending = locks.ending(0, std::numeric_limits<std::int64_t>::max(), kObjectsAtOnce);
  require(ending || ending.error().code() == ErrorCode::kStale, "an order is made again or used");
  static_cast<void>(locks.set_ends(*ends));
  static const auto head = head_seeds().front();
  static_cast<void>(state.commit(head, {}, false, {"d/2"}, 5, 7));
  std::set<std::string> live{"d/3"};
  for (const auto& [name, end] : *ends) live.insert(name);
  require(!locks.order(live, 7) || locks.ending(0, 1, 1).has_value(),
          "an order that was made is used");
}

std::vector<std::string> replica_state_seeds() {
  const auto number = u64_text(kLockEnd);
  const remote::Extent extent{"d/1", 4096, 5000, 77, 8};
  return {record(remote::kState, remote::lock_key("d/1"), number),
          record(remote::kState, remote::order_key(kLockEnd, "d/1"), ""),
          record(remote::kState, remote::etag_key("d/1"), "0123456789abcdef"),
          record(remote::kState, std::string(remote::kCopiesKey), number),
          record(remote::kState, "traffic", number + number + number + number),
          record(remote::kState, "pending", std::string(200, 'h')),
          record(remote::kObjects, remote::extent_key("series/1/volumes/0001", 0),
                 remote::encode_extent(extent)),
          record(remote::kUploaded, remote::extent_key("series/1/volumes/0001", 4096),
                 remote::encode_extent(extent)),
          record(remote::kGarbage, "d/1", remote::garbage_note(1, 2)),
          record(remote::kLooks, "series/1/labels", remote::encode_look({1, 2, 3, 4, 5}))};
}

}  // namespace varve::fuzz
