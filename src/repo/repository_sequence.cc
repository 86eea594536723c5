// SPDX-License-Identifier: Apache-2.0
// The sequence number of an encrypted repository, and the local machine's memory of the number.
// docs/decisions/085 gives the order of writes.
#include <fmt/core.h>

#include "base/log.h"
#include "catalog/sequence_record.h"
#include "meta/lmdb.h"
#include "repo/repository_impl.h"

namespace varve::repo {

void RepositoryImpl::count_changes() {
  if (!folder_.codecs.keys() || folder_.options.read_only) return;
  folder_.catalog.before_commits(catalog::counts_in_sequence, catalog::advance_sequence);  // O43
}

// Only encrypted repositories are remembered, and an encrypted repository never becomes plain. A
// remembered id of a plain repository thus means a replacement by an attacker, to get new data in
// the clear. A plain repository needs the memory for nothing else, so an unreadable memory is no
// reason to refuse a plain repository.
Result<void> RepositoryImpl::refuse_plain_instead_of_encrypted() const {
  if (folder_.options.accept_older) return {};
  const auto known = memory_.read();
  if (!known && known.error().code() == ErrorCode::kIo) {
    base::log(base::LogLevel::kWarning,
              fmt::format("an encrypted repository that was replaced by the plain {} would not be "
                          "seen: {}",
                          folder_.paths.root(), known.error().message()));
    return {};
  }
  if (!known) return known.error();
  if (!*known) return {};
  return Error(
      ErrorCode::kWrongKey,
      folder_.paths.root() +
          " is plain, but this machine remembers a repository with the same id as "
          "encrypted: it may have been replaced, to get new data in the clear. Do not "
          "trust its storage, and put the right repository back. If you did that yourself, "
          "remove " +
          memory_.path());
}

Result<void> RepositoryImpl::compare_with_memory() {
  if (!folder_.codecs.keys()) return refuse_plain_instead_of_encrypted();
  const auto number = [this]() -> Result<std::uint64_t> {
    VARVE_TRY_ASSIGN(const auto present, sequence());
    return present.value_or(0);
  };
  auto compared = refuse_older(memory_, folder_.paths.root(), number);
  if (compared || !folder_.options.accept_older) return compared;
  accepted_older_ = compared.error().code() == ErrorCode::kCorrupt;
  const auto present = number();
  if (!present) return {};
  const auto accepted = memory_.accept(*present);
  if (accepted) return {};
  base::log(base::LogLevel::kWarning,
            "the older state is not remembered as accepted: " + accepted.error().message());
  return {};
}

// Another folder may take over without the unreplicated changes. The state in the store must not
// look older than the machine's memory, so only replicated numbers are remembered
// (docs/decisions/085).
void RepositoryImpl::remember(std::uint64_t sequence) {
  if (!folder_.bucket || folder_.bucket->reads_only()) return memory_.remember(sequence);
  auto known = labelled_.load();
  while (known < sequence && !labelled_.compare_exchange_weak(known, sequence)) continue;
}

// Without series, no labels have the number, so a rebuilt catalog could not restore the number.
void RepositoryImpl::remember_present() {
  if (!folder_.codecs.keys()) return;
  const auto present = sequence();
  const auto all = series();
  if (present && *present && all && !all->empty()) remember(**present);
}

}  // namespace varve::repo
