// SPDX-License-Identifier: Apache-2.0
// A pool with its catalog, in memory that loses unsynced data in a crash.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "crash_file_system.h"
#include "format/fingerprinter.h"
#include "layout/pool_merger.h"
#include "layout/pool_store.h"
#include "layout/post_pass.h"
#include "meta/schema.h"
#include "store/folder_store.h"
#include "store/found_damage.h"
#include "support/temp_repository.h"
#include "support/test_keys.h"

namespace varve::layout {

using varve::test::code_of;
using varve::test::must;

inline constexpr PoolOwner kOne{SeriesId{1}, VersionNumber{1}};
inline constexpr PoolOwner kTwo{SeriesId{2}, VersionNumber{1}};
inline constexpr PoolOwner kThree{SeriesId{2}, VersionNumber{2}};

class PoolStoreTest : public testing::Test {
 protected:
  PoolStoreTest() : catalog_(open()) {
    must(files_.make_directory("/r"));
    restart();
  }
  meta::Env open() {
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    return must(meta::Env::open(directory_.path(), options));
  }
  Result<void> try_restart(bool settled = false) {
    pool_.reset();
    PoolParts parts{catalog_, *codec_, &compressors_};
    parts.settled = settled;
    parts.damage = &damage_;
    VARVE_TRY_ASSIGN(
        pool_, PoolStore::open(parts, std::make_unique<store::FolderStore>(files_, "/r/pool")));
    return {};
  }
  void restart() { must(try_restart()); }

  static std::string chunk(std::uint64_t seed) {
    return varve::test::noise(1000 + seed * 37 % 3000, seed);
  }
  Result<ChunkId> place(ChunkStream& stream, std::uint64_t seed) {
    const auto bytes = chunk(seed);
    const auto raw = base::as_bytes(bytes);
    VARVE_TRY_ASSIGN(const auto id, stream.place(fingerprinter_->fingerprint(raw), raw));
    seed_of_[id] = seed;
    return id;
  }
  // Stores chunks in one container.
  Result<std::vector<ChunkId>> store(ChunkStream& stream, std::uint64_t seed, int count = 3) {
    std::vector<ChunkId> ids;
    for (int i = 0; i < count; ++i) {
      VARVE_TRY_ASSIGN(const auto id, place(stream, seed * 100 + static_cast<std::uint64_t>(i)));
      ids.push_back(id);
    }
    VARVE_TRY(stream.sync());
    return ids;
  }
  std::vector<ChunkId> store(const PoolOwner& owner, std::uint64_t seed, int count = 3) {
    const auto stream = must(pool_->start_stream(owner));
    return must(store(*stream, seed, count));
  }
  ContainerNumber container_of(ChunkId id) { return must(pool_->chunks().locate(id)).container; }

  Result<void> try_seal(const PoolOwner& owner, const std::vector<ChunkId>& ids) {
    std::vector<base::IdRun> runs;
    for (const auto id : ids) runs.push_back({id, 1});
    const auto chunks = base::IdRuns::from(std::move(runs));
    {
      const PoolStore::Exclusive exclusive(*pool_);
      VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
      VARVE_TRY_ASSIGN(const auto uses, catalog::pool_use_of(txn, chunks));
      VARVE_TRY(pool_->add_users(txn, owner, uses));
      VARVE_TRY(catalog::put_version_chunks(txn, owner.series, owner.version, chunks));
      VARVE_TRY(txn.commit());
    }
    return end(owner);
  }
  void seal(const PoolOwner& owner, const std::vector<ChunkId>& ids) { must(try_seal(owner, ids)); }
  // Ends the use of the pool by a version that is sealed or dropped.
  Result<void> end(const PoolOwner& owner) {
    auto swept = pool_->sweep(pool_->unpin(owner));
    return swept ? Result<void>() : std::move(swept).error();
  }

  struct Merged {
    bool finished = false;
    std::uint64_t bytes_freed = 0;
    base::IdRuns dropped;
    std::uint64_t bytes_before_freeing =
        0;  // In the pool's folder, before the last step freed any.
  };
  // Merges the containers of which less than a share is used, in thousandths.
  Result<Merged> try_merge(std::uint32_t live_permille_max = 300) {
    Merged merged;
    PoolMergerParts parts;
    parts.pool = pool_.get();
    parts.catalog = &catalog_;
    parts.live_permille_max = live_permille_max;
    parts.before_freeing = [&] { merged.bytes_before_freeing = stored_bytes(); };
    parts.after_step = [&](const MoveOutcome& step, const base::IdRuns& dropped) {
      merged.bytes_freed += step.bytes_freed;
      merged.dropped = merged.dropped.unite(dropped);
    };
    VARVE_TRY_ASSIGN(merged.finished, PoolMerger(parts).run());
    return merged;
  }

