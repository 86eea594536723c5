// SPDX-License-Identifier: Apache-2.0
// Turns the errno of a failed system call into an Error.
#pragma once

#include <string>

#include "varve/result.h"

namespace varve::base {

/// Returns the error of a failed system call: "WHAT: the system's message". The code is kNotFound
/// for ENOENT and so on, and kIo for an errno without a specific code.
[[nodiscard]] Error system_error(const std::string& what, int errno_value);

/// Returns the same error, but with the code kIo for every errno. For calls on a socket, inside the
/// catalog and on the user's files: a caller would take kNotFound for a missing version.
[[nodiscard]] Error io_error(const std::string& what, int errno_value);

/// Returns true if a device failed (EIO). The bytes are then as lost as bytes with a wrong
/// checksum.
[[nodiscard]] bool is_device_failure(const Error& error);

/// Returns true if the process lacked descriptors, memory or a timely answer (EMFILE, ENFILE,
/// ENOMEM, EAGAIN, EINTR). The error then says nothing about the bytes on disk.
[[nodiscard]] bool lacks_resources(const Error& error);

/// Returns true if the error shows that bytes on disk are wrong, missing or unreadable for good:
/// kCorrupt, kTooLarge, or a failed device. All other errors may pass.
[[nodiscard]] bool is_damage(const Error& error);

/// Returns true if the system refused to open a file for writing: the permissions or a read-only
/// file system forbid writing (EACCES, EROFS).
[[nodiscard]] bool refuses_writing(const Error& error);

}  // namespace varve::base
