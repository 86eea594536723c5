// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>

#include "restore/restore_engine.h"
#include "restore/window_engine.h"

namespace varve::restore {
namespace {

using Keep = EngineKind::Keep;
using Forward = EngineKind::Forward;

template <EngineKind kKind>
std::unique_ptr<RestoreEngine> make(const EngineContext& context, const EngineMemory& memory) {
  return std::make_unique<WindowEngine>(kKind, context, memory);
}

// A kind is the cached content and the rule for the sizes.
constexpr std::array kEngines{
    EngineInfo{"alacc", "a long window, and chunks by the reads that they save (default)",
               make<EngineKind{Keep::kGroups, Forward::kOneAssembled, {}}>},
    EngineInfo{"alacc-paper", "ALACC with all its published rules (FAST'18)",
               make<EngineKind{Keep::kFutureAndPast, Forward::kAdaptive, {}}>},
    EngineInfo{"alacc-f80", "the same, with a window that fills the cache with F-chunks",
               make<EngineKind{Keep::kFutureAndPast, Forward::kAdaptive, {0.8, true}}>},
    EngineInfo{"faa", "forward assembly alone (FAST'13)",
               make<EngineKind{Keep::kNothing, Forward::kAllMemory, {}}>},
    EngineInfo{"lru", "the containers that were used last",
               make<EngineKind{Keep::kContainers, Forward::kOneArea, {}}>},
    EngineInfo{"lru-chunk", "the chunks that were used last",
               make<EngineKind{Keep::kChunks, Forward::kOneArea, {}}>},
    EngineInfo{"opt", "Belady's rule on the containers that the window needs",
               make<EngineKind{Keep::kContainersAhead, Forward::kOneArea, {}}>},
};

Result<const EngineInfo*> find_engine(std::string_view name) {
  std::string names;
  for (const EngineInfo& engine : kEngines) {
    if (engine.name == name) return &engine;
    if (!names.empty()) names += ", ";
    names += engine.name;
  }
  return Error(ErrorCode::kInvalid,
               "there is no restore engine called '" + std::string(name) + "'; there are " + names);
}

}  // namespace

std::span<const EngineInfo> engine_infos() { return kEngines; }

Result<void> check_engine(std::string_view name) {
  VARVE_TRY(find_engine(name));
  return {};
}

Result<std::unique_ptr<RestoreEngine>> make_engine(std::string_view name,
                                                   const EngineContext& context,
                                                   const EngineMemory& memory) {
  VARVE_TRY_ASSIGN(const EngineInfo* const engine, find_engine(name));
  return engine->make(context, memory);
}

}  // namespace varve::restore
