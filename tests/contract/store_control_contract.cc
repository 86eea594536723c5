// SPDX-License-Identifier: Apache-2.0
// Storing a directory or a stream by a control: in this process, and through the socket.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "control/client.h"
#include "control/control_handlers.h"
#include "control/local_control.h"
#include "control/protocol.h"
#include "control/remote_control.h"
#include "control/server.h"
#include "control/socket.h"
#include "control/store_task.h"
#include "support/file_content.h"
#include "support/kernel_tick.h"
#include "support/temp_repository.h"
#include "support/test_encryption.h"
#include "varve/refused_store.h"

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
  // A stream of these bytes in a file, for the file `name` of the version; "" for an archive.
  StoreTask stream_of(const std::string& version, const std::string& name,
                      const std::string& content) {
    const std::string path = place_.path() + "/stream";
    std::ofstream(path, std::ios::binary) << content;
    return stream_from(version, name, ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  static StoreTask stream_from(const std::string& version, const std::string& name,
                               int descriptor) {
    StoreTask what;
    what.version = version;
    what.seals = true;
    what.stream = StreamSource{name, std::make_shared<base::UniqueFd>(descriptor), {}};
    return what;
  }
  // An archive of one file, `name` with `content`.
  std::string archive_of(const std::string& name, const std::string& content) const {
    const std::string folder = place_.path() + "/archived";
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/" + name, std::ios::binary) << content;
    const std::string path = place_.path() + "/tar";
    const std::string command = "tar -cf " + path + " -C " + folder + " " + name;
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ifstream in(path, std::ios::binary);
    return varve::test::rest_of(in);
  }
  // Waits until no store into the series is under way, and no series is left.
  bool nothing_is_left() {
    for (int i = 0; i < 500; ++i) {
      if (must(repository_->series()).empty()) return true;
      ::usleep(20000);
    }
    return false;
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
  EXPECT_EQ(stored.report.entries, stored.version.entries);
  EXPECT_EQ(stored.report.entries, 2U);
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
  EXPECT_EQ(code_of(store(what)), ErrorCode::kLocked);
  what = task("s/v");
  ++what.mount_namespace;
  EXPECT_EQ(code_of(store(what)), ErrorCode::kLocked);
  EXPECT_TRUE(must(repository_->series()).empty());
}

TEST_P(StoreControlContract, ErrorsOfTheStoreArrive) {
  StoreTask what = task("s/v");
  what.excludes = {"["};
  EXPECT_EQ(code_of(store(what)), ErrorCode::kInvalid);
  EXPECT_EQ(code_of(store(task("s/latest"))), ErrorCode::kExists);
  EXPECT_EQ(code_of(store(task("nothing"))), ErrorCode::kInvalid);
}

TEST_P(StoreControlContract, StreamBecomesASealedVersion) {
  StoreTask what = stream_of("s/v", "d/dump", "bytes of a stream");
  what.time = Timestamp{1000, 7};
  const auto stored = must(store(what));
  EXPECT_EQ(stored.version.state, VersionState::kSealed);
  EXPECT_EQ(stored.version.claimed_at, (Timestamp{1000, 7}));
  EXPECT_EQ(stored.report.bytes, 17U);
  EXPECT_EQ(read("v", "d/dump"), "bytes of a stream");
}

TEST_P(StoreControlContract, ArchiveBecomesASealedVersion) {
  must(store(stream_of("s/v", "", archive_of("member", "content"))));
  EXPECT_EQ(read("v", "member"), "content");
}

TEST_P(StoreControlContract, PipeIsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const std::string content = test::noise(3'000'000, 1);
  std::thread writer([&] {
    for (std::size_t at = 0; at < content.size();) {
      const auto put = ::write(ends[1], content.data() + at, content.size() - at);
      ASSERT_GT(put, 0);
      at += static_cast<std::size_t>(put);
    }
    ::close(ends[1]);
  });
  const auto stored = store(stream_from("s/v", "f", ends[0]));
  writer.join();
  EXPECT_EQ(must(stored).version.state, VersionState::kSealed);
  EXPECT_EQ(read("v", "f"), content);
}

TEST_P(StoreControlContract, StreamAddsToAnOpenVersion) {
  StoreTask what = task("s/v.partial");
  what.seals = false;
  must(store(what));
  StoreTask added = stream_of("s/v.partial", "dump", "added");
  added.seals = false;
  EXPECT_EQ(must(store(added)).version.state, VersionState::kOpen);
  must(control_->seal({.version = "s/v.partial"}, never_));
  EXPECT_EQ(read("v", "dump"), "added");
  EXPECT_EQ(read("v", "d/a"), "content");
}

TEST_P(StoreControlContract, CutArchiveLeavesNothing) {
  std::string archive = archive_of("member", test::noise(100000, 1));
  archive.resize(50000);
  EXPECT_EQ(code_of(store(stream_of("s/v", "", archive))), ErrorCode::kInvalid);
  EXPECT_TRUE(nothing_is_left());
  EXPECT_EQ(code_of(store(stream_of("s/v", "", "no archive"))), ErrorCode::kInvalid);
  EXPECT_EQ(code_of(store(stream_of("s/v", "../f", "x"))), ErrorCode::kInvalid);
  EXPECT_TRUE(nothing_is_left());
}

TEST_P(StoreControlContract, StopEndsTheStoreOfAStalledPipe) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const base::UniqueFd writer(ends[1]);
  ASSERT_EQ(::write(ends[1], "begin", 5), 5);
  StopRequest stop;
  std::thread stopper([&] {
    ::usleep(300000);
    stop.stop();
  });
  const auto stored = control_->store(stream_from("s/v", "f", ends[0]), stop, {});
  stopper.join();
  EXPECT_EQ(code_of(stored), ErrorCode::kInterrupted);
  EXPECT_TRUE(nothing_is_left());
}

// The end of the stream may be that of a pipeline which a signal ended.
TEST_P(StoreControlContract, CommandThatIsGoneAtTheEndLeavesNothing) {
  StoreTask what = stream_of("s/v", "f", "bytes");
  if (!GetParam()) {
    what.stream->confirm = [] { return false; };
    EXPECT_EQ(code_of(store(what)), ErrorCode::kInterrupted);
  } else {
    const std::chrono::seconds patience{20};
    auto connected = must(connect_to(path_, patience));
    Request request;
    request.operation = Operation::kStoreStream;
    request.store = what;
    must(send_line_with(connected.socket.get(), encode(request), what.stream->input->get(),
                        patience));
    while (!must(decode_reply(must(receive_line(connected.socket.get(), patience)))).all_read) {
    }
    connected.socket.reset();
  }
  EXPECT_TRUE(nothing_is_left());
}

// The program that writes the stream may fail after it has closed the stream.
TEST_P(StoreControlContract, FailedWriterOfTheStreamLeavesNothing) {
  StoreTask what = stream_of("s/v", "f", "half of a dump");
  const Error failed(ErrorCode::kIo, "the dump failed");
  if (GetParam()) {
    what.stream->check_end = [&]() -> Result<void> { return failed; };
    const auto stored = store(what);
    ASSERT_FALSE(stored);
    EXPECT_EQ(stored.error().message(), "the dump failed");
  } else {
    what.stream->confirm = [] { return false; };
    EXPECT_FALSE(store(what));
  }
  EXPECT_TRUE(nothing_is_left());
}

TEST_P(StoreControlContract, EmptySourcesAreRefusedIfTheTaskSaysSo) {
  StoreTask empty = stream_of("s/v", "f", "");
  empty.guard = true;
  EXPECT_EQ(code_of(store(empty)), ErrorCode::kRefused);
  must(store(task("s/one")));
  std::filesystem::remove_all(source_);
  std::filesystem::create_directories(source_ + "/a");
  StoreTask shrunk = task("s/two");
  shrunk.guard = true;
  const auto series = must(repository_->find_series("s")).id;
  EXPECT_EQ(code_of(store(shrunk)), ErrorCode::kRefused);
  EXPECT_TRUE(must(repository_->open_versions(series)).empty());
  EXPECT_TRUE(must(repository_->refused_store(series)));
  shrunk.guard = false;
  must(store(shrunk));
  EXPECT_FALSE(must(repository_->refused_store(series)));
}

TEST_P(StoreControlContract, StreamMustBeAFileOrAPipeForReading) {
  const std::string path = place_.path() + "/f";
  std::ofstream(path) << "x";
  for (const int descriptor :
       {::open("/dev/null", O_RDONLY | O_CLOEXEC), ::open(path.c_str(), O_WRONLY | O_CLOEXEC),
        ::open(place_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        ::open(path.c_str(), O_PATH | O_CLOEXEC), ::eventfd(0, EFD_CLOEXEC)}) {
    EXPECT_EQ(code_of(store(stream_from("s/v", "f", descriptor))), ErrorCode::kInvalid);
  }
  EXPECT_TRUE(must(repository_->series()).empty());
}

INSTANTIATE_TEST_SUITE_P(Controls, StoreControlContract, testing::Bool(),
                         [](const auto& of) { return of.param ? "remote" : "local"; });

}  // namespace
}  // namespace varve::control
