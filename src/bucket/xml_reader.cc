// SPDX-License-Identifier: Apache-2.0
#include "bucket/xml_reader.h"

#include <expat.h>
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace varve::bucket {
namespace {

struct Reading {
  XML_Parser parser = nullptr;
  const XmlElement* element = nullptr;
  std::string path{};
  std::vector<std::string> texts{};  // Texts of the open elements.
  std::optional<Error> failed{};

  void fail(Error error) {
    if (failed) return;
    failed = std::move(error);
    XML_StopParser(parser, XML_FALSE);
  }
  void fail(std::string_view what) { fail(Error(ErrorCode::kCorrupt, std::string(what))); }
};

void XMLCALL begin_element(void* data, const XML_Char* name, const XML_Char** /*attributes*/) {
  auto& reading = *static_cast<Reading*>(data);
  if (reading.failed) return;
  if (reading.texts.size() == kXmlDepthMax) return reading.fail("XML with too many levels");
  if (reading.path.size() + std::string_view(name).size() > kXmlTextBytesMax) {
    return reading.fail("XML with a long name");
  }
  if (!reading.path.empty()) reading.path += '/';
  reading.path += name;
  reading.texts.emplace_back();
}

void XMLCALL end_element(void* data, const XML_Char* name) {
  auto& reading = *static_cast<Reading*>(data);
  if (reading.failed) return;
  const auto ended = (*reading.element)(reading.path, reading.texts.back());
  if (!ended) return reading.fail(ended.error());
  reading.texts.pop_back();
  const auto bytes = std::string_view(name).size();
  reading.path.resize(reading.path.size() - bytes - (reading.texts.empty() ? 0 : 1));
}

void XMLCALL add_text(void* data, const XML_Char* text, int bytes) {
  auto& reading = *static_cast<Reading*>(data);
  if (reading.failed || reading.texts.empty()) return;
  auto& whole = reading.texts.back();
  if (whole.size() + static_cast<std::size_t>(bytes) > kXmlTextBytesMax) {
    return reading.fail("XML with a long text");
  }
  whole.append(text, static_cast<std::size_t>(bytes));
}

void XMLCALL refuse_document_type(void* data, const XML_Char* /*name*/, const XML_Char* /*system*/,
                                  const XML_Char* /*public_id*/, int /*has_internal*/) {
  static_cast<Reading*>(data)->fail("XML with a document type");
}

}  // namespace

Result<void> read_xml(std::string_view document, const XmlElement& element) {
  // A store may send blanks during its work, even before the declaration.
  document.remove_prefix(std::min(document.find_first_not_of(" \t\r\n"), document.size()));
  const std::unique_ptr<std::remove_pointer_t<XML_Parser>, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate(nullptr), &XML_ParserFree);
  if (!parser) return Error(ErrorCode::kIo, "no memory for XML");
  if (document.size() > std::numeric_limits<int>::max()) {
    return Error(ErrorCode::kCorrupt, "XML that is too large");
  }
  Reading reading{.parser = parser.get(), .element = &element};
  XML_SetUserData(parser.get(), &reading);
  XML_SetElementHandler(parser.get(), begin_element, end_element);
  XML_SetCharacterDataHandler(parser.get(), add_text);
  XML_SetStartDoctypeDeclHandler(parser.get(), refuse_document_type);
  const auto status =
      XML_Parse(parser.get(), document.data(), static_cast<int>(document.size()), XML_TRUE);
  if (reading.failed) return *std::move(reading.failed);
  if (status == XML_STATUS_OK) return {};
  return Error(ErrorCode::kCorrupt,
               fmt::format("not XML: {}", XML_ErrorString(XML_GetErrorCode(parser.get()))));
}

}  // namespace varve::bucket
