// SPDX-License-Identifier: Apache-2.0
// Versions that start as a sealed one: the data that they share with it, and crashes.
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "clone_fixture.h"

namespace varve::test {
namespace {

TEST_F(CloneTest, UnchangedCloneIsTheSameTreeWithoutNewObjects) {
  make_tree();
  const auto one = seal();
  std::size_t nodes = 0;
  std::size_t recipes = 0;
  with_catalog([&](const meta::Env& env) {
    nodes = rows(env, meta::catalog::kNodes);
    recipes = rows(env, meta::catalog::kRecipes);
    EXPECT_GT(recipes, 0U);
  });
  clone(one, "two");
  const auto two = seal();
  EXPECT_EQ(reader(two)->info().unique_bytes, 0U);
  EXPECT_EQ(reader(two)->info().logical_bytes, reader(one)->info().logical_bytes);
  EXPECT_EQ(reader(two)->info().entries, reader(one)->info().entries);
  with_catalog([&](const meta::Env& env) {
    EXPECT_EQ(rows(env, meta::catalog::kNodes), nodes);
    EXPECT_EQ(rows(env, meta::catalog::kRecipes), recipes);
    const auto txn = must(meta::ReadTxn::begin(env));
    const auto first = *must(catalog::find_version(txn, series_, one));
    const auto second = *must(catalog::find_version(txn, series_, two));
    EXPECT_EQ(first.root, second.root);
    EXPECT_EQ(must(catalog::version_chunks(txn, series_, one)),
              must(catalog::version_chunks(txn, series_, two)));
    EXPECT_EQ(*must(catalog::version_links(txn, series_, one)),
              *must(catalog::version_links(txn, series_, two)));
  });
  expect_no_damage();
}

TEST_F(CloneTest, ChangeWritesOnlyThePathToIt) {
  make_tree();
  const auto one = seal();
  std::size_t nodes = 0;
  with_catalog([&](const meta::Env& env) { nodes = rows(env, meta::catalog::kNodes); });
  clone(one, "two");
  AttributeChange change;
  change.mode = 0600;
  must(version_->set_attributes(ino("a/b/c/f0"), change));
  const auto two = seal();
  // A leaf and the page above it in c; one page each in b, a and the root.
  with_catalog([&](const meta::Env& env) {
    EXPECT_LE(rows(env, meta::catalog::kNodes), nodes + 5);
    EXPECT_GT(rows(env, meta::catalog::kNodes), nodes);
  });
  const auto sealed = reader(two);
  EXPECT_EQ(must(sealed->get(find(*sealed, "a/b/c/f0"))).attributes.mode, S_IFREG | 0600U);
  EXPECT_EQ(read_sealed(*sealed, "a/big"), long_content());
  expect_no_damage();
}

TEST_F(CloneTest, ChangedHardLinkChangesUnderAllItsNames) {
  make_tree();
  const auto one = seal();
  const auto group = must(reader(one)->get(find(*reader(one), "m"))).link_group;
  clone(one, "two");
  EXPECT_EQ(ino("a/b/c/hard"), ino("z/linked"));
  EXPECT_EQ(ino("m"), ino("z/linked"));
  EXPECT_EQ(must(version_->get(ino("m"))).attributes.nlink, 3U);
  must(must(version_->open(ino("m"), true))->write(5000, base::as_bytes("more")));
  must(version_->unlink(ino("z"), "linked"));
  restart();
  EXPECT_EQ(must(version_->get(ino("m"))).attributes.nlink, 2U);
  const auto two = seal();
  const auto sealed = reader(two);
  for (const char* name : {"a/b/c/hard", "m"}) {
    const auto entry = must(sealed->get(find(*sealed, name)));
    EXPECT_EQ(entry.attributes.nlink, 2U) << name;
    EXPECT_EQ(entry.link_group, group) << name;
    EXPECT_EQ(read_sealed(*sealed, name), noise(5000, 7) + "more") << name;
  }
  EXPECT_EQ(read_sealed(*reader(one), "z/linked"), noise(5000, 7));
  expect_no_damage();
}

TEST_F(CloneTest, NewLinkGroupDiffersFromOneOfTheBaseThatHadItsPath) {
  const Ino a = make_directory(kRootIno, "a");
  const Ino old = write_file(*version_, a, "x", noise(100, 1));
  must(version_->link(old, a, "y"));
  const auto one = seal();
  clone(one, "two");
  must(version_->rename(ino("a"), "x", kRootIno, "moved", RenameMode::kReplace));
  const Ino fresh = write_file(*version_, ino("a"), "x", noise(100, 2));
  must(version_->link(fresh, kRootIno, "w"));
  const auto two = seal();
  const auto sealed = reader(two);
  const auto group_of = [&](const char* name) {
    return must(sealed->get(find(*sealed, name))).link_group;
  };
  EXPECT_EQ(group_of("a/y"), group_of("moved"));
  EXPECT_EQ(group_of("a/x"), group_of("w"));
  EXPECT_NE(group_of("a/x"), group_of("a/y"));
}

TEST_F(CloneTest, MovedDirectoryKeepsWhatIsBelowIt) {
  make_tree();
  const auto one = seal();
  clone(one, "two");
  const auto file = ino("a/b/c/f0");
  must(version_->rename(ino("a"), "b", ino("z"), "here", RenameMode::kReplace));
  make_directory(ino("a"), "b");
  must(version_->unlink(ino("z/here/c"), "f2"));
  EXPECT_EQ(ino("z/here/c/f0"), file);
  EXPECT_EQ(code_of(version_->lookup(ino("a/b"), "c")), ErrorCode::kNotFound);
  restart();
  EXPECT_EQ(ino("z/here/c/f0"), file);
  EXPECT_EQ(must(version_->parent(ino("z/here"))), ino("z"));
  EXPECT_EQ(code_of(version_->lookup(ino("z/here/c"), "f2")), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(version_->remove_directory(ino("z"), "here")), ErrorCode::kNotEmpty);
  const auto two = seal();
  const auto sealed = reader(two);
  EXPECT_EQ(read_sealed(*sealed, "z/here/c/f0"), noise(10, 0));
  EXPECT_EQ(code_of(sealed->lookup(find(*sealed, "z/here/c"), "f2")), ErrorCode::kNotFound);
  EXPECT_EQ(must(sealed->get(find(*sealed, "a/b"))).attributes.size, 0U);
  EXPECT_EQ(sealed->info().entries, reader(one)->info().entries);
  expect_no_damage();
}

TEST_F(CloneTest, LongRecipeOfAFileWithNewAttributesIsNotLost) {
  make_tree();
  const auto one = seal();
  clone(one, "two");
  AttributeChange change;
  change.uid = 77;
  must(version_->set_attributes(ino("a/big"), change));
  restart();
  EXPECT_EQ(must(version_->get(ino("a/big"))).attributes.size, long_content().size());
  EXPECT_EQ(read_open(*version_, ino("a/big")), long_content());
  change.uid = 78;
  must(version_->set_attributes(ino("a/big"), change));
  const auto two = seal();
  EXPECT_EQ(read_sealed(*reader(two), "a/big"), long_content());
  EXPECT_EQ(reader(two)->info().logical_bytes, reader(one)->info().logical_bytes);
  expect_no_damage();
}

TEST_F(CloneTest, RemovedFilesStayRemovedAndNewNamesLeaveNothingBehind) {
  make_tree();
  const auto one = seal();
  clone(one, "two");
  const auto gone = ino("z/f1");
  must(version_->unlink(ino("z"), "f1"));
  write_file(*version_, ino("z"), ".f1.tmp", "new");
  must(version_->rename(ino("z"), ".f1.tmp", ino("z"), "f3", RenameMode::kReplace));
  EXPECT_EQ(code_of(version_->get(gone)), ErrorCode::kStale);
  restart();
  EXPECT_EQ(code_of(version_->get(gone)), ErrorCode::kStale);
  EXPECT_EQ(code_of(version_->lookup(ino("z"), "f1")), ErrorCode::kNotFound);
  EXPECT_EQ(read_open(*version_, ino("z/f3")), "new");
  version_.reset();
  must(repository_->close());
  repository_.reset();
  {
    meta::EnvOptions options;
    options.tables = meta::overlay::kTables;
    const auto env = must(meta::Env::open(path_ + "/staging/00000001-00000002/overlay", options));
    EXPECT_EQ(rows(env, meta::overlay::kDirents), 2U) << "f1 taken away, f3 replaced";
  }
  repository_ = reopen(path_);
  must(repository_->seal(series_, VersionNumber{2}, ""));
  const auto sealed = reader(VersionNumber{2});
  EXPECT_EQ(code_of(sealed->lookup(find(*sealed, "z"), "f1")), ErrorCode::kNotFound);
  EXPECT_EQ(read_sealed(*sealed, "z/f3"), "new");
  EXPECT_EQ(sealed->info().entries, reader(one)->info().entries - 1);
}

TEST_F(CloneTest, CloneWhoseOverlayWasNotMadeIsUnchanged) {
  make_tree();
  const auto one = seal();
  const auto two = clone(one, "two.partial");
  version_.reset();
  repository_.reset();
  std::filesystem::remove_all(path_ + "/staging");
  repository_ = reopen(path_);
  version_ = must(repository_->writer(series_));
  EXPECT_EQ(read_open(*version_, ino("a/b/c/f0")), noise(10, 0));
  EXPECT_EQ(write_file(*version_, kRootIno, "new", "x"), reader(one)->info().entries + 2);
  EXPECT_EQ(seal(), two);
  EXPECT_EQ(read_sealed(*reader(two), "a/big"), long_content());
}

TEST_F(CloneTest, BaseWithoutRecordOfLinksIsWalked) {
  make_tree();
  const auto one = seal();
  with_catalog([&](const meta::Env& env) {
    auto txn = must(meta::WriteTxn::begin(env));
    must(txn.erase(meta::catalog::kVersionLinks, meta::version_key(series_, one)));
    must(txn.commit());
  });
  clone(one, "two");
  EXPECT_EQ(ino("a/b/c/hard"), ino("z/linked"));
}

TEST_F(CloneTest, DamageInTheBaseDoesNotKeepTheCloneFromBeingSealed) {
  make_tree();
  const auto one = seal();
  format::NodeId page;
  with_catalog([&](const meta::Env& env) {
    catalog::VersionRecord record;
    {
      const auto txn = must(meta::ReadTxn::begin(env));
      record = *must(catalog::find_version(txn, series_, one));
    }
    catalog::ObjectReader objects(env, series_);
    const catalog::DirTree tree(objects, record.root);
    page = must(tree.lookup(must(tree.get(0)), "z")).entry->child;
    auto txn = must(meta::WriteTxn::begin(env));
    must(txn.erase(meta::catalog::kNodes, meta::object_key(series_, page.value)));
    must(txn.commit());
  });
  clone(one, "two");
  write_file(*version_, kRootIno, "new", noise(100, 9));
  const auto two = seal();
  const auto sealed = reader(two);
  EXPECT_EQ(read_sealed(*sealed, "new"), noise(100, 9));
  EXPECT_EQ(read_sealed(*sealed, "a/big"), long_content());
  EXPECT_EQ(code_of(sealed->lookup(find(*sealed, "z"), "f1")), ErrorCode::kCorrupt);
  with_catalog([&](const meta::Env& env) {
    const auto txn = must(meta::ReadTxn::begin(env));
    const auto before = must(catalog::version_chunks(txn, series_, one));
    const auto after = must(catalog::version_chunks(txn, series_, two));
    EXPECT_EQ(before.subtract(after).size(), 0U);
  });
}

TEST_F(CloneTest, SealThatKeepsLeavesACloneOfTheOldName) {
  const auto number = version_->info().number;
  write_file(*version_, kRootIno, "f", noise(3000, 1));
  version_.reset();
  EXPECT_EQ(code_of(repository_->seal(series_, number, "", SealMode::kKeep)), ErrorCode::kExists);
  const auto outcome = must(repository_->seal(series_, number, "first", SealMode::kKeep));
  EXPECT_EQ(outcome.info.name, "first");
  ASSERT_TRUE(outcome.next);
  EXPECT_EQ(outcome.next->name, "one");
  EXPECT_EQ(outcome.next->state, VersionState::kOpen);
  EXPECT_EQ(must(repository_->find_version(series_, "one")).number, outcome.next->number);
  EXPECT_EQ(must(repository_->find_version(series_, "latest")).number, number);
  version_ = must(repository_->writer(series_));
  EXPECT_EQ(read_open(*version_, ino("f")), noise(3000, 1));
  write_file(*version_, kRootIno, "g", noise(3000, 2));
  restart();
  const auto next = seal("second");
  EXPECT_EQ(read_sealed(*reader(next), "f"), noise(3000, 1));
  EXPECT_EQ(read_sealed(*reader(next), "g"), noise(3000, 2));
  EXPECT_EQ(reader(next)->info().entries, 2U);
}

TEST_F(CloneTest, NamesFollowTheRulesOfOpeningAVersion) {
  const auto one = seal();
  // Its own name reopens the version.
  const auto reopened = must(repository_->clone_version(series_, one, "one"));
  EXPECT_EQ(reopened.name, "one.partial");
  must(repository_->abandon_version(series_, reopened.number, true));
  EXPECT_EQ(code_of(repository_->clone_version(series_, one, "latest")), ErrorCode::kExists);
  EXPECT_EQ(code_of(repository_->clone_version(series_, VersionNumber{9}, "x")),
            ErrorCode::kNotFound);
  const auto two = clone(one, "two.partial");
  version_.reset();
  EXPECT_EQ(code_of(repository_->clone_version(series_, one, "x")), ErrorCode::kBusy);
  EXPECT_EQ(code_of(repository_->clone_version(series_, two, "x")), ErrorCode::kInvalid);
}

TEST_F(CloneTest, OlderVersionIsCopiedWithAllOfItsDirectories) {
  const Ino a = make_directory(kRootIno, "a");
  const Ino b = make_directory(a, "b");
  must(version_->set_xattr(b, "user.note", "varve", XattrMode::kAny));
  AttributeChange change;
  change.mode = 02751;
  change.uid = 4000000000;
  change.gid = 12;
  change.mtime = Timestamp{-5, 999999999};
  for (const Ino at : {b, a, kRootIno}) must(version_->set_attributes(at, change));
  for (int i = 0; i < 2500; ++i) make_directory(b, "d" + std::to_string(i));
  must(version_->set_attributes(b, change));
  const auto one = seal();
  must(repository_->open_version(series_, "two", folder()));
  version_ = must(repository_->writer(series_));
  const auto two = seal();
  const auto three = clone(one, "three");
  EXPECT_GT(three, two);
  const auto again = seal();
  const auto sealed = reader(again);
  EXPECT_EQ(sealed->info().entries, reader(one)->info().entries);
  for (const char* path : {"", "a", "a/b"}) {
    const auto entry = must(sealed->get(find(*sealed, path)));
    EXPECT_EQ(entry.attributes.mode, S_IFDIR | 02751U) << path;
    EXPECT_EQ(entry.attributes.uid, 4000000000U) << path;
    EXPECT_EQ(entry.attributes.gid, 12U) << path;
    EXPECT_EQ(entry.attributes.mtime, (Timestamp{-5, 999999999})) << path;
  }
  EXPECT_EQ(must(sealed->xattrs(find(*sealed, "a/b"))), (Xattrs{{"user.note", "varve"}}));
}

TEST_F(CloneTest, OlderVersionIsCopiedWithItsFilesAndLinks) {
  make_tree();
  const auto one = seal();
  must(repository_->open_version(series_, "two", folder()));
  version_ = must(repository_->writer(series_));
  write_file(*version_, kRootIno, "other", noise(100, 3));
  seal();
  clone(one, "three");
  EXPECT_EQ(ino("a/b/c/hard"), ino("z/linked"));
  restart();
  const auto three = seal();
  const auto sealed = reader(three);
  EXPECT_EQ(sealed->info().entries, reader(one)->info().entries);
  EXPECT_EQ(sealed->info().logical_bytes, reader(one)->info().logical_bytes);
  EXPECT_EQ(read_sealed(*sealed, "a/big"), long_content());
  EXPECT_EQ(read_sealed(*sealed, "z/f1"), noise(10, 1));
  EXPECT_EQ(must(sealed->get(find(*sealed, "m"))).attributes.nlink, 3U);
  EXPECT_EQ(code_of(sealed->lookup(0, "other")), ErrorCode::kNotFound);
  expect_no_damage();
}

TEST_F(CloneTest, CopyThatACrashCutShortIsDropped) {
  const auto one = seal();
  with_catalog([&](const meta::Env& env) {
    auto txn = must(meta::WriteTxn::begin(env));
    auto owner = *must(catalog::find_series(txn, series_));
    catalog::VersionRecord record;
    record.series = series_;
    record.number = static_cast<VersionNumber>(owner.next_number++);
    record.name = "half";
    record.unfinished = true;
    record.root.mode = S_IFDIR | 0755;
    must(catalog::put_series(txn, owner));
    must(catalog::put_version(txn, record));
    must(txn.commit());
  });
  EXPECT_EQ(must(repository_->versions(series_)).size(), 1U);
  EXPECT_EQ(code_of(repository_->writer(series_)), ErrorCode::kNotFound);
  EXPECT_EQ(clone(one, "half"), VersionNumber{3});
}

}  // namespace
}  // namespace varve::test
