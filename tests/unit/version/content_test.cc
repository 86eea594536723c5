// SPDX-License-Identifier: Apache-2.0
// Files of open versions that are written in any order, and clones.
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <stop_token>
#include <thread>

#include "support/temp_repository.h"
#include "varve/arrange.h"
#include "varve/backup.h"
#include "varve/check.h"

namespace varve::test {
namespace {

class Contents : public testing::Test {
 protected:
  Contents() : path_(directory_.path() + "/repository") {
    must(Repository::create(path_, small_chunks(Codec::kNone)));
    repository_ = reopen(path_);
    series_ = must(repository_->create_series("s")).id;
  }

  void start(const std::string& name) {
    number_ = must(repository_->open_version(series_, name, folder())).number;
    version_ = must(repository_->writer(series_));
  }
  VersionInfo seal() {
    version_.reset();
    return must(repository_->seal(series_, number_, "")).info;
  }
  std::shared_ptr<VersionReader> reader() { return must(repository_->reader(series_, number_)); }
  void restart() {
    version_.reset();
    must(repository_->close());
    repository_.reset();
    repository_ = reopen(path_);
    version_ = must(repository_->writer(series_));
  }
  // Returns the data ranges as begin and end. Between them are holes, which must have whole blocks.
  using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  template <typename File>
  static Ranges data_of(File& from, const std::string& model) {
    constexpr std::uint64_t kBlockBytes = 4096;
    Ranges data;
    std::uint64_t at = 0;
    while (at < model.size()) {
      const auto begin = from.seek_data(at);
      const std::uint64_t end = begin ? *begin : model.size();
      EXPECT_EQ(at % kBlockBytes, at == end ? at % kBlockBytes : 0U);
      EXPECT_TRUE(end % kBlockBytes == 0 || end == model.size()) << end;
      EXPECT_EQ(model.find_first_not_of('\0', at) < end, false) << "data in a hole at " << at;
      if (!begin) break;
      at = must(from.seek_hole(*begin));
      EXPECT_GT(at, *begin);
      data.emplace_back(*begin, at);
    }
    return data;
  }
  static Ranges data_of(VersionWriter& version, Ino ino, const std::string& model) {
    return data_of(*must(version.open(ino, false)), model);
  }
  static Ranges data_of(VersionReader& version, const std::string& name, const std::string& model) {
    return data_of(*must(version.open(find(version, name))), model);
  }
  void expect_clean() {
    CheckOptions options;
    options.verify_chunks = true;
    const auto report = must(repository_->check(options, {}));
    for (const auto& damage : report.damages) ADD_FAILURE() << damage.where << ": " << damage.what;
  }

