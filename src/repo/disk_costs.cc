// SPDX-License-Identifier: Apache-2.0
#include "repo/disk_costs.h"

#include <chrono>

#include "catalog/disk_record.h"
#include "restore/read_costs.h"
#include "store/folder_store.h"

namespace varve::repo {
namespace {

constexpr auto kProbeLimit = std::chrono::milliseconds(400);
// Less data is soon read, whatever a request costs.
constexpr std::uint64_t kProbedBytesMin = 256U << 20;
constexpr std::uint64_t kFileBytesMin = 4U << 20;
constexpr std::size_t kFilesMax = 256;
// Disks are replaced, and grow slow.
constexpr std::int64_t kRecordSecondsMax = 30 * 86400;

}  // namespace

std::uint64_t DiskCosts::disk_bytes() const {
  const auto space = parts_.files->space(parts_.series_directory);
  return space ? space->total_bytes() : 0;
}

void DiskCosts::use(const io::DiskSpeed& speed) const {
  parts_.service->set_costs(restore::costs_of_disk(speed.request_seconds, speed.bytes_per_second));
}

bool DiskCosts::use_record() {
  const auto txn = meta::ReadTxn::begin(*parts_.catalog);
  if (!txn) return false;
  const auto found = catalog::find_disk_record(*txn);
  if (!found || !*found) return false;
  const catalog::DiskRecord& record = **found;
  const std::int64_t age = parts_.clock->now().seconds - record.measured_seconds;
  if (record.disk_bytes != disk_bytes() || age < 0 || age > kRecordSecondsMax) return false;
  use({static_cast<double>(record.request_nanoseconds) * 1e-9,
       static_cast<double>(record.bytes_per_second)});
  return true;
}

void DiskCosts::on_reader() {
  const std::lock_guard lock(mutex_);
  if (is_done_) return;
  is_done_ = true;
  if (use_record() || parts_.read_only) return;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    base::name_this_thread("varve-probe");
    measure(stop);
  });
}

void DiskCosts::on_close() {
  bool is_due = false;
  {
    const std::lock_guard lock(mutex_);
    is_due = !is_done_ && !parts_.read_only;
  }
  stop();
  if (is_due && !use_record()) measure(std::stop_token());
}

void DiskCosts::stop() {
  std::jthread thread;
  {
    const std::lock_guard lock(mutex_);
    is_done_ = true;
    thread = std::move(thread_);
  }
  // The destructor of `thread` requests a stop, and joins.
}

/// Files of the active sets and volumes; none if there is little data altogether.
std::vector<io::ProbedFile> DiskCosts::files_to_probe(const std::stop_token& stop) const {
  std::vector<io::ProbedFile> probed;
  std::uint64_t bytes = 0;
  const auto series = parts_.files->list(parts_.series_directory);
  if (!series) return {};
  for (const std::string& id : *series) {
    store::FolderStore store(*parts_.files, parts_.series_directory + "/" + id);
    for (const auto kind : {store::StoredKind::kSegments, store::StoredKind::kVolumes}) {
      const auto files = store.list(kind);
      if (!files) continue;
      for (const auto& file : *files) {
        if (stop.stop_requested() || probed.size() == kFilesMax) break;
        const auto size = store.size(file);
        if (!size || *size < kFileBytesMin) continue;
        bytes += *size;
        probed.push_back({store.path(file), *size});
      }
    }
  }
  if (bytes < kProbedBytesMin) probed.clear();
  return probed;
}

void DiskCosts::measure(const std::stop_token& stop) {
  const auto probed = files_to_probe(stop);
  if (probed.empty()) return;
  const auto speed = io::probe_disk(*parts_.files, probed, kProbeLimit, stop);
  if (!speed) return;
  use(*speed);
  if (stop.stop_requested()) return;
  catalog::DiskRecord record;
  record.request_nanoseconds = static_cast<std::uint64_t>(speed->request_seconds * 1e9);
  record.bytes_per_second = static_cast<std::uint64_t>(speed->bytes_per_second);
  record.disk_bytes = disk_bytes();
  record.measured_seconds = parts_.clock->now().seconds;
  // On failure, the next process measures again.
  auto txn = meta::WriteTxn::begin(*parts_.catalog);
  if (txn && catalog::put_disk_record(*txn, record)) static_cast<void>(txn->commit());
}

}  // namespace varve::repo
