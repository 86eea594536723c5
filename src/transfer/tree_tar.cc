// SPDX-License-Identifier: Apache-2.0
// write_tar(): writes a sealed tree as an archive, in a single pass and in tree order.
#include <sys/stat.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "transfer/entry_walk.h"
#include "transfer/file_restorer.h"
#include "transfer/problem_list.h"
#include "transfer/sparse_regions.h"
#include "transfer/tar_writer.h"
#include "transfer/transfer_error.h"
#include "varve/restore.h"

namespace varve {
namespace transfer {
namespace {

/// Writes the data of a file to the archive: exactly the bytes announced by the headers. Replaces
/// unreadable bytes by zeros.
class TarSink final : public FileSink {
 public:
  explicit TarSink(TarWriter& tar) : tar_(tar) {}

  /// Begins a file. The archive stores `regions` of the file, in order and without gaps.
  void start(std::vector<ByteRange> regions) {
    regions_ = std::move(regions);
    region_ = 0;
    at_ = regions_.empty() ? 0 : regions_.front().begin;
  }
  [[nodiscard]] Result<void> put(ByteRange range, SharedBytes data) override {
    VARVE_TRY(fill_to(range.begin));
    while (region_ < regions_.size() && at_ < range.end) {
      const std::uint64_t end = std::min(range.end, regions_[region_].end);
      if (end > at_) VARVE_TRY(tar_.write(data.bytes.subspan(at_ - range.begin, end - at_)));
      advance_to(end);
    }
    return {};
  }
  [[nodiscard]] Result<void> skip(ByteRange range) override { return fill_to(range.end); }
  /// Writes zeros for the unwritten regions before `offset`.
  [[nodiscard]] Result<void> fill_to(std::uint64_t offset) {
    while (region_ < regions_.size() && at_ < offset) {
      const std::uint64_t end = std::min(offset, regions_[region_].end);
      if (end > at_) VARVE_TRY(tar_.write_zeros(end - at_));
      advance_to(end);
    }
    return {};
  }

 private:
  // Moves to the byte at `offset`, or to the start of the next region.
  void advance_to(std::uint64_t offset) {
    at_ = std::max(at_, offset);
    while (region_ < regions_.size() && at_ >= regions_[region_].end) {
      if (++region_ < regions_.size()) at_ = std::max(at_, regions_[region_].begin);
    }
  }

  TarWriter& tar_;
  std::vector<ByteRange> regions_;  // Ascending and separate.
  std::size_t region_ = 0;
  std::uint64_t at_ = 0;
};

/// Returns the regions of a file to store in an archive; nullopt if the whole file is data, or the
/// reader's answers are inconsistent. GNU tar reads each region from the next block of the archive,
/// and has no field for an end inside a block. Each region therefore begins and ends at a block of
/// the file; only the last region may end with the file instead.
std::optional<std::vector<ByteRange>> data_regions(FileReader& file) {
  SparseRegions regions(file.size());
  for (std::uint64_t at = 0; at < file.size();) {
    const auto data = file.seek_data(at);
    if (!data && data.error().code() == ErrorCode::kPastEnd) break;
    if (!data) return std::nullopt;
    const auto hole = file.seek_hole(*data);
    if (!hole || *hole <= *data || *data < at) return std::nullopt;
    regions.add({*data, std::min(*hole, file.size())});
    at = *hole;
  }
  return std::move(regions).take();
}

class TarExport {
 public:
  TarExport(VersionReader& version, int fd, const std::vector<std::string>& paths,
            const std::function<bool(const TransferProgress&)>& progress)
      : version_(version),
        is_whole_(paths.empty()),
        progress_(progress),
        tar_(fd),
        sink_(tar_),
        data_(true,
              [this](std::uint64_t bytes) {
                done_.bytes_done += bytes;
                return !progress_ || progress_(done_);
              }),
        walk_(version, paths, problems_) {}

  Result<TransferReport> run();

 private:
  [[nodiscard]] Result<void> add_and_count(const SealedEntry& entry);
  [[nodiscard]] Result<void> add(const SealedEntry& entry);
  [[nodiscard]] Result<void> add_file(TarEntry& tar_entry, const SealedEntry& entry);

