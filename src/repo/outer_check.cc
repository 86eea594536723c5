// SPDX-License-Identifier: Apache-2.0
// Checks a repository without the keys: all files with checksums in the clear.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/data_codecs.h"
#include "ingest/parameters.h"
#include "io/watched_file_system.h"
#include "maintain/missing_files.h"
#include "maintain/outer_checker.h"
#include "maintain/sealed_check.h"
#include "meta/open_catalog.h"
#include "meta/page_check.h"
#include "meta/schema.h"
#include "meta/value_check.h"
#include "remote/whole_folder.h"
#include "repo/settled_state.h"
#include "repo/superblock_file.h"
#include "store/repository_names.h"
#include "store/repository_paths.h"
#include "store/superblock_text.h"
#include "varve/check.h"
#include "varve/repository.h"

namespace varve {

namespace {

class OuterCheck {
 public:
  OuterCheck(const remote::WholeFolder& folder, const std::string& path,
             const OuterCheckOptions& options, const CheckObserver& progress)
      : files_(*folder.files),
        open_store_(folder.open_store),
        paths_(path),
        options_(options),
        progress_(progress) {}

  /// Runs the check. Errors: a lack of descriptors or memory in the process, because the check then
  /// has no verdict; errors of the disk.
  Result<CheckReport> run() {
    const auto checked = check_all();
    VARVE_TRY(files_.conclusive());
    if (!checked) return checked.error();
    return std::move(report_);
  }

 private:
  Result<void> check_all() {
    VARVE_TRY_ASSIGN(const auto text, store::read_superblock_text(files_, paths_.root()));
    const auto superblock = ingest::read_superblock(text);
    if (superblock) parameters_ = superblock->parameters;
    // A damaged superblock does not tell, but only an encrypted repository has a copy.
    VARVE_TRY_ASSIGN(const bool has_copy, files_.exists(paths_.keys()));
    const bool encrypted = has_copy || (superblock && superblock->encryption);
    maintain::SealedFiles sealed;
    if (encrypted) sealed = maintain::list_sealed_files(files_, paths_.root());
    const auto catalog_bytes = files_.tree_bytes(paths_.catalog_data());
    bytes_after_ = sealed.bytes + (catalog_bytes ? *catalog_bytes : 0);
    maintain::OuterChecker containers(files_, open_store_, paths_.root(), options_,
                                      [this](CheckProgress done) {
                                        done.bytes_total += bytes_after_;
                                        bytes_total_ = done.bytes_total;
                                        if (progress_) progress_(done);
                                      });
    VARVE_TRY_ASSIGN(report_, containers.run());
    if (const auto fault =
            superblock ? repo::fault_of_copy(files_, paths_.root(), *superblock) : std::nullopt) {
      damage(paths_.keys(), *fault);
    }
    if (superblock && !superblock->encryption && has_copy) {
      damage(paths_.superblock(),
             "it is that of a plain repository, but only an encrypted one has varve.keys; put the "
             "right file back: varve.keys is a copy of it");
    }
    if (report_.finished) VARVE_TRY(check_catalog(encrypted));
    return report_.finished ? check_sealed(sealed) : Result<void>();
  }

  void damage(std::string where, std::string what) {
    report_.damages.push_back({std::move(where), std::move(what), {}});
  }
  // Counts read bytes. Returns whether the check goes on.
  bool have_read(std::uint64_t bytes) {
    report_.bytes_read += bytes;
    if (progress_) {
      CheckProgress done;
      done.bytes_done = report_.bytes_read;
      done.bytes_total = std::max(bytes_total_, report_.bytes_read);
      progress_(done);
    }
    if (options_.stop.stop_requested()) report_.finished = false;
    return report_.finished;
  }

