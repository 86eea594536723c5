// SPDX-License-Identifier: Apache-2.0
#include "control/store_json.h"

#include <tuple>

#include "control/field_lists.h"

namespace varve::control {
namespace {

// Each list lacks some fields of the other: a directory and a stream have different choices.
constexpr std::tuple kOfDirectory{
    Field{"version", &StoreTask::version},
    Field{"directory", &StoreTask::directory},
    Field{"identity", &StoreTask::identity},
    Field{"mounts", &StoreTask::mount_namespace},
    Field{"user", &StoreTask::user},
    Field{"without_entries", &StoreTask::without_entries},
    Field{"excludes", &StoreTask::excludes, Presence::kMayLack},
    Field{"only", &StoreTask::only},
    Field{"without_caches", &StoreTask::without_caches},
    Field{"one_file_system", &StoreTask::one_file_system},
    Field{"seals", &StoreTask::seals},
    Field{"read_all", &StoreTask::read_all},
    Field{"guard", &StoreTask::guard, Presence::kUnlessDefault},
    Field{"time", &StoreTask::time},
};
constexpr std::tuple kOfStream{
    Field{"version", &StoreTask::version},
    Field{"seals", &StoreTask::seals},
    Field{"guard", &StoreTask::guard, Presence::kUnlessDefault},
    Field{"time", &StoreTask::time},
};
constexpr std::tuple kOfSource{Field{"file", &StreamSource::file}};

}  // namespace

bool is_store(const Request& request) {
  return request.operation == Operation::kStore || request.operation == Operation::kStoreStream;
}

Json store_to_json(const StoreTask& task) {
  Json object = Json::object();
  if (task.stream) {
    put_listed(kOfStream, task, object);
    put_listed(kOfSource, *task.stream, object);
  } else {
    put_listed(kOfDirectory, task, object);
  }
  return object;
}

std::optional<StoreTask> store_from_json(const Json& json, bool is_stream) {
  Fields fields(json);
  StoreTask task;
  if (is_stream) {
    take_listed(kOfStream, fields, task);
    take_listed(kOfSource, fields, task.stream.emplace());
  } else {
    take_listed(kOfDirectory, fields, task);
  }
  if (!fields.ok()) return std::nullopt;
  return task;
}

}  // namespace varve::control
