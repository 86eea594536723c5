// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program, adds the seconds in the file $VARVE_TEST_CLOCK to the wall clock. Reads
// the file at each call, so that a test can shift the clock of a running daemon.
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

namespace {

long shift_seconds() {
  const char* const path = std::getenv("VARVE_TEST_CLOCK");
  if (path == nullptr) return 0;
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[32] = {};
  const ssize_t got = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  return got > 0 ? std::strtol(text, nullptr, 10) : 0;
}

bool is_wall_clock(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, struct timespec* time) noexcept {
  const int result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && is_wall_clock(clock)) time->tv_sec += shift_seconds();
  return result;
}

time_t time(time_t* out) noexcept {
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(struct timeval* out, void* /*zone*/) noexcept {
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}
}
