// SPDX-License-Identifier: Apache-2.0
// The answers of an object store.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

/// A document: a page of a list, an error, unfinished uploads, or one value.
void store_document(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> store_document_seeds();
/// An answer: a status, lines of headers, an empty line and a body.
void store_answer(std::span<const std::byte> input);
[[nodiscard]] std::vector<std::string> store_answer_seeds();

}  // namespace varve::fuzz
