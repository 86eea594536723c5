// SPDX-License-Identifier: Apache-2.0
#include "remote/kept_snapshot.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace varve::remote {

namespace {

// A transaction can be moved, but not assigned.
void move_to(std::optional<meta::ReadTxn>& to, std::optional<meta::ReadTxn>& from) {
  to.reset();
  if (from) to.emplace(std::move(*from));
  from.reset();
}

}  // namespace

void KeptSnapshot::begin(const meta::Env& catalog) {
  // Without a table, LMDB knows no readers, and would use their pages again.
  if (catalog.files().table() == nullptr) return;
  auto begun = meta::ReadTxn::begin(catalog);
  if (!begun) {
    base::log(base::LogLevel::kDebug, begun.error().message());
    return;
  }
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  last_.reset();
  last_.emplace(*std::move(begun));
  last_bytes_ = meta::used_bytes(catalog).bytes;
}

std::optional<meta::ReadTxn> KeptSnapshot::take() {
  std::optional<meta::ReadTxn> taken;
  const std::lock_guard lock(mutex_);
  move_to(taken, last_);
  return taken;
}

void KeptSnapshot::put_back(std::optional<meta::ReadTxn> last, std::optional<meta::ReadTxn> next) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  move_to(last_, last);
  move_to(next_, next);
  if (next_) next_bytes_ = meta::used_bytes(next_->env()).bytes;
}

void KeptSnapshot::advance() {
  const std::lock_guard lock(mutex_);
  move_to(last_, next_);
  last_bytes_ = next_bytes_;
}

void KeptSnapshot::before_write(const meta::Env& catalog) {
  const std::lock_guard lock(mutex_);
  if (!last_ && !next_) return;
  const auto since = last_ ? last_bytes_ : next_bytes_;
  const auto growth = std::max(kGrowthMin, since / 4);
  if (meta::used_bytes(catalog).bytes <= since + growth) return;
  last_.reset();
  next_.reset();
}

void KeptSnapshot::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  last_.reset();
  next_.reset();
}

}  // namespace varve::remote
