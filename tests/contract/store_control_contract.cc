// SPDX-License-Identifier: Apache-2.0
// Storing a directory by a control: in this process, and through the socket.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "control/client.h"
#include "control/control_handlers.h"
#include "control/local_control.h"
#include "control/remote_control.h"
#include "control/server.h"
#include "control/store_task.h"
#include "support/kernel_tick.h"
#include "support/temp_repository.h"
#include "support/test_encryption.h"

namespace varve::control {
namespace {

using test::code_of;
using test::must;

/// Begins a store with the exclude rule "wait" only after its stop has arrived.
class DelayedControl : public LocalControl {
 public:
  using LocalControl::LocalControl;
  Result<StoreTaskReply> store(
      const StoreTask& task, const StopRequest& stop,
      const std::function<void(const TransferProgress&)>& progress) override {
    if (task.excludes == std::vector<std::string>{"wait"}) {
      pollfd stopped = {.fd = stop.descriptor(), .events = POLLIN, .revents = 0};
      EXPECT_EQ(::poll(&stopped, 1, 30000), 1);
    }
    return LocalControl::store(task, stop, progress);
  }
};

class StoreControlContract : public testing::TestWithParam<bool> {
 protected:
  StoreControlContract() {
    must(Repository::create(path_, test::small_chunks(Codec::kNone), test::chosen_encryption()));
    repository_ = test::reopen(path_, test::keyed());
    if (GetParam()) {
      Handlers handlers;
      add_handlers(std::make_shared<DelayedControl>(*repository_), handlers);
      server_ = must(Server::start(path_, std::move(handlers)));
      control_ = std::make_unique<RemoteControl>(RemoteControl::Place{path_, {}},
                                                 must(Client::connect(path_)));
    } else {
      control_ = std::make_unique<LocalControl>(*repository_);
    }
    std::filesystem::create_directories(source_ + "/d");
    write("d/a", "content");
    write("b.o", "object");
  }
  void write(const std::string& name, const std::string& content) {
    std::ofstream(source_ + "/" + name, std::ios::binary) << content;
  }
  StoreTask task(const std::string& version) {
    StoreRequest request;
    request.directory = source_;
    request.seals = true;
    return must(store_task(version, request));
  }
  Result<StoreTaskReply> store(const StoreTask& what) { return control_->store(what, never_, {}); }
  std::string read(const std::string& version, const std::string& path) {
    const auto series = must(repository_->find_series("s")).id;
    const auto info = must(repository_->find_version(series, version));
    return test::read_sealed(*must(repository_->reader(series, info.number)), path);
  }

  const test::TempDirectory place_;
  const std::string path_ = place_.path() + "/r";
  const std::string source_ = place_.path() + "/source \xff";
  std::unique_ptr<Repository> repository_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<RepositoryControl> control_;
  StopRequest never_;
};

TEST_P(StoreControlContract, DirectoryBecomesASealedVersion) {
  StoreTask what = task("s/v");
  what.excludes = {"*.o"};
  what.time = Timestamp{1000, 7};
  const auto stored = must(store(what));
  EXPECT_EQ(stored.version.name, "v");
  EXPECT_EQ(stored.version.state, VersionState::kSealed);
  EXPECT_EQ(stored.version.claimed_at, (Timestamp{1000, 7}));
  EXPECT_EQ(stored.report.entries, 3U);
  EXPECT_TRUE(stored.report.problems.empty());
  EXPECT_EQ(read("v", "d/a"), "content");
}

TEST_P(StoreControlContract, NextVersionSharesWhatDidNotChange) {
  test::wait_for_kernel_tick();
  must(store(task("s/one")));
  write("d/new", "more");
  std::filesystem::remove(source_ + "/b.o");
  const auto stored = must(store(task("s/two")));
  EXPECT_EQ(stored.version.entries, 3U);
  EXPECT_EQ(stored.report.removed, 1U);
  EXPECT_EQ(read("two", "d/new"), "more");
  EXPECT_EQ(read("one", "b.o"), "object");
}

TEST_P(StoreControlContract, PartialVersionStaysOpen) {
  StoreTask what = task("s/v.partial");
  what.seals = false;
  const auto stored = must(store(what));
  EXPECT_EQ(stored.version.state, VersionState::kOpen);
  EXPECT_EQ(stored.version.name, "v.partial");
}

TEST_P(StoreControlContract, StopEndsTheStoreAndTheNextContinues) {
  for (int i = 0; i < 200; ++i) write("d/f" + std::to_string(i), test::noise(100000, 1));
  StopRequest stop;
  stop.stop();
  // The daemon looks for the stop each 100 ms, so it could end a small store before.
  StoreTask stopped = task("s/v");
  stopped.excludes = {"wait"};
  EXPECT_EQ(code_of(control_->store(stopped, stop, {})), ErrorCode::kInterrupted);
  // A remote store may still be ending.
  auto stored = store(task("s/v"));
  for (int i = 0; i < 100 && !stored && stored.error().code() == ErrorCode::kBusy; ++i) {
    ::usleep(20000);
    stored = store(task("s/v"));
  }
  EXPECT_EQ(must(std::move(stored)).version.entries, 203U);
}

TEST_P(StoreControlContract, AnotherViewOfTheFilesIsRefused) {
  StoreTask what = task("s/v");
  ++what.identity.inode;
  EXPECT_EQ(code_of(store(what)), ErrorCode::kNotPermitted);
  what = task("s/v");
  ++what.mount_namespace;
  EXPECT_EQ(code_of(store(what)), ErrorCode::kNotPermitted);
  EXPECT_TRUE(must(repository_->series()).empty());
}

TEST_P(StoreControlContract, ErrorsOfTheStoreArrive) {
  StoreTask what = task("s/v");
  what.excludes = {"["};
  EXPECT_EQ(code_of(store(what)), ErrorCode::kInvalid);
  EXPECT_EQ(code_of(store(task("s/latest"))), ErrorCode::kExists);
  EXPECT_EQ(code_of(store(task("nothing"))), ErrorCode::kInvalid);
}

INSTANTIATE_TEST_SUITE_P(Controls, StoreControlContract, testing::Bool(),
                         [](const auto& of) { return of.param ? "remote" : "local"; });

}  // namespace
}  // namespace varve::control
