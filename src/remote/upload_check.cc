// SPDX-License-Identifier: Apache-2.0
#include "remote/upload_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/checksum.h"
#include "catalog/location_table.h"
#include "format/container.h"
#include "store/segment_files.h"

namespace varve::remote {

namespace {

using format::ContainerRecord;

Result<void> verify_container(StoreId store, const ContainerRecord& record,
                              std::span<const std::byte> bytes, const format::ContainerKeys* keys) {
  const auto damaged = [](const char* what) { return Error(ErrorCode::kCorrupt, what); };
  VARVE_TRY_ASSIGN(const auto header,
                   format::decode_container_header(bytes.first(record.header_bytes), keys));
  if (header.store != store || !record.may_be(header)) {
    return damaged("another container is here");
  }
  if (header.seal) {
    VARVE_TRY_ASSIGN(const auto expected, format::container_outer_checksum(bytes));
    const auto rest = bytes.subspan(format::kContainerFixedHeaderBytes);
    return base::checksum64(rest) == expected ? Result<void>() : damaged("its checksum is wrong");
  }
  const auto data = bytes.subspan(header.header_bytes);
  for (const auto& frame : header.frames) {
    if (base::checksum64(data.subspan(frame.offset, frame.stored_bytes)) != frame.checksum) {
      return damaged("a frame does not match its checksum");
    }
  }
  const auto padding = data.subspan(header.data_bytes);
  const bool is_zero = std::ranges::all_of(padding, [](std::byte b) { return b == std::byte{0}; });
  return is_zero ? Result<void>() : damaged("its padding is damaged");
}

}  // namespace

Result<ContainersToUpload> containers_to_upload(const meta::Txn& catalog,
                                                const std::vector<ReplicaFile>& files,
                                                const ObjectMap& known,
                                                const std::set<std::string>& again,
                                                const ContainerKeys* changed) {
  struct Wanted {
    FileContainers* found = nullptr;
    std::uint64_t from = 0;
    std::uint64_t end = 0;
  };
  ContainersToUpload result;
  std::map<std::string, Wanted> wanted;
  for (const auto& file : files) {
    if (file.mark != 0) continue;
    const auto present = known.find(file.path);
    const bool whole = present == known.end() || again.contains(file.path);
    const auto from = whole ? 0 : bytes_of(present->second);
    if (from >= file.bytes) continue;
    wanted[file.path] = {&result.files[file.path], from, file.bytes};
  }
  if (wanted.empty()) return result;
  const auto take = [&](StoreId store, const std::string& folder, const ContainerRecord& record) {
    ++result.records;
    const auto file = wanted.find(folder + "/" + store::segment_path(record.segment));
    if (file == wanted.end()) return;
    file->second.found->store = store;
    const bool is_new = record.end() > file->second.from && record.end() <= file->second.end;
    if (is_new) file->second.found->containers.push_back(record);
  };
  VARVE_TRY_ASSIGN(const auto folders, store_folders(catalog));
  for (const auto& one : folders) {
    if (changed != nullptr) break;
    const auto& folder = one.second;
    const auto first = wanted.lower_bound(folder + "/");
    if (first == wanted.end() || !first->first.starts_with(folder + "/")) continue;
    VARVE_TRY(catalog::for_each_container(catalog, one.first,
                                          [&](const ContainerRecord& record) -> Result<bool> {
                                            take(one.first, folder, record);
                                            return true;
                                          }));
  }
  const ContainerKeys none;
  for (const auto& [store, number] : changed != nullptr ? *changed : none) {
    const auto folder = folders.find(store);
    if (folder == folders.end()) continue;
    VARVE_TRY_ASSIGN(const auto record, catalog::find_container(catalog, store, number));
    if (record) take(store, folder->second, *record);
  }
  for (auto& [path, file] : result.files) {
    std::ranges::sort(file.containers, {}, &ContainerRecord::offset);
  }
  return result;
}

std::uint64_t extent_end(const FileContainers* file, std::uint64_t offset, std::uint64_t file_bytes,
                         std::uint64_t bytes_max) {
  const auto limit = std::min(file_bytes, offset + bytes_max);
  if (file == nullptr) return limit;
  auto end = limit;
  std::uint64_t before = offset;  // End of the last container that fits.
  for (const auto& record : file->containers) {
    if (record.end() <= offset) continue;
    if (record.end() <= limit) {
      before = record.end();
      continue;
    }
    if (record.offset >= limit) break;
    // The limit would cut this container.
    end = before > offset ? before : record.offset > offset ? record.offset : record.end();
    break;
  }
  return std::min(end, file_bytes);
}

std::optional<std::string> fault_in_extent(const FileContainers& file, std::uint64_t offset,
                                           std::span<const std::byte> bytes,
                                           const format::ContainerKeys* keys) {
  const auto end = offset + bytes.size();
  for (const auto& record : file.containers) {
    if (record.end() <= offset || record.offset >= end) continue;
    const auto fault = [&](const std::string& what) {
      return fmt::format("container {} at offset {}: {}", record.number, record.offset, what);
    };
    if (record.offset < offset || record.end() > end) return fault("it was uploaded in two parts");
    const auto its = bytes.subspan(record.offset - offset, record.end() - record.offset);
    const auto verified = verify_container(file.store, record, its, keys);
    if (!verified) return fault(verified.error().message());
  }
  return std::nullopt;
}

}  // namespace varve::remote
