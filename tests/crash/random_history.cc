// SPDX-License-Identifier: Apache-2.0
// Runs a random history: the disk and its crashes, and the steps for a whole repository.
#include "random_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "support/pool_oracle.h"
#include "varve/arrange.h"
#include "varve/check.h"
#include "varve/copy.h"
#include "varve/keys.h"
#include "varve/repair.h"

namespace varve::test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kStepsPerCrash = 25;
// A crash comes within this many changes of the disk.
constexpr std::size_t kCallsToCrash = 150;
// Steps that sync end by a crash more often: numbers that no commit has named come back then.
constexpr std::size_t kSyncsPerCrash = 6;
constexpr std::size_t kCallsOfSync = 30;
constexpr std::uint32_t kParityPercent = 20;

// The cipher is given: measuring both would seal one text many times under a key that is not used.
CreateOptions created_with(char key, std::uint64_t seed) {
  CreateOptions options;
  options.encryption = Encryption{.first_key = {.key = test_key(key)}};
  options.encryption->cipher = seed % 3 == 0 ? "chacha20-poly1305" : "aes-256-gcm";
  return options;
}

std::vector<std::string> container_files(const std::string& repository) {
  std::vector<std::string> found;
  for (const auto& one : fs::recursive_directory_iterator(repository)) {
    const auto suffix = one.path().extension();
    if (suffix == ".seg" || suffix == ".vol") found.push_back(one.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

const std::vector<RandomHistory::Kind>& RandomHistory::kinds() {
  using R = RandomHistory;
  static const std::vector<Kind> all = {
      {"write", 30, &R::write},
      {"write out of order", 8, &R::write_out_of_order},
      {"truncate", 4, &R::truncate},
      {"symlink", 3, &R::link},
      {"rename", 6, &R::rename},
      {"xattr", 5, &R::set_xattr},
      {"unlink", 4, &R::remove_file},
      {"clone a file", 4, &R::clone_file},
      {"sync", 6, &R::sync_file, true},
      {"checkpoint", 5, &R::checkpoint, true},
      {"open", 8, &R::open_version},
      {"clone", 8, &R::clone},
      {"seal", 9, &R::seal, true},
      {"rename a version", 3, &R::rename_version},
      {"rename a series", 3, &R::rename_series},
      {"delete", 2, &R::remove},
      {"lock", 1, &R::lock},
      {"prune", 3, &R::prune},
      {"arrange", 5, &R::arrange},
      {"scrub", 1, &R::scrub},
      {"reopen", 2, &R::reopen_cleanly},
      {"compact", 1, &R::compact},
      {"change keys", 2, &R::change_keys},
      {"copy", 4, &R::copy},
      {"rebuild", 1, &R::rebuild_catalog},
      {"repair", 3, &R::repair_damage},
  };
  return all;
}

RandomHistory::RandomHistory(std::uint64_t seed)
    : seed_(seed),
      random_(seed),
      root_(fs::canonical(directory_.path()).string() + "/root"),
      path_(root_ + "/r"),
      copy_path_(root_ + "/copy") {
  fs::create_directory(root_);
  must(Repository::create(path_, small_chunks(seed % 2 == 0 ? Codec::kNone : Codec::kZstd),
                          created_with(key_, seed)));
  must(Repository::create(copy_path_, small_chunks(Codec::kZstd), created_with('t', seed)));
  start_disk();
  open();
  auto settings = must(repository_->arrange_settings());
  settings.parity_percent = kParityPercent;
  settings.window = 2;
  must(repository_->set_arrange_settings(settings));
  // This index finds few duplicates, so that arranging has some to remove.
  must(repository_->set_pool_index({PoolIndexKind::kZeroChunk, PoolIndexChoice::kHookBitsMax}));
  for (const auto placement :
       {Placement::kLineage, Placement::kPool, Placement::kPool, Placement::kLineagePool}) {
    Line line;
    line.name = "series " + std::to_string(++names_);
    line.placement = placement;
    SeriesOptions options;
    options.placement = placement;
    line.id = must(repository_->create_series(line.name, options)).id;
    lines_.push_back(std::move(line));
  }
}

RandomHistory::~RandomHistory() {
  repository_.reset();
  disk_.reset();
}

void RandomHistory::run(std::uint64_t steps) {
  std::size_t weights = 0;
  for (const auto& kind : kinds()) weights += kind.weight;
  for (step_ = 1; step_ <= steps; ++step_) {
    auto at = below(weights);
    const auto* kind = kinds().data();
    while (at >= kind->weight) at -= (kind++)->weight;
    step_name_ = kind->name;
    const bool was_armed = armed_;
    if (!armed_) apply_calls();
    if (!armed_ && below(kStepsPerCrash) == 0) arm(kCallsToCrash);
    if (!armed_ && kind->syncs && below(kSyncsPerCrash) == 0) arm(kCallsOfSync);
    const auto taken = (this->*kind->take)();
    if (disk_->has_failed() || (was_armed && below(3) == 0)) {
      crash();
    } else if (!taken) {
      fail(taken.error().message());
    } else {
      ++done_[kind->name];
    }
  }
  step_name_ = "end";
  disk_->heal();
  if (armed_) crash();
  check_everything();
  next_key_ = 'k';
  if (key_ != 'k') must(change_keys());
  must(close());
  const PoolOracle pool(path_);
  for (const auto& one : pool.wrong()) fail("the pool: " + one);
}

std::string RandomHistory::counts() const {
  std::string out;
  for (const auto& [kind, count] : done_) out += kind + " " + std::to_string(count) + ", ";
  return out;
}

std::uint64_t RandomHistory::count(const std::string& kind) const {
  const auto found = done_.find(kind);
  return found == done_.end() ? 0 : found->second;
}

// ---- The disk. ----

void RandomHistory::start_disk() {
  model_ = std::make_unique<DiskModel>(root_);
  disk_ = std::make_unique<DiskRecorder>(root_);
}

void RandomHistory::stop_disk() { disk_.reset(); }

void RandomHistory::apply_calls() {
  for (const auto& call : disk_->take()) model_->apply(call);
}

// Has the disk fail for good soon.
void RandomHistory::arm(std::size_t calls) {
  apply_calls();
  disk_->fail(below(calls), EIO, true);
  armed_ = true;
}

// Ends the process at this moment, and begins another one on what the disk has kept.
void RandomHistory::crash() {
  while (true) {
    disk_->fail(0, EIO, true);  // Nothing that the destructor writes arrives.
    repository_.reset();
    apply_calls();
    disk_.reset();
    constexpr Survives kAll[] = {Survives::kNothing, Survives::kSome, Survives::kEverything};
    const auto image = directory_.path() + "/image";
    const auto survives = kAll[below(3)];
    model_->write_image(image, survives, random_());
    fs::remove_all(root_);
    fs::rename(image, root_);
    ++done_["crash"];
    start_disk();
    armed_ = false;
    if (below(4) == 0) arm(kCallsToCrash);
    try {
      open();
    } catch (const std::exception& error) {
      if (!disk_->has_failed()) fail("after a crash: " + std::string(error.what()));
    }
    if (!disk_->has_failed()) break;
    ++done_["crash while opening"];
  }
  disk_->heal();
  armed_ = false;
  try {
    settle();
  } catch (const std::exception& error) {
    fail("after a crash: " + std::string(error.what()));
  }
}

OpenOptions RandomHistory::options(char key) const {
  auto options = quiet_options();
  options.key = [key] { return Result<UserKey>(test_key(key)); };
  return options;
}

bool RandomHistory::opens_with(char key) {
  const auto slots = KeySlots::open(path_, options(key));
  if (!slots && slots.error().code() != ErrorCode::kWrongKey) {
    throw std::runtime_error(slots.error().message());
  }
  if (slots) must((*slots)->close());
  return slots.has_value();
}

void RandomHistory::open() {
  if (!fs::exists(path_ + "/catalog/data.mdb") || rebuilding_) repair(path_);
  if (next_key_ && opens_with(*next_key_)) key_ = *next_key_;
  next_key_.reset();
  repository_ = must(Repository::open(path_, options(key_)));
}

Result<void> RandomHistory::close() {
  auto closed = repository_->close();
  repository_.reset();
  return closed;
}

void RandomHistory::repair(const std::string& path) {
  RepairOptions repairing;
  repairing.key = options(key_).key;
  rebuilding_ = true;
  for (int pass = 0; pass < 4; ++pass) {
    const auto plan = must(Repair::plan(path, repairing, false, {}));
    if (plan->steps().empty()) break;
    const auto report = must(plan->execute({}));
    if (report.chunks_quarantined != 0) fail("a repair gave chunks up");
  }
  rebuilding_ = false;
}

// ---- Steps for a whole repository. ----

Result<void> RandomHistory::arrange() {
  ArrangeOptions arranging;
  arranging.post_pass = {true, 1, 1};
  VARVE_TRY(repository_->arrange(any_line().id, arranging));
  return {};
}

Result<void> RandomHistory::scrub() {
  VARVE_TRY_ASSIGN(const auto report, repository_->scrub({}, {}));
  for (const auto& damage : report.check.damages) {
    if (!disk_->has_failed()) fail("scrub finds " + damage.where + ": " + damage.what);
  }
  return {};
}

Result<void> RandomHistory::reopen_cleanly() {
  VARVE_TRY(close());
  for (auto& line : lines_) {
    if (!line.open) continue;
    line.open->states.clear();
    line.open->durable = true;
  }
  VARVE_TRY_ASSIGN(repository_, Repository::open(path_, options(key_)));
  return {};
}

Result<void> RandomHistory::compact() {
  VARVE_TRY(repository_->sync());
  auto compacted = repository_->compact_catalog();
  repository_.reset();
  if (!compacted) return compacted.error();
  VARVE_TRY_ASSIGN(repository_, Repository::open(path_, options(key_)));
  return {};
}

Result<void> RandomHistory::change_keys() {
  VARVE_TRY(close());
  if (!next_key_) next_key_ = static_cast<char>('a' + below(16));
  {
    VARVE_TRY_ASSIGN(const auto slots, KeySlots::open(path_, options(key_)));
    const auto before = slots->info().slots;
    NewKey key;
    key.key = test_key(*next_key_);
    if (before.size() == 1) {
      VARVE_TRY(slots->replace(before.front().number, key));
      if (below(2) == 0) VARVE_TRY(slots->add(key));
    } else {
      VARVE_TRY(slots->add(key));
      for (const auto& slot : before) VARVE_TRY(slots->remove(slot.number));
    }
    VARVE_TRY(slots->close());
  }
  key_ = *next_key_;
  next_key_.reset();
  VARVE_TRY_ASSIGN(repository_, Repository::open(path_, options(key_)));
  return {};
}

// A copy does not prune if the newest version that it has is gone from the source. Notes that all
// present versions may be copied.
bool RandomHistory::may_prune_copy() {
  bool may = true;
  for (auto& line : lines_) {
    const auto newest = line.sealed.empty() ? VersionNumber{} : line.sealed.rbegin()->first;
    may = may && newest >= line.newest_copied;
    line.newest_copied = std::max(line.newest_copied, newest);
  }
  return may;
}

Result<void> RandomHistory::copy() {
  CopyOptions copying;
  copying.prune = may_prune_copy() && below(2) == 0;
  copying.check_all = below(4) == 0;
  std::set<std::string> present;
  for (const auto& line : lines_) {
    for (const auto& [number, sealed] : line.sealed) present.insert(*sealed.tree.at("id").content);
  }
  if (copying.prune) {
    for (const auto& id : copied_) {
      if (!present.contains(id)) pruning_.insert(id);
    }
  }
  VARVE_TRY_ASSIGN(const auto target, Repository::open(copy_path_, options('t')));
  {
    const auto to = copy_target(*target);
    VARVE_TRY_ASSIGN(const auto report, copy_versions(*repository_, to.get(), copying, {}));
    if (!report.problems.empty()) return Error(ErrorCode::kIo, report.problems.front());
    if (report.passed_over != 0) fail("a copy passed versions over");
  }
  VARVE_TRY(target->close());
  if (copying.prune) copied_.clear();
  copied_.insert(present.begin(), present.end());
  pruning_.clear();
  return {};
}

bool RandomHistory::has_overlay(const Line& line) const {
  return fs::exists(fmt::format("{}/staging/{:08x}-{:08x}/overlay", path_,
                                static_cast<std::uint32_t>(line.id),
                                static_cast<std::uint32_t>(line.open->number)));
}

// Loses the catalog, and repairs the repository.
Result<void> RandomHistory::rebuild_catalog() {
  VARVE_TRY(reopen_cleanly());
  VARVE_TRY(close());
  if (disk_->has_failed()) return {};
  stop_disk();
  fs::remove_all(path_ + "/catalog");
  for (auto& line : lines_) {
    // Only the catalog names an open version that is empty or an unchanged clone.
    if (line.open && !has_overlay(line)) line.open->durable = false;
  }
  start_disk();
  if (armed_) arm(kCallsToCrash);
  try {
    open();
    if (!disk_->has_failed()) settle();
  } catch (const std::exception& error) {
    return Error(ErrorCode::kIo, error.what());
  }
  return {};
}

// Damages a file that parity protects, and repairs it.
Result<void> RandomHistory::repair_damage() {
  if (armed_) return {};
  for (const auto& line : lines_) {
    if (line.open) VARVE_TRY(seal_all());
  }
  for (const auto& line : lines_) VARVE_TRY(repository_->arrange(line.id, {}));
  VARVE_TRY_ASSIGN(const auto before, repository_->check({}, {}));
  if (before.parity.files == 0 || before.parity.files_protected != before.parity.files) return {};
  VARVE_TRY(close());
  stop_disk();
  const auto files = container_files(path_);
  if (!files.empty()) {
    const auto& damaged = files[below(files.size())];
    std::fstream file(damaged, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(fs::file_size(damaged) / 2));
    file << std::string(1000, 'x');
  }
  start_disk();
  try {
    repair(path_);
    open();
    settle();
  } catch (const std::exception& error) {
    return Error(ErrorCode::kIo, error.what());
  }
  ++done_["damage"];
  return {};
}

Result<void> RandomHistory::seal_all() {
  for (auto& line : lines_) {
    if (line.open) VARVE_TRY(seal_now(line, false));
  }
  return {};
}

}  // namespace varve::test
