// SPDX-License-Identifier: Apache-2.0
#include "version/overlay.h"

#include <sys/stat.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "base/system_error.h"
#include "meta/page_check.h"
#include "meta/schema.h"

namespace varve::version {

struct Overlay::State {
  // The file's identity and times, which differ after a write by another program.
  struct Stamp {
    dev_t device = 0;
    ino_t inode = 0;
    off_t bytes = 0;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    bool operator==(const Stamp&) const = default;
  };
  // The state of the file after the environment closed.
  struct Closed {
    Stamp stamp;
    std::uint64_t commit = 0;
    std::uint64_t uncovered_texts = 0;  // See TextCount::uncovered().
  };
  static std::optional<Stamp> stamp_of(int file);
  // Returns nullopt if the file cannot be read.
  static std::optional<Closed> before_closing(const meta::Env& env);
  // Continues with the reopened environment.
  static Result<void> continue_after(const Closed& closed, const meta::Env& env);

  std::mutex mutex;
  std::weak_ptr<const meta::Env> env;
  unsigned open = 0;  // Environments not closed yet: a new environment may open meanwhile.
  std::optional<Closed> closed;
  bool permits_spare_texts = false;
};

std::optional<Overlay::State::Stamp> Overlay::State::stamp_of(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return std::nullopt;
  return Stamp{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
               status.st_mtim.tv_nsec};
}

std::optional<Overlay::State::Closed> Overlay::State::before_closing(const meta::Env& env) {
  const auto stamp = stamp_of(env.files().data());
  const auto txn = meta::ReadTxn::begin(env);
  if (!stamp || !txn) return std::nullopt;
  const auto* const texts = env.texts();
  return Closed{*stamp, txn->id(), texts != nullptr ? texts->uncovered(*txn) : 0};
}

Result<void> Overlay::State::continue_after(const Closed& closed, const meta::Env& env) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(env));
  if (txn.id() != closed.commit) {
    return Error(ErrorCode::kCorrupt,
                 env.files().directory() +
                     "/data.mdb was changed by another program while the version was open; "
                     "unmount the repository, and run `varve check`");
  }
  if (env.texts() != nullptr) env.texts()->add(closed.uncovered_texts);
  return {};
}

Overlay::Overlay(Parts parts) : parts_(std::move(parts)), state_(std::make_shared<State>()) {}

Overlay::~Overlay() {
  const auto env = state_->env.lock();
  if (env) parts_.cache->drop(env.get());
}

Result<Overlay::Use> Overlay::use() {
  auto env = open();
  if (!env && base::lacks_resources(env.error())) {
    parts_.cache->clear();  // Environments of idle versions free descriptors.
    env = open();
  }
  if (env) parts_.cache->keep(*env);
  return env;
}

Result<void> Overlay::check_pages() const {
  const auto checked = meta::check_pages(*parts_.files, parts_.directory, meta::overlay::kTables);
  if (checked) return {};
  return Error(checked.error().code(),
               parts_.directory + "/data.mdb is damaged (" + checked.error().message() +
                   "), so the open version cannot be read; `varve repair` drops it");
}

Result<Overlay::Use> Overlay::open() {
  const std::lock_guard lock(state_->mutex);
  if (auto env = state_->env.lock()) return env;
  const auto data = parts_.directory + "/data.mdb";
  std::optional<State::Stamp> found;
  {
    VARVE_TRY_ASSIGN(const auto file, parts_.files->descriptor(data, io::OpenMode::kRead));
    found = State::stamp_of(file.get());
  }
  const auto& closed = state_->closed;
  if (!closed || !found || closed->stamp != *found) VARVE_TRY(check_pages());
  meta::EnvOptions options;
  options.tables = meta::overlay::kTables;
  options.keys = parts_.keys;
  options.map_bytes = kMapBytes;
  options.must_exist = true;
  VARVE_TRY_ASSIGN(auto env, meta::Env::open(*parts_.files, parts_.directory, options));
  if (closed) VARVE_TRY(State::continue_after(*closed, env));
  if (state_->permits_spare_texts && env.texts() != nullptr) env.texts()->permit_spare_texts(true);
  state_->closed.reset();
  ++state_->open;
  const auto close = [state = state_](const meta::Env* closing) {
    const std::unique_ptr<const meta::Env> owned(closing);  // Closes after the lock is released.
    const std::lock_guard closing_lock(state->mutex);
    // A weak pointer keeps the deleter, and with the deleter the state, for ever.
    if (state->env.expired()) state->env.reset();
    if (--state->open != 0) return;
    state->closed = State::before_closing(*closing);
  };
  Use use(std::make_unique<const meta::Env>(std::move(env)).release(), close);
  state_->env = use;
  return use;
}

void Overlay::permit_spare_texts() {
  Use env;  // The last use closes the environment, after the lock is released.
  const std::lock_guard lock(state_->mutex);
  state_->permits_spare_texts = true;
  env = state_->env.lock();
  if (env && env->texts() != nullptr) env->texts()->permit_spare_texts(true);
}

}  // namespace varve::version
