// SPDX-License-Identifier: Apache-2.0
// Downloads of `varve web`. Every one is an attachment that no browser shows or runs.
#pragma once

#include "varve/repository.h"
#include "varve/result.h"
#include "web/exchange.h"
#include "web/request.h"

namespace varve::cli {

/// Sends a regular file, or the range of it that the request wants.
/// Errors: as find_web_place(); kInvalid for another type of file. After a part was sent, damage
/// ends the connection, and the browser reports the download as failed.
[[nodiscard]] Result<void> send_file(Repository& repository, const web::Request& request,
                                     web::Exchange& exchange);

/// Sends a directory or file as a tar archive, or as a zip archive. The archive is made while it is
/// sent. Damage fails the download.
[[nodiscard]] Result<void> send_archive(Repository& repository, const web::Request& request,
                                        bool is_tar, web::Exchange& exchange);

}  // namespace varve::cli
