// SPDX-License-Identifier: Apache-2.0
#include "base/shared_library.h"

#include <dlfcn.h>

namespace varve::base {

SharedLibrary::SharedLibrary(const char* soname)
    : handle_(::dlopen(soname, RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) note_fault();
}

void* SharedLibrary::address_of(const char* name) {
  if (handle_ == nullptr) return nullptr;
  void* const address = ::dlsym(handle_, name);
  if (address == nullptr) note_fault();
  return address;
}

void SharedLibrary::note_fault() {
  const char* const text = ::dlerror();
  if (fault_.empty()) fault_ = text == nullptr ? "the library lacks a function" : text;
}

}  // namespace varve::base