  VersionReader& version_;
  const bool is_whole_;
  const std::function<bool(const TransferProgress&)>& progress_;
  TarWriter tar_;
  TarSink sink_;
  FileRestorer data_;
  ProblemList problems_;
  TransferProgress done_;
  TransferReport report_;
  EntryWalk walk_;
  std::string& path_ = walk_.path();
  struct FirstName {
    std::string path;
    std::uint64_t names_left = 0;
  };
  std::unordered_map<std::uint64_t, FirstName> first_names_;
};

Result<TransferReport> TarExport::run() {
  VARVE_TRY_ASSIGN(const SealedEntry top, walk_.begin());
  if (is_whole_) done_.bytes_total = version_.info().logical_bytes;
  if (S_ISDIR(top.attributes.mode)) {
    path_.assign(1, '.');
    VARVE_TRY(add(top));
    path_.clear();
    report_.entries = 0;  // The entry "." counts for no report.
  }
  const auto add_one = [this](const SealedEntry& entry) { return add_and_count(entry); };
  VARVE_TRY(walk_.run(add_one, [this]() -> Result<void> {
    problems_.add(path_, "left out: directories nested too deeply or in a circle");
    return {};
  }));
  VARVE_TRY(tar_.finish());
  report_.bytes = done_.bytes_done;
  report_.problems = problems_.take();
  return std::move(report_);
}

Result<void> TarExport::add_and_count(const SealedEntry& entry) {
  VARVE_TRY(add(entry));
  ++done_.files_done;
  if (progress_ && !progress_(done_)) return Error(ErrorCode::kInterrupted, "interrupted");
  return {};
}

/// Adds an entry. Returns an error only if the archive cannot continue.
Result<void> TarExport::add(const SealedEntry& entry) {
  TarEntry out;
  out.path = path_;
  out.attributes = entry.attributes;
  const mode_t type = entry.attributes.mode & S_IFMT;
  if (type == S_IFSOCK || (type != S_IFREG && type != S_IFDIR && type != S_IFLNK &&
                           type != S_IFBLK && type != S_IFCHR && type != S_IFIFO)) {
    problems_.add(path_,
                  type == S_IFSOCK ? std::string(kSocketLeftOut) : "left out: unknown file type");
    return {};
  }
  if (type == S_IFDIR) out.path += '/';
  const auto found = first_names_.find(entry.link_group);
  if (entry.link_group != 0 && found != first_names_.end()) {
    out.is_hard_link = true;
    out.target = found->second.path;
    if (--found->second.names_left == 0) first_names_.erase(found);
    VARVE_TRY(tar_.begin(out));
    ++report_.entries;
    return {};
  }
  if (auto xattrs = version_.xattrs(entry.rank)) {
    out.xattrs = std::move(*xattrs);
  } else {
    problems_.add(path_, "extended attributes: " + xattrs.error().message());
  }
  if (type == S_IFREG) return add_file(out, entry);
  if (type == S_IFLNK) {
    auto target = version_.read_link(entry.rank);
    if (!target || target->empty()) {
      problems_.add(path_,
                    target ? "left out: a symlink without a target" : target.error().message());
      return {};
    }
    out.target = std::move(*target);
  }
  VARVE_TRY(tar_.begin(out));
  if (entry.link_group != 0 && entry.attributes.nlink > 1) {
    first_names_[entry.link_group] = FirstName{path_, entry.attributes.nlink - 1ULL};
  }
  ++report_.entries;
  return {};
}

Result<void> TarExport::add_file(TarEntry& out, const SealedEntry& entry) {
  auto source = version_.open(entry.rank);
  if (!source) {
    if (ends_transfer(source.error())) return std::move(source).error().with_context(path_);
    problems_.add(path_, source.error().message());
    return {};
  }
  out.attributes.size = (*source)->size();
  out.data = data_regions(**source);
  VARVE_TRY(tar_.begin(out));
  sink_.start(out.data ? std::move(*out.data) : std::vector<ByteRange>{{0, out.attributes.size}});
  VARVE_TRY_ASSIGN(const UnreadableData lost, data_.copy(**source, sink_));
  VARVE_TRY(sink_.fill_to(out.attributes.size));
  VARVE_TRY(tar_.end());
  if (lost.ranges > 0)
    problems_.add(path_, damage_text(lost) + " replaced by zeros: " + lost.reason);
  if (entry.link_group != 0 && entry.attributes.nlink > 1) {
    first_names_[entry.link_group] = FirstName{path_, entry.attributes.nlink - 1ULL};
  }
  ++report_.entries;
  return {};
}

}  // namespace
}  // namespace transfer

Result<TransferReport> write_tar(VersionReader& version, int fd,
                                 const std::vector<std::string>& paths,
                                 const std::function<bool(const TransferProgress&)>& progress) {
  return transfer::TarExport(version, fd, paths, progress).run();
}

}  // namespace varve
