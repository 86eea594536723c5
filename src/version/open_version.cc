// SPDX-License-Identifier: Apache-2.0
#include "version/open_version.h"

#include <mutex>
#include <utility>

#include "version/open_references.h"
#include "version/open_version_file.h"

namespace varve::version {

OpenVersion::OpenVersion(const OpenVersionParts& parts, const VersionInfo& info)
    : state_(parts, info),
      streams_(state_),
      staging_(state_),
      contents_(state_, streams_, staging_, removed_),
      ingest_(state_, streams_, staging_, contents_),
      clones_(state_, streams_, ingest_),
      checkpointer_(state_, streams_, staging_, contents_, ingest_),
      names_(state_, contents_, clones_, checkpointer_, removed_),
      attributes_(state_, contents_, checkpointer_) {
  if (parts.space != nullptr) parts.space->add(this);
  counted_ = parts.space != nullptr;
}

OpenVersion::~OpenVersion() { stop(); }

// Leaves the space guard in stop(), not in the destructor: a handle may keep the version alive
// longer than the repository.
void OpenVersion::stop() {
  checkpointer_.stop();
  if (counted_.exchange(false)) state_.parts.space->remove(this);
}

Result<std::shared_ptr<OpenVersion>> OpenVersion::open(const OpenVersionParts& parts,
                                                       const VersionInfo& info,
                                                       const NewFile& root) {
  std::shared_ptr<OpenVersion> version(new OpenVersion(parts, info));
  VARVE_TRY_ASSIGN(const bool present, parts.files->exists(parts.staging_directory + "/overlay"));
  if (present) VARVE_TRY(version->state_.open_overlay());
  VARVE_TRY(version->checkpointer_.recover(root));
  return version;
}

VersionInfo OpenVersion::info() const {
  const std::lock_guard lock(state_.mutex);
  return state_.info;
}

void OpenVersion::rename_to(std::string name) {
  const std::lock_guard lock(state_.mutex);
  state_.info.name = std::move(name);
}

Result<bool> OpenVersion::is_empty() {
  const std::lock_guard lock(state_.mutex);
  VARVE_TRY_ASSIGN(const auto* root, state_.tree.get(kRootIno));
  return root->directory.children == 0;
}

// Changes since the last checkpoint count as made now.
Timestamp OpenVersion::changed_at() const {
  const std::lock_guard lock(state_.mutex);
  return state_.tree.changed() != 0 ? state_.parts.clock->now()
                                    : state_.tree.counters().changed_at();
}

std::uint64_t OpenVersion::entries() const {
  const std::lock_guard lock(state_.mutex);
  return state_.tree.counters().entries();
}

Result<base::IdRuns> OpenVersion::references(const std::function<void()>& retire) {
  return collect_references(state_, clones_, retire);
}

Result<std::unique_ptr<OpenFile>> OpenVersion::open(Ino ino, bool for_writing) {
  const std::lock_guard lock(state_.mutex);
  if (for_writing) VARVE_TRY(checkpointer_.check_writable());
  VARVE_TRY(contents_.add_handle(ino, for_writing));
  return std::unique_ptr<OpenFile>(std::make_unique<OpenVersionFile>(
      shared_from_this(),
      OpenVersionFile::Parts{state_, contents_, ingest_, clones_, checkpointer_}, ino,
      for_writing));
}

}  // namespace varve::version
