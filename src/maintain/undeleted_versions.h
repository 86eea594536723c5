// SPDX-License-Identifier: Apache-2.0
// Finds data that a catalog of another state than the folder would give up.
#pragma once

#include <string>
#include <vector>

#include "format/data_codecs.h"
#include "io/file_system.h"
#include "maintain/history_check.h"
#include "meta/lmdb.h"
#include "store/folder_store.h"
#include "varve/result.h"

namespace varve::maintain {

/// Finds the manifests of sealed versions that labels list and the catalog lacks, although the
/// catalog has noted no deletion of the version since the labels were written (docs/ORDERING.md
/// O62). Leaves out versions without data of their own in the folder: older labels name such
/// versions, too. Reads the headers of the data files unknown to the catalog only if there is a
/// version to judge.
/// `open`: the opener of segment stores.
/// Errors: kUnsupported for a file of a newer format; the errors of the catalog and of the disk.
[[nodiscard]] Result<std::vector<MixedFile>> find_undeleted(io::FileSystem& files,
                                                            const format::DataCodecs& codecs,
                                                            const store::StoreOpener& open,
                                                            const std::string& repository_path,
                                                            const meta::Env& catalog);

/// Finds the data files unknown to the catalog with chunks that the catalog locates in missing
/// files: the catalog belongs to a state in which the chunks have been moved. Reads headers only if
/// a store has both unknown and missing files.
/// Errors: as find_undeleted().
[[nodiscard]] Result<std::vector<MixedFile>> find_displaced(io::FileSystem& files,
                                                            const format::DataCodecs& codecs,
                                                            const store::StoreOpener& open,
                                                            const std::string& repository_path,
                                                            const meta::Env& catalog);

}  // namespace varve::maintain
