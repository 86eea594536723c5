// SPDX-License-Identifier: Apache-2.0
#include "control/pool_streams_json.h"

#include <utility>

#include "control/json_fields.h"

namespace varve::control {

Json streams_to_json(const std::vector<PoolStream>& streams) {
  Json list = Json::array();
  for (const PoolStream& stream : streams) {
    list.push_back({{"series", static_cast<std::uint32_t>(stream.series)},
                    {"name", text_to_json(stream.name)},
                    {"open", stream.is_open},
                    {"entries", stream.entries},
                    {"locality", stream.locality},
                    {"lookups", stream.lookups},
                    {"hits", stream.hits},
                    {"run_threshold", stream.run_threshold},
                    {"admitted", stream.is_admitted}});
  }
  return list;
}

std::optional<std::vector<PoolStream>> streams_from_json(const Json& list) {
  if (list.elements() == nullptr) return std::nullopt;
  std::vector<PoolStream> streams;
  for (const Json& object : *list.elements()) {
    Fields fields(object);
    PoolStream stream;
    stream.series = static_cast<SeriesId>(fields.u32("series"));
    stream.name = fields.text("name");
    stream.is_open = fields.flag("open");
    stream.entries = fields.count("entries");
    stream.locality = fields.count("locality");
    stream.lookups = fields.count("lookups");
    stream.hits = fields.count("hits");
    stream.run_threshold = fields.u32("run_threshold");
    stream.is_admitted = fields.flag("admitted");
    if (!fields.ok()) return std::nullopt;
    streams.push_back(std::move(stream));
  }
  return streams;
}

}  // namespace varve::control
