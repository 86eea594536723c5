// SPDX-License-Identifier: Apache-2.0
// The sequence number of an encrypted repository, and what this machine remembers of it.
// docs/decisions/85 gives the order of writes.
#include <fmt/format.h>

#include "base/log.h"
#include "catalog/sequence_record.h"
#include "meta/lmdb.h"
#include "repo/repository_impl.h"

namespace varve::repo {

namespace {

Error set_back(const std::string& root, std::uint64_t present, std::uint64_t known) {
  return {ErrorCode::kCorrupt,
          fmt::format(
              "{} is older than this machine remembers: its sequence number is {}, and was {}. "
              "An older state of it was put back, or its newest changes are lost. If you did that "
              "yourself, give --accept-older once (mount: -o accept_older). Otherwise do not trust "
              "its storage: newer versions may be missing",
              root, present, known)};
}

}  // namespace

void RepositoryImpl::count_changes() {
  if (!codecs_.keys() || options_.read_only) return;
  catalog_.before_commits(catalog::counts_in_sequence, catalog::advance_sequence);  // O43
}

Result<std::optional<std::uint64_t>> RepositoryImpl::sequence() {
  if (!codecs_.keys()) return std::optional<std::uint64_t>();
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto present, catalog::find_sequence(txn));
  return std::optional(present);
}

// The memory is read before the catalog: a writer remembers a number only after its commit, so a
// reader beside it sees a catalog with that number.
Result<void> RepositoryImpl::compare_with_memory() {
  if (!codecs_.keys()) return {};
  const auto known = memory_.read();
  if (!known && !options_.accept_older) return known.error();
  const auto present = sequence();
  if (!present && options_.accept_older) return {};
  if (!present) return present.error();
  const bool is_older = known && *known && **known > **present;
  if (known && !is_older) return {};
  if (!options_.accept_older) return set_back(paths_.root(), **present, **known);
  const auto accepted = memory_.accept(**present);
  if (accepted) return {};
  base::log(base::LogLevel::kWarning,
            "the older state is not remembered as accepted: " + accepted.error().message());
  return {};
}

// A catalog without series has no labels, from which a lost one would get its number back.
void RepositoryImpl::remember_present() {
  if (!codecs_.keys()) return;
  const auto present = sequence();
  const auto all = series();
  if (present && *present && all && !all->empty()) memory_.remember(**present);
}

}  // namespace varve::repo
