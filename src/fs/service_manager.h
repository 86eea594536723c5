// SPDX-License-Identifier: Apache-2.0
// Tells systemd about the state of a service, as sd_notify(3) describes.
#pragma once

namespace varve::fs {

/// Tells the service manager that the mount is ready, if the process was started by a unit with
/// Type=notify. Logs an error: the unit then fails by its time limit.
void notify_ready();

}  // namespace varve::fs
