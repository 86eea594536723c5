// SPDX-License-Identifier: Apache-2.0
// libcurl, loaded on first use.
#pragma once

#include <curl/curl.h>

#include "varve/result.h"

namespace varve::bucket {

/// The functions of libcurl called by the room.
struct CurlLibrary {
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&curl_easy_reset) easy_reset = nullptr;
  decltype(&curl_easy_setopt) easy_setopt = nullptr;
  decltype(&curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&curl_easy_strerror) easy_strerror = nullptr;
  decltype(&curl_getdate) getdate = nullptr;
  decltype(&curl_multi_init) multi_init = nullptr;
  decltype(&curl_multi_cleanup) multi_cleanup = nullptr;
  decltype(&curl_multi_setopt) multi_setopt = nullptr;
  decltype(&curl_multi_add_handle) multi_add_handle = nullptr;
  decltype(&curl_multi_remove_handle) multi_remove_handle = nullptr;
  decltype(&curl_multi_info_read) multi_info_read = nullptr;
  decltype(&curl_multi_perform) multi_perform = nullptr;
  decltype(&curl_multi_poll) multi_poll = nullptr;
  decltype(&curl_multi_wakeup) multi_wakeup = nullptr;
  decltype(&curl_slist_append) slist_append = nullptr;
  decltype(&curl_slist_free_all) slist_free_all = nullptr;
};

/// Loads and initialises libcurl on the first call. Linking libcurl would bring 28 more libraries,
/// and loading the libraries took a third of the time of a short command. Hardly any command uses
/// an object store. Thread-safe. Errors: kUnsupported without the library.
[[nodiscard]] Result<void> load_curl();

/// Returns the functions. Requires a successful load_curl(). Thread-safe.
[[nodiscard]] const CurlLibrary& curl();

}  // namespace varve::bucket
