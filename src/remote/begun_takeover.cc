// SPDX-License-Identifier: Apache-2.0
#include "remote/begun_takeover.h"

#include <string>
#include <vector>

#include "maintain/manifest_file.h"
#include "remote/changes.h"
#include "remote/head_objects.h"
#include "remote/small_files.h"

namespace varve::remote {

namespace {

constexpr std::string_view kBegunKey = "taking over";  // In the state.

}  // namespace

Result<void> note_begun_takeover(ReplicaState& state) { return state.set_number(kBegunKey, 1); }

Result<bool> has_begun_takeover(const ReplicaState& state) {
  VARVE_TRY_ASSIGN(const auto begun, state.number(kBegunKey));
  return begun != 0;
}

Result<void> end_takeover(ReplicaState& state) { return state.set_number(kBegunKey, 0); }

// The copy is the catalog of the newest known head, or already of the pending head, which the
// folder meets next: the changes of a head may be applied twice.
Result<void> undo_takeover(bucket::Bucket& bucket, io::FileSystem& files, const std::string& root,
                           ReplicaState& state, const meta::Env& catalog) {
  VARVE_TRY_ASSIGN(const bool begun, has_begun_takeover(state));
  if (!begun) return {};
  ChangeWriter records;
  {
    VARVE_TRY_ASSIGN(const auto copy, open_copy(files, root, true));
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(copy));
    VARVE_TRY(write_catalog(txn, records));
  }
  VARVE_TRY(apply_to_catalog(catalog, records.finish(), true));
  VARVE_TRY_ASSIGN(const auto map, state.objects());
  std::vector<MappedFile> labels;
  for (const auto& [path, extents] : map) {
    const bool is_label = path.ends_with("/" + std::string(maintain::kLabelsName));
    if (is_label && is_small(extents)) labels.emplace_back(path, extents);
  }
  // Lost labels are removed: the labels in the folder belong to a head that was never created.
  VARVE_TRY(download_small(bucket, files, root, labels));
  VARVE_TRY(state.forget_writing());
  return end_takeover(state);
}

}  // namespace varve::remote