  Result<void> check_catalog(bool encrypted) {
    VARVE_TRY_ASSIGN(const bool present, files_.exists(paths_.catalog_data()));
    if (!present) {
      damage(paths_.catalog(), "it is missing: run `varve repair`, which rebuilds it");
      return {};
    }
    std::vector<const char*> tables;
    if (encrypted) tables.push_back(meta::kSealTable);
    tables.insert(tables.end(), meta::catalog::kTables.begin(), meta::catalog::kTables.end());
    meta::EnvOptions options;
    options.tables = tables;
    options.optional_tables = meta::catalog::kTablesOptional;
    options.read_only = true;
    options.must_exist = true;
    options.without_keys = true;
    options.writer_lock = paths_.lock();
    const auto catalog = meta::open_catalog(files_, paths_.catalog(), options, true);
    if (!catalog && catalog.error().code() == ErrorCode::kLocked) {
      report_.notes.push_back(
          {paths_.catalog(), "it was not checked: " + catalog.error().message()});
      return {};
    }
    if (!catalog) {
      files_.note(catalog.error());
      damage(paths_.catalog(), catalog.error().message());
      return {};
    }
    // kBusy: a writer commits too often for check_pages(). The values are checked in any case.
    const auto pages = meta::check_pages(*catalog, meta::catalog::kTables);
    if (!pages && pages.error().code() != ErrorCode::kBusy) {
      damage(paths_.catalog(), pages.error().message());
      return {};  // LMDB might not end a walk over damaged pages.
    }
    for (meta::TableIndex table = 0; report_.finished && table < tables.size(); ++table) {
      VARVE_TRY(check_values(*catalog, table, tables[table]));
    }
    return report_.finished ? check_presence(*catalog, encrypted) : Result<void>();
  }

  // The keys of the records are in the clear, and name files.
  Result<void> check_presence(const meta::Env& catalog, bool encrypted) {
    VARVE_TRY_ASSIGN(const auto missing,
                     maintain::find_missing_files(files_, open_store_, paths_, catalog, encrypted));
    for (const auto& path : missing) damage(path, "it is missing, but the catalog names it");
    return encrypted ? Result<void>() : check_age(catalog);
  }

  // Without the keys, neither labels nor values of the catalog tell their state.
  Result<void> check_age(const meta::Env& catalog) {
    if (!parameters_) return {};  // The superblock is damaged.
    const format::DataCodecs codecs(*parameters_);
    const auto fits = repo::compare_catalog(files_, codecs, open_store_, paths_.root(), catalog,
                                            [] { return false; });
    if (fits) return {};
    if (fits.error().code() != ErrorCode::kCorrupt) return fits.error();
    // First: newer files then seem unknown, and removed files seem lost.
    report_.damages.insert(report_.damages.begin(), {paths_.catalog(), fits.error().message(), {}});
    return {};
  }

  // Verifies the checksums of a table's values.
  Result<void> check_values(const meta::Env& catalog, meta::TableIndex table, const char* name) {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
    VARVE_TRY_ASSIGN(const auto faults,
                     meta::find_value_faults(
                         txn, table, [this](std::uint64_t bytes) { return have_read(bytes); }));
    if (faults.values == 0) return {};
    damage(paths_.catalog(),
           fmt::format("{} values of the table `{}`: {}", faults.values, name, faults.first));
    return {};
  }

  Result<void> check_sealed(const maintain::SealedFiles& list) {
    std::uint64_t before = 0;
    maintain::SealedCheckOptions options;
    options.stop = options_.stop;
    options.progress = [&](std::uint64_t bytes) {
      static_cast<void>(have_read(bytes - std::exchange(before, bytes)));
    };
    VARVE_TRY_ASSIGN(const auto sealed, maintain::check_sealed_files(files_, list, options));
    report_.finished = report_.finished && sealed.finished;
    for (const auto& one : sealed.damages) damage(one.path, one.what);
    for (const auto& file : sealed.incomplete) {
      damage(file,
             "its last bytes are not complete; if a crash interrupted the last writer, open the "
             "repository once, then check again");
    }
    return {};
  }

  io::WatchedFileSystem files_;
  const store::StoreOpener& open_store_;
  const store::RepositoryPaths paths_;
  const OuterCheckOptions& options_;
  const CheckObserver& progress_;
  std::optional<RepositoryParameters> parameters_;  // Set unless the superblock is damaged.
  std::uint64_t bytes_after_ = 0;  // Bytes of the files checked after the containers.
  std::uint64_t bytes_total_ = 0;
  CheckReport report_;
};

}  // namespace

Result<CheckReport> check_outer(const std::string& path, const OuterCheckOptions& options,
                                const std::function<void(const CheckProgress&)>& progress) {
  OpenOptions how;
  how.trust_owner = options.trust_owner;
  how.read_only = true;
  how.store.access = options.store_access;
  VARVE_TRY_ASSIGN(const auto folder, remote::open_whole_folder(path, how));
  VARVE_TRY(store::check_folders(*folder.files, path));
  return OuterCheck(folder, path, options, progress).run();
}

}  // namespace varve
