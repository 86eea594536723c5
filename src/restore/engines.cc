// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "restore/engine_alacc.h"
#include "restore/restore_engine.h"

namespace varve::restore {

bool is_engine_name(std::string_view name) { return name == "alacc"; }

Result<std::unique_ptr<RestoreEngine>> make_engine(std::string_view name,
                                                   const EngineContext& context,
                                                   const EngineMemory& memory) {
  if (name == "alacc") return std::unique_ptr<RestoreEngine>(new AlaccEngine(context, memory));
  return Error(ErrorCode::kInvalid,
               "there is no restore engine called '" + std::string(name) + "'; use 'alacc'");
}

}  // namespace varve::restore