  // Makes duplicates in the pool aliases.
  struct Passed {
    bool finished = false;
    std::uint64_t aliases = 0;
    std::uint64_t steps = 0;
    std::size_t damaged = 0;
  };
  Result<Passed> try_pass(std::uint32_t permille = 1, std::uint32_t run_min = 1,
                          std::function<bool()> stop = {}) {
    Passed passed;
    PostPassParts parts;
    parts.pool = pool_.get();
    parts.catalog = &catalog_;
    parts.fingerprinter = fingerprinter_.get();
    parts.folder = {&files_, "/r/pool"};
    parts.dead_permille_min = permille;
    parts.step_bytes_max = 1U << 16;
    parts.kept = kept_;
    parts.lost = lost_;
    parts.run_chunks_min = [run_min](VersionNumber) { return run_min; };
    PostPassHooks hooks;
    hooks.stop = std::move(stop);
    hooks.after_step = [&](const PostPassOutcome& step) {
      passed.aliases += step.aliases;
      ++passed.steps;
    };
    PostPass pass(parts);
    VARVE_TRY_ASSIGN(passed.finished, pass.run(hooks));
    passed.damaged = pass.damaged();
    return passed;
  }

  struct Freed {
    std::uint64_t bytes = 0;
    std::uint64_t waiting_bytes = 0;
    std::uint64_t chunks = 0;
  };
  Freed forecast(const std::vector<PoolOwner>& gone) {
    const PoolStore::Exclusive exclusive(*pool_);
    const auto txn = must(meta::ReadTxn::begin(catalog_));
    const auto plan = must(pool_->forecast_deletion(txn, gone, {}));
    return {plan.ledger.freed_bytes(), plan.waiting_bytes, plan.chunks};
  }
  Result<Freed> try_remove(const std::vector<PoolOwner>& gone) {
    const PoolStore::Exclusive exclusive(*pool_);
    VARVE_TRY_ASSIGN(const auto snapshot, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(const auto plan, pool_->plan_deletion(snapshot, gone));
    const auto commit = [&]() -> Result<void> {
      VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
      VARVE_TRY(plan.apply(txn));
      return txn.commit();
    };
    if (auto done = commit(); !done) {
      pool_->keep(plan);
      return std::move(done).error();
    }
    VARVE_TRY(pool_->free(plan));
    return Freed{plan.ledger.freed_bytes(), plan.waiting_bytes, plan.chunks};
  }
  // Deletes versions. The forecast, the deletion and the files must agree.
  Freed remove(const std::vector<PoolOwner>& gone) {
    const auto before = stored_bytes();
    const auto expected = forecast(gone);
    const auto done = must(try_remove(gone));
    EXPECT_EQ(expected.bytes, done.bytes);
    EXPECT_EQ(expected.waiting_bytes, done.waiting_bytes);
    EXPECT_EQ(expected.chunks, done.chunks);
    EXPECT_EQ(before - stored_bytes(), done.bytes);
    return done;
  }
  std::uint64_t stored_bytes() { return must(files_.tree_bytes("/r/pool")); }

  std::string read(ChunkId id) {
    auto& chunks = pool_->chunks();
    const auto where = must(chunks.locate(id));
    const auto header = must(chunks.header(where.container));
    const auto& entry = header->chunks.at(where.index + (id.value - where.first.value));
    EXPECT_EQ(entry.id, where.stored.plus(id.value - where.first.value));
    const auto& frame = header->frames.at(entry.frame);
    std::vector<std::byte> stored(frame.stored_bytes);
    std::vector<std::byte> raw(frame.raw_bytes);
    must(chunks.read_data(where.container, frame.offset, stored));
    must(codec_->decode(format::place_of_frame(*header, entry.frame), frame, stored, raw));
    return std::string(base::as_text(std::span(raw).subspan(entry.frame_offset, entry.raw_bytes)));
  }
  void expect_whole(const std::vector<ChunkId>& ids) {
    for (const auto id : ids) ASSERT_TRUE(read(id) == chunk(seed_of_.at(id)));
  }
  // Changes each byte of the data of the container with the chunk.
  void damage(ChunkId id) {
    const auto number = must(pool_->chunks().locate(id)).container;
    const auto record =
        must(catalog::find_container(must(meta::ReadTxn::begin(catalog_)), kPoolStore, number));
    const auto file = must(
        files_.open("/r/pool/" + store::segment_path(record->segment), io::OpenMode::kReadWrite));
    const std::vector<std::byte> other(record->data_bytes, std::byte{0x5a});
    must(file->write_at(record->offset + record->header_bytes, other));
  }
  void expect_gone(const std::vector<ChunkId>& ids) {
    for (const auto id : ids) {
      EXPECT_EQ(code_of(pool_->chunks().locate(id)), ErrorCode::kCorrupt);
    }
  }

  varve::test::TempDirectory directory_;
  varve::test::CrashFileSystem files_;
  base::ThreadPool compressors_{2, "test"};
  const std::unique_ptr<const format::FrameCodec> codec_ = test::sealed_codec({Codec::kNone, 1});
  const std::unique_ptr<const format::Fingerprinter> fingerprinter_ =
      format::make_sha256_fingerprinter();
  meta::Env catalog_;
  store::FoundDamage damage_;
  std::unique_ptr<PoolStore> pool_;
  std::map<ChunkId, std::uint64_t> seed_of_;
  base::IdRuns kept_;  // Must not become aliases.
  base::IdRuns lost_;  // In quarantine.
};

}  // namespace varve::layout
