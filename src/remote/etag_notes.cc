// SPDX-License-Identifier: Apache-2.0
#include "remote/etag_notes.h"

#include "remote/lock_order.h"

namespace varve::remote {

std::string etag_key(std::string_view object) { return std::string(kEtagPrefix).append(object); }

Result<Etags> EtagNotes::all() const {
  Etags etags;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(state_));
  VARVE_TRY(meta::for_each_prefix(
      txn, kState, kEtagPrefix, [&](std::string_view key, std::string_view value) -> Result<bool> {
        etags.emplace_hint(etags.end(), key.substr(kEtagPrefix.size()), value);
        return true;
      }));
  return etags;
}

Result<void> EtagNotes::update(const Etags& etags, const std::set<std::string>& gone) {
  if (etags.empty() && gone.empty()) return {};
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(state_));
  for (const auto& name : gone) VARVE_TRY(txn.erase(kState, etag_key(name)));
  for (const auto& [name, etag] : etags) VARVE_TRY(txn.put(kState, etag_key(name), etag));
  return txn.commit();
}

}  // namespace varve::remote
