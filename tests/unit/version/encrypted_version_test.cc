// SPDX-License-Identifier: Apache-2.0
// Tests open versions of an encrypted repository: what their files show, and a crash.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "support/file_content.h"
#include "support/temp_repository.h"
#include "varve/backup.h"

namespace varve::test {
namespace {

namespace fs = std::filesystem;

class EncryptedVersion : public testing::Test {
 protected:
  EncryptedVersion() {
    must(Repository::create(path_, small_chunks(Codec::kNone), encrypted()));
    repository_ = reopen(path_, with_key(quiet_options()));
    series_ = must(repository_->create_series("canary-series")).id;
    must(repository_->open_version(series_, "canary-version", folder()));
    writer_ = must(repository_->writer(series_));
  }
  // Makes a file whose content is staged and durable.
  void stage_file(const std::string& name, const std::string& content) {
    NewFile file;
    file.mode = S_IFREG | 0600;
    file.xattrs = {{"user.canary-attribute", "canary-value"}};
    const auto made = must(writer_->create(kRootIno, name, file));
    auto handle = must(writer_->open(made.ino, true));
    const auto half = content.size() / 2;
    must(handle->write(half, base::as_bytes(std::string_view(content).substr(half))));
    must(handle->write(0, base::as_bytes(std::string_view(content).substr(0, half))));
    must(handle->sync());
    handles_.push_back(std::move(handle));
  }
  static std::string text_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return varve::test::rest_of(file);
  }

  TempDirectory directory_;
  const std::string path_ = directory_.path() + "/repository";
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  std::shared_ptr<VersionWriter> writer_;
  std::vector<std::unique_ptr<OpenFile>> handles_;
};

TEST_F(EncryptedVersion, CatalogAndStagingShowNothing) {
  std::string content;
  for (int i = 0; i < 2000; ++i) content += "canary-content ";
  stage_file("canary-name", content);
  NewFile link;
  link.mode = S_IFLNK | 0777;
  link.symlink_target = "canary-target";
  must(writer_->create(kRootIno, "canary-link", link));
  stage_file("canary-other", content);
  int files = 0;
  for (const auto* const part : {"/catalog", "/staging"}) {
    for (const auto& entry : fs::recursive_directory_iterator(path_ + part)) {
      if (!entry.is_regular_file() || entry.path().filename() == "lock.mdb") continue;
      ++files;
      EXPECT_EQ(text_of(entry.path()).find("canary"), std::string::npos) << entry.path();
    }
  }
  EXPECT_GE(files, 4) << "the catalog, the overlay, and two staged files";
}

// The folder is copied while the version is open, as after a kill.
TEST_F(EncryptedVersion, StagedBytesAreThereAfterAKill) {
  const auto content = noise(150'000, 1);
  stage_file("staged", content);
  const std::string killed = directory_.path() + "/killed";
  fs::copy(path_, killed, fs::copy_options::recursive | fs::copy_options::skip_symlinks);
  const auto repository = reopen(killed, with_key(quiet_options()));
  const auto writer = must(repository->writer(series_));
  const auto found = must(writer->lookup(kRootIno, "staged"));
  const auto handle = must(writer->open(found.ino, false));
  std::string read(content.size() + 1, '\0');
  EXPECT_EQ(must(handle->read(0, std::as_writable_bytes(std::span(read)))), content.size());
  read.resize(content.size());
  EXPECT_EQ(read, content);
}

// An attacker who can write to the storage exchanges two versions' overlays.
TEST_F(EncryptedVersion, OverlayOfAnotherVersionIsRefused) {
  stage_file("staged", "bytes");
  const auto other = must(repository_->create_series("other")).id;
  must(repository_->open_version(other, "v", folder()));
  must(must(repository_->writer(other))->create(kRootIno, "f", folder()));
  writer_ = nullptr;
  handles_.clear();
  must(repository_->close());
  repository_ = nullptr;
  const auto overlay = [&](const char* name) { return path_ + "/staging/" + name + "/overlay"; };
  fs::rename(overlay("00000001-00000001"), overlay("00000001-00000001") + ".kept");
  fs::rename(overlay("00000002-00000001"), overlay("00000001-00000001"));
  const auto repository = reopen(path_, with_key(quiet_options()));
  EXPECT_EQ(code_of(repository->writer(series_)), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace varve::test
