// SPDX-License-Identifier: Apache-2.0
// The documents in a store's answers, as validated structures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bucket/bucket.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::bucket {

/// An error named by the store. All texts are short and printable.
struct StoreError {
  std::string code{};     ///< Such as "NoSuchKey"; empty without a readable document.
  std::string message{};  ///< The store's explanation.
  std::string region{};   ///< The bucket's region, if the request used another region.
};
/// Returns the error in a document. Accepts any bytes.
[[nodiscard]] StoreError read_store_error(std::string_view document);

/// Returns the page of ListBucketResult (version 2). The document's names are below `prefix` of the
/// bucket; the returned names lack `prefix`. An object with the name `prefix` is left out.
/// Errors: kCorrupt if the document has another type, lacks a value, lists a name outside of
/// `prefix` + `below`, at or before `prefix` + `after`, or out of order, or has more objects than
/// `objects_max`.
[[nodiscard]] Result<ListPage> read_list_page(std::string_view document, const std::string& prefix,
                                              const std::string& below, const std::string& after,
                                              std::size_t objects_max);

/// An upload in parts that was not completed.
struct UnfinishedUpload {
  std::string key{};  ///< The whole name of the object.
  std::string upload_id{};
};
/// Returns the uploads of ListMultipartUploadsResult. Errors: kCorrupt.
[[nodiscard]] Result<std::vector<UnfinishedUpload>> read_unfinished(std::string_view document);

/// Returns the text of the element `name` in the root element `root`. Errors: kCorrupt for a
/// missing or empty element.
[[nodiscard]] Result<std::string> read_value(std::string_view document, std::string_view root,
                                             std::string_view name);

/// Returns an ETag without quotation marks; empty for a text that no store uses as an ETag.
[[nodiscard]] std::string plain_etag(std::string_view text);

/// Returns the time of "2013-09-17T18:07:53.000Z" in whole seconds; nullopt for any other text.
[[nodiscard]] std::optional<Timestamp> parse_iso_time(std::string_view text);

/// The place of a partial answer in its object, from the header Content-Range.
struct ContentRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;   ///< Included.
  std::uint64_t total = 0;  ///< The length of the object.
};
/// Parses "bytes 0-9/100"; nullopt for any other text, and if last < first or last >= total.
[[nodiscard]] std::optional<ContentRange> parse_content_range(std::string_view text);

}  // namespace varve::bucket
