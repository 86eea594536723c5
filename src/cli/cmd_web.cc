// SPDX-License-Identifier: Apache-2.0
#include <clocale>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/repository_access.h"
#include "cli/signal_watch.h"
#include "cli/web_site.h"
#include "web/server.h"

namespace varve::cli {
namespace {

struct WebArguments {
  std::string repository;
  std::uint32_t port = 0;
};

int run_web(WebArguments options, const Context& context) {
  if (const auto given = take_repository({{"REPO", &options.repository}}, control::Purpose::kLook);
      !given) {
    return fail(given.error());
  }
  // A browser that closes a download must not end the program. Zip archives need a character set
  // for names.
  std::signal(SIGPIPE, SIG_IGN);
  std::setlocale(LC_CTYPE, "C.UTF-8");
  const auto server = web::Server::listen(static_cast<std::uint16_t>(options.port));
  if (!server) return fail(server.error());
  const SignalWatch signals({.stop = [&] { (*server)->stop(); }, .report = [] {}});
  const auto repository = open_to_read(options.repository);
  if (!repository) return fail(repository.error());
  WebSite site(**repository);
  print((*server)->address() + "\n");
  if (const auto printed = finish_output(); !printed) return fail(printed.error());
  note(context, "the page is read-only and for this machine alone; Ctrl-C ends it");
  (*server)->run([&](const web::Request& request, web::Exchange& exchange) {
    site.answer(request, exchange);
  });
  return kExitOk;
}

}  // namespace

void add_web_command(CommandLine& line, const Context& context) {
  constexpr std::uint32_t kPortMax = 65535;
  auto options = std::make_shared<WebArguments>();
  auto command =
      line.add_command("web", "Show a repository in a browser on this machine, read-only");
  command.add_repository(options->repository);
  command
      .add_option("--port", options->port, "Port on the loopback interface (default: a free one)")
      .in<std::uint32_t>({0, kPortMax});
  command.run([options, &context] { return run_web(*options, context); });
}

}  // namespace varve::cli