  TempDirectory directory_;
  std::string path_;
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  VersionNumber number_{};
  std::shared_ptr<VersionWriter> version_;
};

// The previous version holds the same bytes, written front to back. A boundary in another place
// would make the writer store the chunks around it again.
TEST_F(Contents, RandomOrderGivesTheBoundariesOfTheWholeFile) {
  std::mt19937_64 random(7);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (int round = 0; round < 12; ++round) {
    start("v" + std::to_string(round) + ".partial");
    std::string model = noise(200000 + below(100000), random());
    const Ino ino = write_file(*version_, kRootIno, "file", model);
    auto file = must(version_->open(ino, true));
    for (int step = 0; step < 60; ++step) {
      const std::uint64_t offset = below(model.size() + 3000);
      const std::uint64_t bytes = 1 + below(below(4) == 0 ? 30000 : 500);
      switch (below(8)) {
        case 0:
          must(file->allocate(offset, bytes, AllocateMode::kPunchHole));
          for (auto i = offset; i < std::min<std::uint64_t>(offset + bytes, model.size()); ++i) {
            model[i] = '\0';
          }
          break;
        case 1: {
          AttributeChange change;
          change.size = offset;
          must(version_->set_attributes(ino, change));
          model.resize(offset);
          break;
        }
        case 2:
          must(file->allocate(offset, bytes, AllocateMode::kExtend));
          if (model.size() < offset + bytes) model.resize(offset + bytes);
          break;
        case 3:
          must(file->allocate(offset, bytes, AllocateMode::kZeroRange));
          if (model.size() < offset + bytes) model.resize(offset + bytes);
          std::fill_n(model.begin() + static_cast<std::ptrdiff_t>(offset), bytes, '\0');
          break;
        case 4:
          if (below(4) == 0) {
            file.reset();
            must(version_->sync());
            if (below(2) == 0) restart();
            file = must(version_->open(ino, true));
          }
          break;
        default: {
          const auto data = noise(bytes, random());
          must(file->write(offset, base::as_bytes(data)));
          if (model.size() < offset + bytes) model.resize(offset + bytes);
          model.replace(offset, bytes, data);
          break;
        }
      }
      if (step % 10 == 0) {
        ASSERT_TRUE(read_open(*version_, ino) == model) << "round " << round;
      }
    }
    ASSERT_TRUE(read_open(*version_, ino) == model) << "round " << round;
    file.reset();
    must(version_->sync());
    const auto holes = data_of(*version_, ino, model);
    ASSERT_FALSE(HasFailure()) << "round " << round;
    const auto sealed = seal();
    ASSERT_TRUE(read_sealed(*reader(), "file") == model);
    EXPECT_EQ(data_of(*reader(), "file", model), holes);
    start("copy" + std::to_string(round) + ".partial");
    const auto copy = must(version_->create(kRootIno, "copy", regular_file())).ino;
    {
      const auto to = must(version_->open(copy, true));
      for (const auto& [begin, end] : holes) {
        must(to->write(begin, base::as_bytes(std::string_view(model).substr(begin, end - begin))));
      }
      AttributeChange change;
      change.size = model.size();
      must(version_->set_attributes(copy, change));
    }
    const auto again = seal();
    EXPECT_EQ(again.unique_bytes, 0U) << "round " << round << " of " << sealed.unique_bytes;
    ASSERT_TRUE(read_sealed(*reader(), "copy") == model);
  }
  expect_clean();
}

// Front to back, as rsync -S and cp write: the file is never staged until its bytes are known.
TEST_F(Contents, StreamedHolesAreThoseOfTheSameFileInAnyOrder) {
  std::mt19937_64 random(23);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (int round = 0; round < 40; ++round) {
    start("v" + std::to_string(round) + ".partial");
    std::string model;
    const Ino ino = must(version_->create(kRootIno, "file", regular_file())).ino;
    auto file = must(version_->open(ino, true));
    const auto set_size = [&](std::uint64_t bytes) {
      AttributeChange change;
      change.size = bytes;
      must(version_->set_attributes(ino, change));
      model.resize(bytes);
    };
    for (int step = 0; step < 25; ++step) {
      const std::uint64_t gap = below(3) == 0 ? below(20'000) : below(5) * below(2'100);
      switch (below(6)) {
        case 0:
          set_size(model.size() + gap);
          break;
        case 1:
          if (below(2) == 0) set_size(model.size() - std::min<std::uint64_t>(gap, model.size()));
          break;
        case 2:
          if (below(3) != 0) break;
          file.reset();
          if (below(2) == 0) must(version_->sync());
          if (below(3) == 0) restart();
          file = must(version_->open(ino, true));
          break;
        default: {
          const auto data = noise(1 + below(below(2) == 0 ? 10 : 9'000), random());
          const std::uint64_t offset = model.size() + gap;
          must(file->write(offset, base::as_bytes(data)));
          model.resize(offset);
          model += data;
          break;
        }
      }
    }
    file.reset();
    const auto sealed = seal();
    ASSERT_TRUE(read_sealed(*reader(), "file") == model) << "round " << round;
    const auto data = data_of(*reader(), "file", model);
    start("copy" + std::to_string(round) + ".partial");
    const Ino copy = must(version_->create(kRootIno, "copy", regular_file())).ino;
    {
      const auto to = must(version_->open(copy, true));
      for (auto range = data.rbegin(); range != data.rend(); ++range) {
        const auto part =
            std::string_view(model).substr(range->first, range->second - range->first);
        must(to->write(range->first, base::as_bytes(part)));
      }
      AttributeChange change;
      change.size = model.size();
      must(version_->set_attributes(copy, change));
    }
    const auto again = seal();
    EXPECT_EQ(again.unique_bytes, 0U) << "round " << round << " of " << sealed.unique_bytes;
    EXPECT_EQ(data_of(*reader(), "copy", model), data) << "round " << round;
    ASSERT_TRUE(read_sealed(*reader(), "copy") == model) << "round " << round;
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  expect_clean();
}

TEST_F(Contents, OverwritingAPieceStoresLittleMoreThanThePiece) {
  start("one");
  const auto image = noise(8 << 20, 1);
  write_file(*version_, kRootIno, "image", image);
  seal();
  const auto first = reader();
  start("two");
  const Ino clone = must(version_->clone(*first, find(*first, "image"), kRootIno, "image")).ino;
  auto changed = image;
  {
    const auto file = must(version_->open(clone, true));
    for (std::uint64_t at = 100000; at < changed.size(); at += 1 << 20) {
      const auto piece = noise(50000, at);
      must(file->write(at, base::as_bytes(piece)));
      changed.replace(at, piece.size(), piece);
    }
  }
  const auto info = seal();
  EXPECT_TRUE(read_sealed(*reader(), "image") == changed);
  EXPECT_TRUE(read_sealed(*first, "image") == image);
  EXPECT_LT(info.unique_bytes, 8U * (50000 + 2 * 16384));
  expect_clean();
}

TEST_F(Contents, ACloneOfAFileStoresNothingAndIsIndependent) {
  start("one");
  const auto bytes = noise(300000, 2);
  const Ino ino = write_file(*version_, kRootIno, "a", bytes);
  must(version_->set_xattr(ino, "user.k", "v", XattrMode::kAny));
  AttributeChange change;
  change.mode = 0640;
  change.uid = 12;
  change.mtime = Timestamp{77, 5};
  must(version_->set_attributes(ino, change));
  seal();
  const auto one = reader();
  start("two.partial");
  const auto entry = must(version_->clone(*one, find(*one, "a"), kRootIno, "b"));
  EXPECT_EQ(entry.attributes.mode, S_IFREG | 0640U);
  EXPECT_EQ(entry.attributes.uid, 12U);
  EXPECT_EQ(entry.attributes.mtime, (Timestamp{77, 5}));
  EXPECT_EQ(entry.attributes.nlink, 1U);
  EXPECT_EQ(must(version_->xattrs(entry.ino)).at(0).value, "v");
  EXPECT_EQ(code_of(version_->clone(*one, find(*one, "a"), kRootIno, "b")), ErrorCode::kExists);
  EXPECT_EQ(code_of(version_->clone(*one, 0, kRootIno, "c")), ErrorCode::kNotPermitted);
  EXPECT_TRUE(read_open(*version_, entry.ino) == bytes);
  EXPECT_EQ(seal().unique_bytes, 0U);
  EXPECT_TRUE(read_sealed(*reader(), "b") == bytes);
}

TEST_F(Contents, NamesOfOneFileBecomeNamesOfOneClone) {
  start("one");
  const Ino ino = write_file(*version_, kRootIno, "a", "content");
  must(version_->link(ino, kRootIno, "b"));
  seal();
  const auto one = reader();
  start("two");
  const auto a = must(version_->clone(*one, find(*one, "a"), kRootIno, "a"));
  const auto b = must(version_->clone(*one, find(*one, "b"), kRootIno, "b"));
  EXPECT_EQ(a.ino, b.ino);
  EXPECT_EQ(b.attributes.nlink, 2U);
}

// The writer must store chunks again that the window no longer has: an interval has no gap.
TEST_F(Contents, ACloneFromAnOlderVersionKeepsItsBytes) {
  const auto clone = [&](VersionReader& from, const std::string& name) {
    must(version_->clone(from, find(from, name), kRootIno, name));
  };
  ArrangeSettings settings;
  settings.window = 2;  // Two versions without a chunk are enough.
  must(repository_->set_arrange_settings(settings));
  start("one");
  const auto bytes = noise(200000, 3);
  write_file(*version_, kRootIno, "old", bytes);
  write_file(*version_, kRootIno, "kept", noise(800000, 4));
  seal();
  const auto one = reader();
  for (const auto* name : {"two", "three"}) {
    start(name);
    clone(*one, "kept");
    EXPECT_EQ(seal().unique_bytes, 0U);
  }
  start("four");
  clone(*one, "kept");
  clone(*one, "old");
  EXPECT_EQ(seal().unique_bytes, bytes.size());
  EXPECT_TRUE(read_sealed(*reader(), "old") == bytes);
  start("five");
  clone(*one, "old");
  EXPECT_EQ(seal().unique_bytes, 0U);
  expect_clean();
}

TEST_F(Contents, RangesOfFilesAreShared) {
  start("one");
  const auto source = noise(400000, 5);
  write_file(*version_, kRootIno, "source", source);
  seal();
  const auto one = reader();
  const auto sealed = must(one->open(find(*one, "source")));
  start("two");
  const Ino ino = write_file(*version_, kRootIno, "target", noise(1000, 6));
  std::string model = noise(1000, 6);
  {
    const auto file = must(version_->open(ino, true));
    // Two calls that meet inside a chunk, as in a copy of a large file.
    EXPECT_EQ(must(file->clone_range(*sealed, 0, 1000, 150001)), 150001U);
    EXPECT_EQ(must(file->clone_range(*sealed, 150001, 151001, 1 << 30)), 249999U);
    model += source;
    EXPECT_EQ(must(file->clone_range(*sealed, 400000, 0, 10)), 0U);
    EXPECT_EQ(must(file->clone_range(*sealed, 5000, 100, 20000)), 20000U);
    model.replace(100, 20000, source.substr(5000, 20000));
    EXPECT_TRUE(read_open(*version_, ino) == model);
  }
  must(version_->sync());
  const Ino whole = must(version_->create(kRootIno, "whole", regular_file())).ino;
  {
    const auto from = must(version_->open(ino, false));
    const auto file = must(version_->open(whole, true));
    EXPECT_EQ(must(file->clone_range(*from, 0, 0, 1 << 30)), model.size());
    EXPECT_TRUE(read_all(*file, model.size()) == model);
  }
  const auto info = seal();
  EXPECT_LT(info.unique_bytes, 100000U);
  EXPECT_TRUE(read_sealed(*reader(), "target") == model);
  EXPECT_TRUE(read_sealed(*reader(), "whole") == model);
  expect_clean();
}

TEST_F(Contents, AFileWithoutNamesIsReadAfterItsLastWriterLeft) {
  start("one");
  const auto bytes = noise(100000, 9);
  const Ino ino = write_file(*version_, kRootIno, "a", "");
  auto writer = must(version_->open(ino, true));
  const auto reader = must(version_->open(ino, false));
  must(writer->write(0, base::as_bytes(bytes)));
  must(version_->unlink(kRootIno, "a"));
  writer.reset();
  EXPECT_TRUE(read_all(*reader, bytes.size()) == bytes);
}

// A disk's file system may give readers parts of an unfinished write; an open version must not.
TEST_F(Contents, AReadGivesAllOfAWriteOrNothing) {
  constexpr std::size_t kBlocks = 4;
  constexpr std::size_t kBytes = 30000;
  start("one");
  const Ino ino = write_file(*version_, kRootIno, "a", std::string(kBlocks * kBytes, 'a'));
  const auto reading = must(version_->open(ino, false));
  const std::jthread writer([&](const std::stop_token& stop) {
    const auto file = must(version_->open(ino, true));
    for (std::size_t i = 1; !stop.stop_requested(); ++i) {
      const std::string data(kBytes, static_cast<char>('a' + i % 26));
      must(file->write(i % kBlocks * kBytes, base::as_bytes(data)));
    }
  });
  int mixtures = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto bytes = read_all(*reading, kBlocks * kBytes);
    for (std::size_t at = 0; at < bytes.size(); at += kBytes) {
      if (bytes.compare(at, kBytes, std::string(kBytes, bytes[at])) != 0) ++mixtures;
    }
  }
  EXPECT_EQ(mixtures, 0);
}

TEST_F(Contents, AllocatingMoreThanTheDiskHasIsRefused) {
  start("one");
  const Ino ino = write_file(*version_, kRootIno, "a", "x");
  const auto file = must(version_->open(ino, true));
  EXPECT_EQ(code_of(file->allocate(0, std::uint64_t{1} << 60, AllocateMode::kExtend)),
            ErrorCode::kNoSpace);
  EXPECT_EQ(must(version_->get(ino)).attributes.size, 1U);
  must(file->allocate(0, 5000, AllocateMode::kKeepSize));
  EXPECT_EQ(must(version_->get(ino)).attributes.size, 1U);
  must(file->allocate(10, 90, AllocateMode::kExtend));
  EXPECT_EQ(read_open(*version_, ino), "x" + std::string(99, '\0'));
}

TEST_F(Contents, OpenVersionsAreMeasuredOnRequest) {
  start("v");
  write_file(*version_, kRootIno, "a", "text");
  version_.reset();
  must(repository_->close());
  repository_.reset();
  repository_ = reopen(path_);
  const auto entries = [&](OpenSizes sizes) {
    return must(repository_->open_versions(series_, sizes)).at(0).entries;
  };
  EXPECT_EQ(entries(OpenSizes::kUnknown), 0U);
  EXPECT_EQ(entries(OpenSizes::kMeasured), 1U);
  EXPECT_EQ(entries(OpenSizes::kMeasured), 1U);
  version_ = must(repository_->writer(series_));
  write_file(*version_, kRootIno, "b", "text");
  EXPECT_EQ(entries(OpenSizes::kMeasured), 2U);
}

}  // namespace
}  // namespace varve::test
