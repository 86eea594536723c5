// SPDX-License-Identifier: Apache-2.0
#include "remote/head_objects.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/coding.h"
#include "base/log.h"
#include "meta/stored_records.h"
#include "remote/catalog_reads.h"
#include "remote/changes.h"

namespace varve::remote {

Result<void> apply_to_catalog(const meta::Env& copy, const std::vector<std::string>& parts,
                              bool replaces) {
  VARVE_TRY_ASSIGN(auto writer, meta::StoredWriter::begin(copy));
  const auto& tables = catalog_tables();
  if (replaces) {
    for (const auto* const table : tables) VARVE_TRY(writer.clear(table));
  }
  for (const auto& part : parts) {
    VARVE_TRY(for_each_change(part, [&](const Change& change) -> Result<void> {
      if (change.table == kObjectsTable) return {};
      const auto* const table = tables[change.table];
      if (!change.value) return writer.erase(table, change.key);
      return writer.put(table, {change.key, *change.value});
    }));
  }
  return writer.commit();
}

Result<std::string> read_catalog_object(bucket::Bucket& bucket, const CatalogObject& object) {
  if (object.bytes > kCatalogObjectBytesMax) {
    return Error(ErrorCode::kCorrupt, object.name + " is longer than any catalog object");
  }
  VARVE_TRY_ASSIGN(const auto bytes, bucket.get_all(object.name, object.bytes));
  auto text = std::string(base::as_text(bytes));
  if (text.size() == object.bytes && digest_of(text) == object.digest) return text;
  return Error(ErrorCode::kCorrupt, fmt::format("{}/{} has other bytes than its head says",
                                                bucket.describe(), object.name));
}

Error with_advice(const Error& error) {
  if (error.code() != ErrorCode::kCorrupt) return error;
  return Error(error).with_more(
      "; `varve repair` in the folder that wrote it puts it back; if none did, remove this object");
}

Result<Head> decode_commit(const CommitLog& log, const Commit& commit) {
  auto head = decode_head(commit.text);
  if (!head) {
    return with_advice(std::move(head).error().with_context(log.describe(commit.number)));
  }
  if (head_name(head->repository_id, head->number) != log.name(commit.number)) {
    return with_advice({ErrorCode::kCorrupt, log.describe(commit.number) + " is another head"});
  }
  return head;
}

namespace {

// Checks the bytes of a head.
Result<std::string> checked_head(const CommitLog& log, std::uint64_t number,
                                 Result<std::string> text) {
  if (!text) return with_advice(text.error());
  const Commit commit{number, *std::move(text)};
  VARVE_TRY(decode_commit(log, commit));
  return commit.text;
}

}  // namespace

Result<std::string> read_head(CommitLog& log, std::uint64_t number) {
  auto head = checked_head(log, number, log.read(number));
  if (head || !is_loss(head.error()) || head.error().code() == ErrorCode::kNotFound) return head;
  auto copy = read_head_copy(log, number);
  if (!copy) return is_loss(copy.error()) ? head : copy;
  base::log(base::LogLevel::kWarning, head.error().message() + "; its copy was read");
  return copy;
}

Result<std::string> read_head_copy(CommitLog& log, std::uint64_t number) {
  return checked_head(log, number, log.read_copy(number));
}

std::size_t common_front(const std::vector<CatalogObject>& a, const std::vector<CatalogObject>& b) {
  const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(differ.first - a.begin());
}

}  // namespace varve::remote
