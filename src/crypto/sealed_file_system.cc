// SPDX-License-Identifier: Apache-2.0
#include "crypto/sealed_file_system.h"

#include <utility>

namespace varve::crypto {

namespace {

class SealedFileSystem final : public io::FileSystem {
 public:
  SealedFileSystem(std::unique_ptr<io::FileSystem> below, std::shared_ptr<const KeyRing> keys,
                   SealedPlaceOf place_of)
      : below_(std::move(below)), keys_(std::move(keys)), place_of_(std::move(place_of)) {}

  Result<std::unique_ptr<io::File>> open(const std::string& path, io::OpenMode mode) override {
    const auto place = place_of_(path);
    if (!place) return below_->open(path, mode);
    if (mode == io::OpenMode::kReadDirect || mode == io::OpenMode::kWriteDirect) {
      return Error(ErrorCode::kUnsupported, path + ": a sealed file has no direct access");
    }
    VARVE_TRY_ASSIGN(auto file, below_->open(path, mode));
    return make_sealed_file(std::move(file), path, keys_, *place);
  }
  Result<base::UniqueFd> descriptor(const std::string& path, io::OpenMode mode) override {
    if (!place_of_(path)) return below_->descriptor(path, mode);
    return Error(ErrorCode::kUnsupported, path + ": a sealed file has no descriptor");
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    if (place_of_(from) != place_of_(to)) {
      return Error(ErrorCode::kInvalid, from + " is sealed for another place than " + to);
    }
    return below_->rename(from, to);
  }
  std::uint64_t stored_bytes(const std::string& path, std::uint64_t bytes) override {
    const auto place = place_of_(path);
    return place ? sealed_bytes(*place, bytes) : below_->stored_bytes(path, bytes);
  }

  std::optional<std::string> root_path() override { return below_->root_path(); }
  Result<void> make_directory(const std::string& path) override {
    return below_->make_directory(path);
  }
  Result<void> remove(const std::string& path) override { return below_->remove(path); }
  Result<void> sync_directory(const std::string& path) override {
    return below_->sync_directory(path);
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    return below_->list(path);
  }
  Result<bool> exists(const std::string& path) override { return below_->exists(path); }
  Result<std::uint64_t> tree_bytes(const std::string& path) override {
    return below_->tree_bytes(path);
  }
  Result<SpaceInfo> space(const std::string& path) override { return below_->space(path); }
  Result<std::unique_ptr<io::FileLock>> lock(const std::string& path) override {
    return below_->lock(path);
  }
  Result<std::unique_ptr<io::FileLock>> lock_shared(const std::string& path) override {
    return below_->lock_shared(path);
  }

 private:
  const std::unique_ptr<io::FileSystem> below_;
  const std::shared_ptr<const KeyRing> keys_;
  const SealedPlaceOf place_of_;
};

}  // namespace

std::unique_ptr<io::FileSystem> make_sealed_file_system(std::unique_ptr<io::FileSystem> below,
                                                        std::shared_ptr<const KeyRing> keys,
                                                        SealedPlaceOf place_of) {
  return std::make_unique<SealedFileSystem>(std::move(below), std::move(keys), std::move(place_of));
}

}  // namespace varve::crypto
