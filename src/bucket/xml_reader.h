// SPDX-License-Identifier: Apache-2.0
// Reads the small XML documents of a store's answers.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "varve/result.h"

namespace varve::bucket {

/// Limits of a document. The caller limits the document's size.
inline constexpr std::size_t kXmlDepthMax = 16;
inline constexpr std::size_t kXmlTextBytesMax = 16384;

/// Receives the path of an element at the element's end, for example
/// "ListBucketResult/Contents/Key", and the element's text without the text of inner elements.
/// Returns an error to end the reading.
using XmlElement = std::function<Result<void>(std::string_view path, const std::string& text)>;

/// Reads a document. Names keep their prefixes; attributes are skipped. A document type is refused,
/// so that no entity can be declared.
/// Errors: kCorrupt for a document that is not well-formed or exceeds a limit; errors of `element`.
[[nodiscard]] Result<void> read_xml(std::string_view document, const XmlElement& element);

}  // namespace varve::bucket
