// SPDX-License-Identifier: Apache-2.0
#include "repo/sequence_memory.h"

#include <fmt/core.h>

#include "base/log.h"
#include "base/system_error.h"
#include "catalog/sequence_record.h"
#include "catalog/series_catalog.h"
#include "meta/lmdb.h"

namespace varve::repo {

SequenceMemory::SequenceMemory(RepositoryFolder& folder)
    : folder_(folder), memory_(folder.options.memory_folder, folder.superblock.repository_id()) {
  if (!folder.codecs.keys() || folder.options.read_only) return;
  folder.catalog.before_commits(catalog::counts_in_sequence, catalog::advance_sequence);  // O43
}

// Only encrypted repositories are remembered, and an encrypted repository never becomes plain. A
// remembered id of a plain repository thus means a replacement by an attacker, to get new data in
// the clear. A plain repository needs the memory for nothing else, so an unreadable memory is no
// reason to refuse a plain repository.
Result<void> SequenceMemory::refuse_plain_instead_of_encrypted() const {
  if (folder_.options.accept_older) return {};
  const auto known = memory_.read();
  const bool lacks = !known && base::lacks_resources(known.error());
  if (!known && known.error().code() == ErrorCode::kIo && !lacks) {
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

Result<bool> SequenceMemory::compare() {
  if (!folder_.codecs.keys()) {
    VARVE_TRY(refuse_plain_instead_of_encrypted());
    return false;
  }
  const auto number = [this]() -> Result<std::uint64_t> {
    VARVE_TRY_ASSIGN(const auto present, folder_.sequence());
    return present.value_or(0);
  };
  const auto compared = io::refuse_older(memory_, folder_.paths.root(), number);
  if (compared) return false;
  if (!folder_.options.accept_older) return compared.error();
  const bool is_older = compared.error().code() == ErrorCode::kCorrupt;
  const auto present = number();
  if (!present) return is_older;
  const auto accepted = memory_.accept(*present);
  if (accepted) return is_older;
  base::log(base::LogLevel::kWarning,
            "the older state is not remembered as accepted: " + accepted.error().message());
  return is_older;
}

// Another folder may take over without the unreplicated changes. The state in the store must not
// look older than the machine's memory, so only replicated numbers are remembered
// (docs/decisions/085).
void SequenceMemory::remember(std::uint64_t sequence) {
  if (!folder_.storage->may_be_ahead()) return memory_.remember(sequence);
  auto known = labelled_.load();
  while (known < sequence && !labelled_.compare_exchange_weak(known, sequence)) continue;
}

// Without series, no labels have the number, so a rebuilt catalog could not restore the number.
void SequenceMemory::remember_present() {
  if (!folder_.codecs.keys()) return;
  const auto txn = meta::ReadTxn::begin(folder_.catalog);
  if (!txn) return;
  const auto present = catalog::find_sequence(*txn);
  const auto all = catalog::list_series(*txn);
  if (present && all && !all->empty()) remember(*present);
}

void SequenceMemory::watch(remote::WrittenRepository& repository) {
  if (!folder_.codecs.keys()) return;
  repository.labelled = [this] { return labelled_.load(); };
  repository.remember = [this](std::uint64_t sequence) { memory_.remember(sequence); };
}

}  // namespace varve::repo
