// SPDX-License-Identifier: Apache-2.0
#include "control/store_json.h"

#include <utility>

#include "control/json_fields.h"
#include "control/version_json.h"

namespace varve::control {
namespace {

Json identity_of(const DirectoryIdentity& directory) {
  return {{"device", directory.device}, {"inode", directory.inode}};
}

std::optional<DirectoryIdentity> directory_from(const Json& object) {
  Fields fields(object);
  const DirectoryIdentity directory{fields.count("device"), fields.count("inode")};
  if (!fields.ok()) return std::nullopt;
  return directory;
}

Json texts_to_json(const std::vector<std::string>& texts) {
  Json list = Json::array();
  // text_to_json() returns a string or an array, so an object wraps each text.
  for (const std::string& text : texts) list.push_back({{"text", text_to_json(text)}});
  return list;
}

std::optional<std::vector<std::string>> texts_from(const Json& list) {
  if (list.elements() == nullptr) return std::nullopt;
  std::vector<std::string> texts;
  for (const Json& one : *list.elements()) {
    Fields fields(one);
    texts.push_back(fields.text("text"));
    if (!fields.ok()) return std::nullopt;
  }
  return texts;
}

/// Reads an optional list of texts. Returns false if the member is no list of texts.
bool take_texts(const Json& object, const char* name, std::vector<std::string>& texts) {
  const Json* const list = object.find(name);
  if (list == nullptr) return true;
  auto found = texts_from(*list);
  if (!found) return false;
  texts = *std::move(found);
  return true;
}

/// Reads the optional members of both kinds of stores. Returns false if a member is not valid.
/// Older clients send no `guard`.
bool take_choices(const Json& object, Fields& fields, StoreTask& task) {
  if (fields.has("guard")) task.guard = fields.flag("guard");
  if (object.find("time") != nullptr) {
    task.time = time_from_json(object, "time");
    if (!task.time) return false;
  }
  return fields.ok();
}

void put_choices(const StoreTask& task, Json& object) {
  if (task.guard) object["guard"] = true;
  if (task.time) object["time"] = time_to_json(*task.time);
}

std::optional<StoreTask> stream_from_json(const Json& object) {
  Fields fields(object);
  StoreTask task;
  task.version = fields.text("version");
  task.seals = fields.flag("seals");
  task.stream.emplace().file = fields.text("file");
  if (!take_choices(object, fields, task)) return std::nullopt;
  return task;
}

std::optional<StoreTask> store_from_json(const Json& object) {
  Fields fields(object);
  StoreTask task;
  task.version = fields.text("version");
  task.directory = fields.text("directory");
  task.mount_namespace = fields.count("mounts");
  task.user = fields.u32("user");
  task.without_caches = fields.flag("without_caches");
  task.one_file_system = fields.flag("one_file_system");
  task.seals = fields.flag("seals");
  task.read_all = fields.flag("read_all");
  if (!fields.ok()) return std::nullopt;
  const Json* const identity = object.find("identity");
  const auto directory = identity != nullptr ? directory_from(*identity) : std::nullopt;
  const Json* const without = object.find("without_entries");
  if (!directory || without == nullptr || without->elements() == nullptr) return std::nullopt;
  task.identity = *directory;
  for (const Json& one : *without->elements()) {
    const auto entry = directory_from(one);
    if (!entry) return std::nullopt;
    task.without_entries.push_back(*entry);
  }
  if (!take_texts(object, "excludes", task.excludes)) return std::nullopt;
  if (object.find("only") != nullptr && !take_texts(object, "only", task.only.emplace())) {
    return std::nullopt;
  }
  if (!take_choices(object, fields, task)) return std::nullopt;
  return task;
}

Json stored_to_json(const StoreTaskReply& stored) {
  return {{"version", version_to_json(stored.version)},
          {"entries", stored.report.entries},
          {"unchanged", stored.report.unchanged},
          {"removed", stored.report.removed},
          {"bytes", stored.report.bytes},
          {"problems", texts_to_json(stored.report.problems)},
          {"left_out", texts_to_json(stored.left_out)},
          {"other_devices", texts_to_json(stored.other_devices)}};
}

std::optional<StoreTaskReply> stored_from_json(const Json& object) {
  Fields fields(object);
  StoreTaskReply stored;
  stored.report.entries = fields.count("entries");
  stored.report.unchanged = fields.count("unchanged");
  stored.report.removed = fields.count("removed");
  stored.report.bytes = fields.count("bytes");
  if (!fields.ok() || object.find("version") == nullptr) return std::nullopt;
  auto version = version_from_json(*object.find("version"));
  if (!version || !take_texts(object, "problems", stored.report.problems) ||
      !take_texts(object, "left_out", stored.left_out) ||
      !take_texts(object, "other_devices", stored.other_devices)) {
    return std::nullopt;
  }
  stored.version = *std::move(version);
  return stored;
}

Json transfer_to_json(const TransferProgress& done) {
  return {
      {"files", done.files_done}, {"bytes", done.bytes_done}, {"bytes_total", done.bytes_total}};
}

std::optional<TransferProgress> transfer_from_json(const Json& object) {
  Fields fields(object);
  const TransferProgress done{fields.count("files"), fields.count("bytes"),
                              fields.count("bytes_total")};
  if (!fields.ok()) return std::nullopt;
  return done;
}

Json stream_to_json(const StoreTask& task) {
  Json object = {{"version", text_to_json(task.version)},
                 {"file", text_to_json(task.stream->file)},
                 {"seals", task.seals}};
  put_choices(task, object);
  return object;
}

}  // namespace

bool is_store(const Request& request) {
  return request.operation == Operation::kStore || request.operation == Operation::kStoreStream;
}

Json store_to_json(const StoreTask& task) {
  if (task.stream) return stream_to_json(task);
  Json object = {{"version", text_to_json(task.version)},
                 {"directory", text_to_json(task.directory)},
                 {"identity", identity_of(task.identity)},
                 {"mounts", task.mount_namespace},
                 {"user", task.user},
                 {"excludes", texts_to_json(task.excludes)},
                 {"without_caches", task.without_caches},
                 {"one_file_system", task.one_file_system},
                 {"seals", task.seals},
                 {"read_all", task.read_all}};
  object["without_entries"] = Json::array();
  for (const DirectoryIdentity& one : task.without_entries) {
    object["without_entries"].push_back(identity_of(one));
  }
  if (task.only) object["only"] = texts_to_json(*task.only);
  put_choices(task, object);
  return object;
}

bool take_store(const Json& object, Request& request) {
  const Json* const found = object.find("store");
  if (found == nullptr) return false;
  auto task = request.operation == Operation::kStoreStream ? stream_from_json(*found)
                                                           : store_from_json(*found);
  if (!task) return false;
  request.store = *std::move(task);
  return true;
}

void put_stored(const Reply& reply, Json& object) {
  if (reply.transfer) object["transfer"] = transfer_to_json(*reply.transfer);
  if (reply.all_read) object["all_read"] = true;
  if (reply.stored) object["stored"] = stored_to_json(*reply.stored);
}

bool take_stored(const Json& object, Reply& reply) {
  if (object.find("transfer") != nullptr) {
    reply.transfer = transfer_from_json(*object.find("transfer"));
    if (!reply.transfer) return false;
  }
  if (object.find("all_read") != nullptr) {
    Fields fields(object);
    reply.all_read = fields.flag("all_read");
    if (!fields.ok()) return false;
  }
  if (object.find("stored") != nullptr) {
    reply.stored = stored_from_json(*object.find("stored"));
    if (!reply.stored) return false;
  }
  return true;
}

}  // namespace varve::control
