// SPDX-License-Identifier: Apache-2.0
// The objects of a repository whose map of objects is lost. docs/decisions/165.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bucket/bucket.h"
#include "format/data_codecs.h"
#include "format/superblock.h"
#include "io/file_system.h"
#include "remote/changes.h"
#include "varve/result.h"

namespace varve::remote {

/// The listed objects of a repository. The newest data object comes first.
struct SurveyedObjects {
  std::vector<bucket::ObjectInfo> data{};     ///< Ranges of segments and volumes.
  std::vector<bucket::ObjectInfo> others{};   ///< Small files, and their copies.
  std::vector<bucket::ObjectInfo> catalog{};  ///< Changes of the catalog, and their copies.
  std::uint64_t heads_passed = 0;             ///< Number of the newest listed head or copy.
};
/// Lists the objects of a repository. Errors: errors of the bucket.
[[nodiscard]] Result<SurveyedObjects> survey_objects(bucket::Bucket& bucket,
                                                     const std::string& repository_id);

/// The result of placing objects in a folder.
struct PlacedObjects {
  ObjectMap map{};                      ///< Files made from one data object each.
  std::vector<std::string> problems{};  ///< Objects without a place.
  std::uint64_t deleted = 0;            ///< Manifests of deleted versions, which are left out.
};

/// Gives each data object a separate file, by the header of the object's first container: the
/// numbers of files have no meaning for a rebuild. A newer object gets a lower number, because a
/// rebuild prefers the first of two equal containers. Sends one range request for each object.
[[nodiscard]] Result<void> place_data(bucket::Bucket& bucket,
                                      const std::vector<bucket::ObjectInfo>& objects,
                                      PlacedObjects& placed);

/// The folder that receives small files.
struct PlacingFolder {
  std::string root{};
  io::FileSystem* stored = nullptr;    ///< Shows the stored bytes.
  io::FileSystem* readable = nullptr;  ///< Shows the text of sealed files.
};
/// Downloads the labels, manifests, aliases and files beside the versions into a folder. Of several
/// objects of one file, the newest whole object counts. Holds one object and the parts of labels in
/// memory. Leaves parity out, because parity names the lost numbers of segments. Names lost parts
/// of labels, as far as other parts or the newest catalog objects show the loss.
[[nodiscard]] Result<void> place_small_files(bucket::Bucket& bucket, const PlacingFolder& folder,
                                             const format::DataCodecs& codecs,
                                             const SurveyedObjects& objects, PlacedObjects& placed);

}  // namespace varve::remote
