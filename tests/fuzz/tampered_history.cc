// SPDX-License-Identifier: Apache-2.0
#include "tampered_history.h"

#include <filesystem>
#include <utility>

#include "prefixed_frames.h"
#include "varve/arrange.h"
#include "varve/beside.h"
#include "varve/check.h"
#include "varve/keys.h"
#include "varve/retention.h"

namespace varve::test {

namespace fs = std::filesystem;

OpenOptions TamperedHistory::options() const {
  auto options = quiet_options();
  options.ingest_threads = 1;
  options.key = [fill = key_] { return Result<UserKey>(test_key(fill)); };
  return options;
}

void TamperedHistory::open() { repository_ = must(Repository::open(path_, options())); }

void TamperedHistory::close_and_keep() {
  must(repository_->close());
  repository_.reset();
  older_.push_back(states_ + "/" + std::to_string(older_.size()));
  copy_crashed(path_, older_.back());
}

void TamperedHistory::add_version(const std::string& series, const std::string& name,
                                  std::uint64_t n) {
  const auto id = must(repository_->find_series(series)).id;
  const auto number = must(repository_->open_version(id, name, folder())).number;
  Files files;
  {
    const auto version = must(repository_->writer(id));
    const auto sub = must(version->create(kRootIno, "d", folder())).ino;
    std::string text;
    for (int line = 0; line < 1500; ++line) {
      text += "line " + std::to_string(line) + " of version " + std::to_string(n) + "\n";
    }
    // Two series store the same noise, so the pool has duplicates.
    for (const auto& [file, bytes] : {std::pair<std::string, std::string>{"a", noise(30000, n)},
                                      {"b", noise(30000, n - 1)},
                                      {"text", text},
                                      {"same", noise(20000, 77)},
                                      {"of " + series, noise(25000, 1000 * n + series.size())},
                                      {"edited", edited_noise(n)}}) {
      if (file == "edited" && !delta_) continue;
      write_file(*version, sub, file, bytes);
      files["d/" + file] = bytes;
    }
    for (int i = 0; i < 30; ++i) {
      const auto file = "small-" + std::to_string(i);
      const auto bytes = file + " of " + std::to_string(n % 2 == 0 ? n : 0);
      write_file(*version, sub, file, bytes);
      files["d/" + file] = bytes;
    }
    must(version->link(must(version->lookup(sub, "same")).ino, kRootIno, "link"));
    files["link"] = files["d/same"];
  }
  must(repository_->seal(id, number, ""));
  expected_.sealed[{static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(number)}] =
      std::move(files);
  expected_.names.insert(series + "/" + name);
}

void TamperedHistory::add_round(std::uint64_t n) {
  for (const auto& info : must(repository_->series())) {
    add_version(info.name, "v" + std::to_string(n), n);
  }
}

void TamperedHistory::rename_version(const std::string& series, const std::string& from,
                                     const std::string& to) {
  const auto id = must(repository_->find_series(series)).id;
  must(repository_->rename_version(id, must(repository_->find_version(id, from)).number, to));
  expected_.names.erase(series + "/" + from);
  expected_.names.insert(series + "/" + to);
}

void TamperedHistory::remove_version(const std::string& series, const std::string& name) {
  const auto id = must(repository_->find_series(series)).id;
  const auto number = must(repository_->find_version(id, name)).number;
  must(repository_->delete_versions(id, {number}));
  expected_.names.erase(series + "/" + name);
}

void TamperedHistory::put_beside(const std::string& text) {
  const auto files = must(repository_->beside(must(repository_->find_series("s")).id));
  auto entry = files->lookup(kRootIno, "notes");
  if (!entry) entry = files->create(kRootIno, "notes", regular_file());
  const auto file = must(files->open(must(std::move(entry)).ino, true));
  must(file->write(0, base::as_bytes(text)));
  must(file->flush());
}

void TamperedHistory::arrange() {
  ArrangeOptions options;
  options.post_pass = {.any_new = true, .run_chunks_min = 1, .duplicate_permille_min = 1};
  for (const auto& info : must(repository_->series())) {
    must(repository_->arrange(info.id, options));
  }
}

void TamperedHistory::change_keys() {
  auto slots = must(KeySlots::open(path_, options()));
  must(slots->add({.key = test_key('x'), .label = "second"}));
  must(slots->close());
}

void TamperedHistory::open_versions() {
  constexpr std::string_view kLate = "late";
  constexpr std::string_view kEarly = "early";
  for (const char* name : {"s", "p"}) {
    const auto id = must(repository_->find_series(name)).id;
    const auto newest = must(repository_->find_version(id, "latest"));
    must(repository_->clone_version(id, newest.number, "next.partial"));
    const auto version = must(repository_->writer(id));
    auto& files = expected_.open[static_cast<std::uint32_t>(id)];
    write_file(*version, kRootIno, "short", "not cut yet");
    files["short"] = "not cut yet";
    for (const char* staged : {"staged", "staged too"}) {
      const auto ino = must(version->create(kRootIno, staged, regular_file())).ino;
      auto file = must(version->open(ino, true));
      const auto middle = noise(20000, 5 + files.size());
      must(file->write(50000, base::as_bytes(kLate)));
      must(file->write(10000, base::as_bytes(middle)));
      must(file->write(0, base::as_bytes(kEarly)));
      must(file->sync());
      auto& bytes = files[staged];
      bytes.assign(50000 + kLate.size(), '\0');
      bytes.replace(50000, kLate.size(), kLate);
      bytes.replace(10000, middle.size(), middle);
      bytes.replace(0, kEarly.size(), kEarly);
      open_files_.push_back(std::move(file));
    }
    must(version->sync());
    writers_.push_back(version);
  }
}

void TamperedHistory::run(bool crashed) {
  fs::create_directories(states_);
  CreateOptions creation;
  creation.encryption = Encryption{.first_key = {.key = test_key(key_)}};
  must(Repository::create(path_, small_chunks(Codec::kZstd), creation));
  open();
  ArrangeSettings settings;
  settings.window = 1;
  settings.policy = ArrangePolicyKind::kOriginal;
  settings.parity_percent = 10;
  settings.delta = delta_ ? 1 : 0;
  must(repository_->set_arrange_settings(settings));
  must(repository_->set_pool_index({PoolIndexKind::kZeroChunk, PoolIndexChoice::kHookBitsMax}));
  must(repository_->create_series("s"));
  must(repository_->create_series("p", {.placement = Placement::kPool}));
  must(repository_->create_series("q", {.placement = Placement::kLineagePool}));
  put_beside("first");
  add_round(1);
  close_and_keep();
  open();
  add_round(2);
  rename_version("s", "v1", "first");
  close_and_keep();
  open();
  add_round(3);
  arrange();
  remove_version("s", "v2");
  remove_version("p", "v1");
  must(repository_->check({}, {}));
  must(repository_->scrub({}, {}));
  close_and_keep();
  change_keys();
  open();
  must(repository_->rename_series(must(repository_->find_series("q")).id, "renamed"));
  std::set<std::string> names;
  for (const auto& name : expected_.names) {
    names.insert(name.starts_with("q/") ? "renamed" + name.substr(1) : name);
  }
  expected_.names = std::move(names);
  put_beside("second");
  for (std::uint64_t n = 1; delta_ && n <= kVersionsToJoin; ++n) {
    add_version("s", "w" + std::to_string(n), 100 + n);
  }
  add_round(4);
  arrange();
  close_and_keep();
  open();
  add_round(5);
  arrange();
  remove_version("p", "v2");
  remove_version("renamed", "v3");
  must(repository_->check({}, {}));
  must(repository_->scrub({}, {}));
  open_versions();
  older_.push_back(states_ + "/" + std::to_string(older_.size()));
  copy_crashed(path_, older_.back());
  expected_.open_before = expected_.open;
  // One more change of the open versions, so that their files have older states, too.
  for (auto& [series, files] : expected_.open) {
    const auto& version = series == 1 ? writers_.front() : writers_.back();
    write_file(*version, kRootIno, "last", noise(9000, series));
    files["last"] = noise(9000, series);
    const auto& file = open_files_[series == 1 ? 0 : 2];
    must(file->write(100, base::as_bytes(std::string_view("written again"))));
    files["staged"].replace(100, 13, "written again");
    must(file->sync());
    must(version->sync());
  }
  if (crashed) {
    copy_crashed(path_, path_ + "-crashed");
  }
  open_files_.clear();
  writers_.clear();
  must(repository_->close());
  repository_.reset();
  if (!crashed) return;
  fs::remove_all(path_);
  fs::rename(path_ + "-crashed", path_);
}

}  // namespace varve::test
