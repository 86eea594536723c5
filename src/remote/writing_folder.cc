// SPDX-License-Identifier: Apache-2.0
#include "remote/writing_folder.h"

#include <utility>

#include "remote/writer_store.h"

namespace varve::remote {

Result<std::unique_ptr<WritingFolder>> WritingFolder::open(FolderToOpen folder) {
  std::unique_ptr<LocalNotes> notes;
  if (!folder.read_only) {
    VARVE_TRY_ASSIGN(notes, LocalNotes::load(*folder.files, folder.path));
  }
  std::unique_ptr<WritingFolder> opened(new WritingFolder(std::move(folder), std::move(notes)));
  VARVE_TRY(opened->local_.load());
  return opened;
}

WritingFolder::WritingFolder(FolderToOpen folder, std::unique_ptr<LocalNotes> notes)
    : BucketFolder(std::move(folder)),
      notes_(std::move(notes)),
      local_(files(), data(), notes_.get(), path(), [this] { return state().objects(); }),
      evicted_(local_, state(), config(), path()) {
  local_.on_begin([this] {
    if (auto* const running = running_.load()) running->begun();
  });
}

store::StoreOpener WritingFolder::opener() {
  return [this](io::FileSystem& from, const std::string& directory) {
    return make_writer_store(from, local_, path(), directory);
  };
}

void WritingFolder::keep_snapshot(const meta::Env& catalog) {
  std::call_once(snapshot_kept_, [&] { kept_.begin(catalog); });
}

void WritingFolder::before_write(const meta::Env& catalog) {
  keep_snapshot(catalog);
  kept_.before_write(catalog);
}

Result<void> WritingFolder::begin_writing(WrittenRepository repository) {
  keep_snapshot(*repository.catalog);
  VARVE_TRY_ASSIGN(replication_,
                   BucketReplication::open(*this, {&local_, notes_.get(), &kept_}, repository));
  running_ = replication_.get();
  return {};
}

Replication& WritingFolder::replication() {
  auto* const running = running_.load();
  if (running == nullptr) return none_;
  return *running;
}

void WritingFolder::end() {
  if (replication_) replication_->stop();
  kept_.close();
  note_traffic();
}

}  // namespace varve::remote
